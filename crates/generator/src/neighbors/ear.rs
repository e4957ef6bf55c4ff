// SPDX-License-Identifier: BSD-3-Clause
//! The ring by which an lcore hands over frames of ARP and neighbor discovery.

use capture_file::ring::{self, Reader, Writer};

use super::message;

/// Bytes of each frame that are handed over: more than the useful part of any such message.
const SNAP: usize = 256;

/// The end of an lcore that receives.
#[derive(Debug)]
pub struct Ear {
    ring: Writer,
}

impl Ear {
    /// Hands over a frame of ARP or neighbor discovery and returns true; returns false for any other frame. If the ring is
    /// full, the frame is dropped.
    #[inline]
    pub fn hears(&mut self, frame: &[u8], tsc: u64) -> bool {
        let heard = message::is_neighbor(frame);
        if heard {
            self.ring.write(tsc, frame.len(), |room| room.put(frame));
        }
        heard
    }
}

/// The end of the control plane.
#[derive(Debug)]
pub struct Listener {
    ring: Reader,
}

impl Listener {
    /// The next frame that was handed over, cut to 256 bytes.
    pub fn take(&mut self) -> Option<Vec<u8>> {
        let record = self.ring.peek()?;
        self.ring.take(&record, |one, two| [one, two].concat())
    }
}

/// Both ends of a ring that holds some 1,600 short frames.
pub fn pair() -> (Ear, Listener) {
    let (writer, reader) = ring::pair(ring::MIN_RING, SNAP);
    (Ear { ring: writer }, Listener { ring: reader })
}
