// SPDX-License-Identifier: BSD-3-Clause
//! The capturing end on the packet path: a filter followed by a ring.

use std::sync::Arc;

use capture_file::ring::{self, Reader, Writer};
use measure::Cell;

use super::filter::Filter;

/// Counts of the frames that a tap has checked. The tap is the only writer.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(super) struct TapBooks {
    pub(super) seen: Cell,
    pub(super) matched: Cell,
}

/// Captures the frames that one thread receives on one port. Owned by that thread.
#[derive(Debug)]
pub struct Tap {
    filter: Arc<Filter>,
    ring: Writer,
    books: Arc<TapBooks>,
}

impl Tap {
    /// Checks a frame (without FCS) received at `tsc`: if the filter matches, its first bytes go
    /// into the ring. If the ring is full, the frame is counted as `dropped`; nothing waits.
    #[inline]
    pub fn look(&mut self, frame: &[u8], tsc: u64) {
        self.books.seen.add(1);
        if self.filter.matches(frame) {
            self.record(frame, tsc);
        }
    }

    fn record(&mut self, frame: &[u8], tsc: u64) {
        self.books.matched.add(1);
        self.ring.write(tsc, frame.len(), |room| room.put(frame));
    }
}

/// The reading end of a tap's ring.
#[derive(Debug)]
pub(super) struct Inlet {
    pub(super) ring: Reader,
    pub(super) books: Arc<TapBooks>,
}

/// A tap and the reading end of its ring of `bytes`.
pub(super) fn pair(filter: Arc<Filter>, snap: usize, bytes: usize) -> (Tap, Inlet) {
    let (writer, reader) = ring::pair(bytes, snap);
    let books = Arc::<TapBooks>::default();
    let tap = Tap { filter, ring: writer, books: Arc::clone(&books) };
    (tap, Inlet { ring: reader, books })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // A test may.

    use capture_file::ring::{HEADER, MIN_RING, Record};

    use super::*;

    fn read(inlet: &mut Inlet) -> Option<(Record, Vec<u8>)> {
        let record = inlet.ring.peek()?;
        let bytes = inlet.ring.take(&record, |one, two| [one, two].concat())?;
        Some((record, bytes))
    }

    #[test]
    fn a_full_ring_drops_and_the_next_record_says_how_many() {
        let (mut tap, mut inlet) = pair(Arc::default(), ring::MAX_SNAP, 0);
        let frame = vec![7; 1000];
        let fit = MIN_RING / (HEADER + frame.len());
        for i in 0..fit + 3 {
            tap.look(&frame, i as u64);
        }
        assert_eq!(inlet.books.seen.get(), fit as u64 + 3);
        assert_eq!(inlet.books.matched.get(), fit as u64 + 3);
        assert_eq!(inlet.ring.dropped(), 3);
        while let Some((record, bytes)) = read(&mut inlet) {
            assert_eq!((record.missed, bytes.len()), (0, 1000));
        }
        tap.look(&frame, 99);
        let record = read(&mut inlet).unwrap().0;
        assert_eq!(record, Record { tsc: 99, len: 1000, captured: 1000, missed: 3 });
        tap.look(&frame, 100);
        assert_eq!(read(&mut inlet).unwrap().0.missed, 0);
    }
}
