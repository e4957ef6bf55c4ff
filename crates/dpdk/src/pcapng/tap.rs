// SPDX-License-Identifier: BSD-3-Clause
//! The capturing end on the packet path, and the ring that leads away from it.
//!
//! A ring holds whole records only: a header of [`HEADER`] bytes in the machine's byte order, and the
//! bytes that were captured. One chunk is committed per record, so that a reader never finds half.

use std::sync::Arc;

use measure::Cell;
use rtrb::{Consumer, Producer, RingBuffer};

use super::Direction;
use super::vlan::Tags;
use crate::debug::impl_debug;
use crate::mbuf::Mbuf;
use crate::tsc;

/// Bytes of a record's header in a ring.
const HEADER: usize = 20;
/// Most bytes of a packet that are captured.
const MOST: usize = u16::MAX as usize;
/// Least bytes of a ring: two packets of the greatest size.
const LEAST_RING: usize = 2 * (HEADER + MOST);

/// What a tap takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TapConfig {
    /// Bytes of each packet, from its beginning (the snap length); 65,535 at most.
    pub snap: usize,
    /// Bytes of the ring between packet path and file: a packet takes 20 more than are captured of it. Two
    /// packets of the greatest size always fit.
    pub ring: usize,
}

impl Default for TapConfig {
    /// Whole packets, and a ring of 4 MiB: 2,700 packets of full size, and 50,000 small ones.
    fn default() -> Self {
        Self { snap: MOST, ring: 4 << 20 }
    }
}

/// What became of the packets that a tap has seen. The tap is the only writer.
#[derive(Default)]
#[repr(align(64))]
struct Books {
    dropped: Cell,
}

/// Captures what one queue receives or sends. Owned by who polls it, as a rule in a callback. Made by
/// [`Pcapng::tap`](super::Pcapng::tap).
pub struct Tap {
    direction: Direction,
    snap: usize,
    ring: Producer<u8>,
    books: Arc<Books>,
    /// Packets dropped since the last one that was recorded.
    missed: u32,
}

impl_debug!([] Tap, tap => direction: tap.direction, snap: tap.snap);

impl Tap {
    /// Copies packets into the ring, all with the time stamp of now. Those for which there is no room are counted as
    /// dropped, and nothing waits. VLAN tags that the device took out, or is to put in, are where they belong.
    ///
    /// Filter by giving some packets only: `tap.capture(packets.iter().filter(..))`.
    #[inline]
    pub fn capture<'p, 'm: 'p>(&mut self, packets: impl IntoIterator<Item = &'p Mbuf<'m>>) {
        let mut packets = packets.into_iter();
        // Polls that find nothing read no clock.
        let Some(first) = packets.next() else { return };
        let now = tsc::now();
        self.record(first, now);
        for packet in packets {
            self.record(packet, now);
        }
    }

    fn record(&mut self, packet: &Mbuf<'_>, tsc: u64) {
        let tags = Tags::of(packet, self.direction);
        // Segments are added up: a driver's own sum need not be what the buffers hold.
        let len = packet.segment_data().map(<[u8]>::len).sum::<usize>() + tags.bytes().len();
        let captured = len.min(self.snap);
        let Ok(mut chunk) = self.ring.write_chunk(HEADER + captured) else {
            self.missed = self.missed.saturating_add(1);
            self.books.dropped.add(1);
            return;
        };
        let record = Record {
            tsc,
            len: u32::try_from(len).unwrap_or(u32::MAX),
            captured: captured as u32,
            missed: self.missed,
        };
        let (one, two) = chunk.as_mut_slices();
        let mut room = (one, two);
        room = fill(room, &record.to_bytes());
        let mut before = tags.offset();
        for bytes in packet.segment_data() {
            // The tags stand behind the addresses, which are in the first segment where there are tags.
            let (addresses, rest) = bytes.split_at(before.min(bytes.len()));
            room = fill(room, addresses);
            if before > 0 {
                room = fill(room, tags.bytes());
                before = 0;
            }
            room = fill(room, rest);
        }
        chunk.commit_all();
        self.missed = 0;
    }
}

/// Copies `bytes` to the front of two slices that are one after the other, as far as they go; returns what
/// is left.
#[inline]
fn fill<'a>(
    (one, two): (&'a mut [u8], &'a mut [u8]),
    bytes: &[u8],
) -> (&'a mut [u8], &'a mut [u8]) {
    let (first, second) = bytes.split_at(bytes.len().min(one.len()));
    let (here, one) = one.split_at_mut(first.len());
    here.copy_from_slice(first);
    let (there, two) = two.split_at_mut(second.len().min(two.len()));
    there.copy_from_slice(&second[..there.len()]);
    (one, two)
}

/// What is known of a captured packet besides its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record {
    /// When it passed.
    pub(super) tsc: u64,
    /// Bytes of the packet.
    pub(super) len: u32,
    /// Bytes of it that were captured.
    pub(super) captured: u32,
    /// Packets that the tap dropped between the record before and this one.
    pub(super) missed: u32,
}

impl Record {
    fn to_bytes(self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[..8].copy_from_slice(&self.tsc.to_ne_bytes());
        for (place, word) in
            bytes[8..].chunks_exact_mut(4).zip([self.len, self.captured, self.missed])
        {
            place.copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }

    fn from_bytes(bytes: &[u8; HEADER]) -> Self {
        let [a, b, c, d, e, f, g, h, rest @ ..] = *bytes;
        let [i, j, k, l, m, n, o, p, q, r, s, t] = rest;
        Self {
            tsc: u64::from_ne_bytes([a, b, c, d, e, f, g, h]),
            len: u32::from_ne_bytes([i, j, k, l]),
            captured: u32::from_ne_bytes([m, n, o, p]),
            missed: u32::from_ne_bytes([q, r, s, t]),
        }
    }
}

/// The reading end of a tap's ring.
pub(super) struct Inlet {
    pub(super) interface: usize,
    pub(super) queue: u16,
    pub(super) direction: Direction,
    ring: Consumer<u8>,
    books: Arc<Books>,
}

impl Inlet {
    /// The oldest record in the ring.
    pub(super) fn peek(&mut self) -> Option<Record> {
        let chunk = self.ring.read_chunk(HEADER).ok()?;
        let (one, two) = chunk.as_slices();
        let mut bytes = [0; HEADER];
        let (here, there) = bytes.split_at_mut(one.len().min(HEADER));
        here.copy_from_slice(one);
        there.copy_from_slice(two);
        Some(Record::from_bytes(&bytes))
    }

    /// Takes a record that was peeked at out of the ring; returns the bytes that it took there.
    pub(super) fn take(&mut self, record: &Record, with: impl FnOnce(&[u8], &[u8])) -> usize {
        let len = HEADER + record.captured as usize;
        let Ok(chunk) = self.ring.read_chunk(len) else { return 0 };
        let (one, two) = chunk.as_slices();
        match one.get(HEADER..) {
            Some(one) => with(one, two),
            None => with(two.get(HEADER - one.len()..).unwrap_or_default(), &[]),
        }
        chunk.commit_all();
        len
    }

    /// Bytes that wait.
    pub(super) fn waiting(&self) -> usize {
        self.ring.slots()
    }

    /// Whether the tap is gone, so that nothing comes any more.
    pub(super) fn is_abandoned(&self) -> bool {
        self.ring.is_abandoned()
    }

    /// Packets that found the ring full.
    pub(super) fn dropped(&self) -> u64 {
        self.books.dropped.get()
    }
}

/// A tap and the reading end of its ring, whose memory is touched here rather than on the packet path.
pub(super) fn pair(
    interface: usize,
    queue: u16,
    direction: Direction,
    config: &TapConfig,
) -> (Tap, Inlet) {
    let capacity = config.ring.max(LEAST_RING);
    let (mut producer, mut consumer) = RingBuffer::new(capacity);
    if let Ok(chunk) = producer.write_chunk(capacity) {
        chunk.commit_all();
    }
    if let Ok(chunk) = consumer.read_chunk(capacity) {
        chunk.commit_all();
    }
    let books = Arc::<Books>::default();
    let snap = config.snap.clamp(1, MOST);
    let tap = Tap { direction, snap, ring: producer, books: Arc::clone(&books), missed: 0 };
    (tap, Inlet { interface, queue, direction, ring: consumer, books })
}
