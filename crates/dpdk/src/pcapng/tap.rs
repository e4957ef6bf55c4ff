// SPDX-License-Identifier: BSD-3-Clause
//! The capturing end on the packet path.

use capture_file::ring::{self, MAX_SNAP, Reader, Writer};

use super::Direction;
use super::vlan::Tags;
use crate::debug::impl_debug;
use crate::mbuf::Mbuf;
use crate::tsc;

/// What a tap captures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TapConfig {
    /// Bytes of each packet, from its beginning (the snap length); 65,535 at most.
    pub snap: usize,
    /// Bytes of the ring between the packet path and the file: each packet takes 20 more than its
    /// captured bytes. Two packets of the maximum size always fit.
    pub ring: usize,
}

impl Default for TapConfig {
    /// Whole packets, and a ring of 4 MiB: room for 2,700 packets of 1,518 bytes, or 50,000 of 64.
    fn default() -> Self {
        Self { snap: MAX_SNAP, ring: 4 << 20 }
    }
}

/// Captures the packets that one queue receives or sends. Owned by the polling thread, usually in a
/// callback. Made by [`Pcapng::tap`](super::Pcapng::tap).
pub struct Tap {
    direction: Direction,
    ring: Writer,
}

impl_debug!([] Tap, tap => direction: tap.direction, snap: tap.ring.snap());

impl Tap {
    /// Copies packets into the ring, all with the current time stamp. Packets without room are
    /// counted as dropped; it never waits. VLAN tags that the device has removed, or is to insert,
    /// are written at their places.
    ///
    /// To filter, pass some packets only: `tap.capture(packets.iter().filter(..))`.
    #[inline]
    pub fn capture<'p, 'm: 'p>(&mut self, packets: impl IntoIterator<Item = &'p Mbuf<'m>>) {
        let mut packets = packets.into_iter();
        // A poll that received nothing does not read the clock.
        let Some(first) = packets.next() else { return };
        let now = tsc::now();
        self.record(first, now);
        for packet in packets {
            self.record(packet, now);
        }
    }

    fn record(&mut self, packet: &Mbuf<'_>, tsc: u64) {
        let tags = Tags::of(packet, self.direction);
        // The segments' lengths are added up, because the packet length that a driver reports may
        // differ from the content of the buffers.
        let len = packet.segment_data().map(<[u8]>::len).sum::<usize>() + tags.bytes().len();
        self.ring.write(tsc, len, |room| {
            let mut before = tags.offset();
            for bytes in packet.segment_data() {
                // The tags stand behind the addresses, which are in the first segment where there are tags.
                let (addresses, rest) = bytes.split_at(before.min(bytes.len()));
                room.put(addresses);
                if before > 0 {
                    room.put(tags.bytes());
                    before = 0;
                }
                room.put(rest);
            }
        });
    }
}

/// The reading end of a tap's ring.
pub(super) struct Inlet {
    pub(super) interface: usize,
    pub(super) queue: u16,
    pub(super) direction: Direction,
    pub(super) ring: Reader,
}

/// A tap and the reading end of its ring.
pub(super) fn pair(
    interface: usize,
    queue: u16,
    direction: Direction,
    config: &TapConfig,
) -> (Tap, Inlet) {
    let (writer, reader) = ring::pair(config.ring, config.snap);
    (Tap { direction, ring: writer }, Inlet { interface, queue, direction, ring: reader })
}
