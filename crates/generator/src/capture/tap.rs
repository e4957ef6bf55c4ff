// SPDX-License-Identifier: BSD-3-Clause
//! The capturing end on the packet path, and the ring that leads away from it.
//!
//! A ring holds whole records only: a header of [`HEADER`] bytes in the machine's byte order, and the
//! bytes that were captured. One chunk is committed per record, so that a reader never finds half.

use std::sync::Arc;

use measure::Cell;
use rtrb::chunks::ReadChunk;
use rtrb::{Consumer, Producer, RingBuffer};

use super::filter::Filter;

/// Bytes of a record's header in a ring.
const HEADER: usize = 20;
/// Least bytes of a ring: two frames of the greatest size.
const MIN_RING: usize = 2 * (HEADER + super::MAX_SNAP);

/// What became of the frames that a tap has looked at. The tap is the only writer.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(super) struct TapBooks {
    pub(super) seen: Cell,
    pub(super) matched: Cell,
    pub(super) dropped: Cell,
}

/// Captures what one thread receives on one port. Owned by that thread.
#[derive(Debug)]
pub struct Tap {
    filter: Arc<Filter>,
    snap: usize,
    ring: Producer<u8>,
    books: Arc<TapBooks>,
    /// Frames dropped since the last one that was recorded.
    missed: u32,
}

impl Tap {
    /// Looks at a frame (without FCS) received at `tsc`: if the filter matches, its first bytes go
    /// into the ring. A full ring is counted as `dropped` and nothing waits.
    #[inline]
    pub fn look(&mut self, frame: &[u8], tsc: u64) {
        self.books.seen.add(1);
        if self.filter.matches(frame) {
            self.record(frame, tsc);
        }
    }

    fn record(&mut self, frame: &[u8], tsc: u64) {
        self.books.matched.add(1);
        let bytes = frame.get(..self.snap).unwrap_or(frame);
        let header = Header {
            tsc,
            len: u32::try_from(frame.len()).unwrap_or(u32::MAX),
            captured: bytes.len() as u32,
            missed: self.missed,
        };
        let Ok(mut chunk) = self.ring.write_chunk(HEADER + bytes.len()) else {
            self.missed = self.missed.saturating_add(1);
            self.books.dropped.add(1);
            return;
        };
        let (one, two) = chunk.as_mut_slices();
        let left = fill(one, two, &header.to_bytes());
        let (one, two) = left;
        fill(one, two, bytes);
        chunk.commit_all();
        self.missed = 0;
    }
}

/// Copies `bytes` to the front of two slices that are one after the other; returns what is left.
fn fill<'a>(one: &'a mut [u8], two: &'a mut [u8], bytes: &[u8]) -> (&'a mut [u8], &'a mut [u8]) {
    let (first, second) = bytes.split_at(bytes.len().min(one.len()));
    let (here, one) = one.split_at_mut(first.len());
    here.copy_from_slice(first);
    let (there, two) = two.split_at_mut(second.len().min(two.len()));
    there.copy_from_slice(&second[..there.len()]);
    (one, two)
}

/// What is known of a captured frame besides its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// When it was received.
    pub(super) tsc: u64,
    /// Bytes of the frame.
    pub(super) len: u32,
    /// Bytes of it that were captured.
    pub(super) captured: u32,
    /// Frames that the tap dropped between the record before and this one.
    pub(super) missed: u32,
}

impl Header {
    fn to_bytes(self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[..8].copy_from_slice(&self.tsc.to_ne_bytes());
        bytes[8..12].copy_from_slice(&self.len.to_ne_bytes());
        bytes[12..16].copy_from_slice(&self.captured.to_ne_bytes());
        bytes[16..].copy_from_slice(&self.missed.to_ne_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8; HEADER]) -> Header {
        let [a, b, c, d, e, f, g, h, rest @ ..] = *bytes;
        let [i, j, k, l, m, n, o, p, q, r, s, t] = rest;
        Header {
            tsc: u64::from_ne_bytes([a, b, c, d, e, f, g, h]),
            len: u32::from_ne_bytes([i, j, k, l]),
            captured: u32::from_ne_bytes([m, n, o, p]),
            missed: u32::from_ne_bytes([q, r, s, t]),
        }
    }
}

/// The reading end of a tap's ring.
#[derive(Debug)]
pub(super) struct Inlet {
    ring: Consumer<u8>,
    pub(super) books: Arc<TapBooks>,
}

impl Inlet {
    /// The header of the oldest record in the ring.
    pub(super) fn peek(&mut self) -> Option<Header> {
        let chunk = self.ring.read_chunk(HEADER).ok()?;
        let (one, two) = chunk.as_slices();
        let mut bytes = [0; HEADER];
        let (here, there) = bytes.split_at_mut(one.len().min(HEADER));
        here.copy_from_slice(one);
        there.copy_from_slice(two);
        Some(Header::from_bytes(&bytes))
    }

    /// Takes the record of a header that was peeked at out of the ring.
    pub(super) fn take<T>(
        &mut self,
        header: &Header,
        with: impl FnOnce(&[u8], &[u8]) -> T,
    ) -> Option<T> {
        let chunk: ReadChunk<'_, u8> =
            self.ring.read_chunk(HEADER + header.captured as usize).ok()?;
        let (one, two) = chunk.as_slices();
        let result = match one.get(HEADER..) {
            Some(one) => with(one, two),
            None => with(two.get(HEADER - one.len()..).unwrap_or_default(), &[]),
        };
        chunk.commit_all();
        Some(result)
    }

    /// Bytes that wait.
    pub(super) fn waiting(&self) -> usize {
        self.ring.slots()
    }
}

/// A tap and the reading end of its ring of `ring` bytes, whose memory is touched here rather than
/// on the packet path.
pub(super) fn pair(filter: Arc<Filter>, snap: usize, ring: usize) -> (Tap, Inlet) {
    let capacity = ring.max(MIN_RING);
    let (mut producer, mut consumer) = RingBuffer::new(capacity);
    if let Ok(chunk) = producer.write_chunk(capacity) {
        chunk.commit_all();
    }
    if let Ok(chunk) = consumer.read_chunk(capacity) {
        chunk.commit_all();
    }
    let books = Arc::<TapBooks>::default();
    let tap = Tap { filter, snap, ring: producer, books: Arc::clone(&books), missed: 0 };
    (tap, Inlet { ring: consumer, books })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(inlet: &mut Inlet) -> Option<(Header, Vec<u8>)> {
        let header = inlet.peek()?;
        let bytes = inlet.take(&header, |one, two| [one, two].concat())?;
        Some((header, bytes))
    }

    #[test]
    fn a_full_ring_drops_and_the_next_record_says_how_many() {
        let (mut tap, mut inlet) = pair(Arc::default(), super::super::MAX_SNAP, 0);
        let frame = vec![7; 1000];
        let fit = MIN_RING / (HEADER + frame.len());
        for i in 0..fit + 3 {
            tap.look(&frame, i as u64);
        }
        assert_eq!(inlet.books.seen.get(), fit as u64 + 3);
        assert_eq!(inlet.books.matched.get(), fit as u64 + 3);
        assert_eq!(inlet.books.dropped.get(), 3);
        while let Some((header, bytes)) = read(&mut inlet) {
            assert_eq!((header.missed, bytes.len()), (0, 1000));
        }
        tap.look(&frame, 99);
        let header = read(&mut inlet).unwrap().0;
        assert_eq!(header, Header { tsc: 99, len: 1000, captured: 1000, missed: 3 });
        tap.look(&frame, 100);
        assert_eq!(read(&mut inlet).unwrap().0.missed, 0);
    }

    proptest! {
        // Write and read at random, around the ring's end many times: what comes out is what
        // went in, cut to the snap length, in order.
        #[test]
        fn records_come_out_as_they_went_in(
            steps in prop::collection::vec((any::<bool>(), 0usize..30_000), 1..200),
            snap in 1usize..30_000,
        ) {
            let (mut tap, mut inlet) = pair(Arc::default(), snap, 0);
            let mut expected = std::collections::VecDeque::new();
            let (mut tsc, mut dropped) = (0u64, 0u64);
            for (write, len) in steps {
                if write {
                    tsc += 1;
                    let frame: Vec<u8> = (0..len).map(|i| (i as u64 * 31 + tsc) as u8).collect();
                    tap.look(&frame, tsc);
                    if inlet.books.dropped.get() == dropped {
                        expected.push_back((tsc, len, frame[..len.min(snap)].to_vec()));
                    }
                    dropped = inlet.books.dropped.get();
                } else {
                    let found = read(&mut inlet);
                    let wanted = expected.pop_front();
                    prop_assert_eq!(
                        found.map(|(header, bytes)| (header.tsc, header.len as usize, bytes)),
                        wanted
                    );
                }
            }
        }
    }
}
