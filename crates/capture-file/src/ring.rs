// SPDX-License-Identifier: BSD-3-Clause
//! The ring that leads from a packet path to a file.
//!
//! A ring holds whole records only: a header of [`HEADER`] bytes, and the bytes that were captured. One chunk is
//! committed per record, so that a reader never finds half.

use std::sync::Arc;

use measure::Cell;
use rtrb::{Consumer, Producer, RingBuffer};

/// Bytes of a record's header in a ring.
pub const HEADER: usize = 20;
/// Most bytes of a packet that are captured.
pub const MAX_SNAP: usize = u16::MAX as usize;
/// Bytes of the smallest ring: two packets of the greatest size fit.
pub const MIN_RING: usize = 2 * (HEADER + MAX_SNAP);

/// What became of packets. The writer is the only one to change it.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Books {
    dropped: Cell,
}

/// The capturing end. Owned by the thread that polls.
#[derive(Debug)]
pub struct Writer {
    snap: usize,
    ring: Producer<u8>,
    books: Arc<Books>,
    /// Packets dropped since the last one that was recorded.
    missed: u32,
}

impl Writer {
    /// Records a packet of `len` bytes that passed at `tsc`. `copy` puts its bytes into the ring, from the first on; those
    /// beyond the snap length are left out. If there is no room, the packet is counted as dropped, and nothing waits.
    #[inline]
    pub fn write(&mut self, tsc: u64, len: usize, copy: impl FnOnce(&mut Room<'_>)) {
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
        let mut room = Room { one, two };
        room.put(&record.to_bytes());
        copy(&mut room);
        chunk.commit_all();
        self.missed = 0;
    }

    /// Bytes of each packet that are captured.
    #[must_use]
    pub fn snap(&self) -> usize {
        self.snap
    }
}

/// Room for the bytes of one packet, in two parts because the ring has an end.
#[derive(Debug)]
pub struct Room<'a> {
    one: &'a mut [u8],
    two: &'a mut [u8],
}

impl Room<'_> {
    /// Copies the next bytes, as far as there is room.
    #[inline]
    pub fn put(&mut self, bytes: &[u8]) {
        let (first, second) = bytes.split_at(bytes.len().min(self.one.len()));
        let (here, one) = std::mem::take(&mut self.one).split_at_mut(first.len());
        here.copy_from_slice(first);
        let two = std::mem::take(&mut self.two);
        let (there, two) = two.split_at_mut(second.len().min(two.len()));
        there.copy_from_slice(&second[..there.len()]);
        (self.one, self.two) = (one, two);
    }
}

/// What is known of a captured packet besides its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// When it passed.
    pub tsc: u64,
    /// Bytes of the packet.
    pub len: u32,
    /// Bytes of it that were captured.
    pub captured: u32,
    /// Packets that were dropped between the record before and this one.
    pub missed: u32,
}

impl Record {
    fn to_bytes(self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[..8].copy_from_slice(&self.tsc.to_ne_bytes());
        bytes[8..12].copy_from_slice(&self.len.to_ne_bytes());
        bytes[12..16].copy_from_slice(&self.captured.to_ne_bytes());
        bytes[16..].copy_from_slice(&self.missed.to_ne_bytes());
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

    /// Bytes that it takes in a ring.
    #[must_use]
    pub fn size(&self) -> usize {
        HEADER + self.captured as usize
    }
}

/// The reading end.
#[derive(Debug)]
pub struct Reader {
    ring: Consumer<u8>,
    books: Arc<Books>,
}

impl Reader {
    /// The oldest record in the ring.
    pub fn peek(&mut self) -> Option<Record> {
        let chunk = self.ring.read_chunk(HEADER).ok()?;
        let (one, two) = chunk.as_slices();
        let mut bytes = [0; HEADER];
        let (here, there) = bytes.split_at_mut(one.len().min(HEADER));
        here.copy_from_slice(one);
        there.copy_from_slice(two);
        Some(Record::from_bytes(&bytes))
    }

    /// Takes a record that was [peeked](Self::peek) at out of the ring, and gives `with` its bytes in two parts. `None` if
    /// there is no such record.
    pub fn take<T>(&mut self, record: &Record, with: impl FnOnce(&[u8], &[u8]) -> T) -> Option<T> {
        let chunk = self.ring.read_chunk(record.size()).ok()?;
        let (one, two) = chunk.as_slices();
        let result = match one.get(HEADER..) {
            Some(one) => with(one, two),
            None => with(two.get(HEADER - one.len()..).unwrap_or_default(), &[]),
        };
        chunk.commit_all();
        Some(result)
    }

    /// Bytes that wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.ring.slots()
    }

    /// Whether the writer is gone, so that nothing comes any more.
    #[must_use]
    pub fn is_abandoned(&self) -> bool {
        self.ring.is_abandoned()
    }

    /// Packets that found the ring full.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.books.dropped.get()
    }
}

/// A ring of `bytes`, [`MIN_RING`] at least, for at most `snap` bytes of each packet. Its memory is touched here
/// rather than on the packet path.
#[must_use]
pub fn pair(bytes: usize, snap: usize) -> (Writer, Reader) {
    let capacity = bytes.max(MIN_RING);
    let (mut producer, mut consumer) = RingBuffer::new(capacity);
    if let Ok(chunk) = producer.write_chunk(capacity) {
        chunk.commit_all();
    }
    if let Ok(chunk) = consumer.read_chunk(capacity) {
        chunk.commit_all();
    }
    let books = Arc::<Books>::default();
    let snap = snap.clamp(1, MAX_SNAP);
    let writer = Writer { snap, ring: producer, books: Arc::clone(&books), missed: 0 };
    (writer, Reader { ring: consumer, books })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(reader: &mut Reader) -> Option<(Record, Vec<u8>)> {
        let record = reader.peek()?;
        let bytes = reader.take(&record, |one, two| [one, two].concat())?;
        Some((record, bytes))
    }

    proptest! {
        // Write and read at random, around the ring's end many times: what comes out is what
        // went in, cut to the snap length, in order.
        #[test]
        fn records_come_out_as_they_went_in(
            steps in prop::collection::vec((any::<bool>(), 0usize..30_000), 1..200),
            snap in 1usize..30_000,
        ) {
            let (mut writer, mut reader) = pair(0, snap);
            let mut expected = std::collections::VecDeque::new();
            let (mut tsc, mut dropped) = (0u64, 0u64);
            for (write, len) in steps {
                if write {
                    tsc += 1;
                    let frame: Vec<u8> = (0..len).map(|i| (i as u64 * 31 + tsc) as u8).collect();
                    writer.write(tsc, len, |room| room.put(&frame));
                    if reader.dropped() == dropped {
                        expected.push_back((tsc, len, frame[..len.min(snap)].to_vec()));
                    }
                    dropped = reader.dropped();
                } else {
                    let found = read(&mut reader);
                    let wanted = expected.pop_front();
                    prop_assert_eq!(
                        found.map(|(record, bytes)| (record.tsc, record.len as usize, bytes)),
                        wanted
                    );
                }
            }
        }
    }
}
