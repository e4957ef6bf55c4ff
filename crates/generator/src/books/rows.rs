// SPDX-License-Identifier: BSD-3-Clause
//! Rows of tagged metrics: counts of a flow's frames by the values of its tags.
//!
//! Like the other books, each has one writer, and any thread may read. A row is made when its key is
//! first seen and stays until the book is cleared. If there is no room for another, frames count in
//! one row for all others. Nothing is allocated after [`Rows::new`].

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};

use measure::Cell;

use crate::tags::{MAX_ROWS, Tags};

/// Words of the tags' bits.
pub const WORDS: usize = 4;

/// What tells rows of a flow apart: the bits of its tags, the last tag in the lowest bits, and where frames arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The most significant word first.
    pub bits: [u64; WORDS],
    /// One more than the port's index, or 0 where ports do not count.
    pub port: u64,
}

impl Key {
    /// The same, of frames that arrived at a port.
    #[inline]
    #[must_use]
    pub fn at_port(self, port: usize) -> Self {
        Key { port: port as u64 + 1, ..self }
    }

    #[inline]
    fn hash(&self) -> usize {
        let mix = |hash: u64, word: &u64| {
            (hash.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        };
        (self.bits.iter().fold(mix(0, &self.port), mix) >> 32) as usize
    }
}

/// The counts of a row.
#[derive(Debug, Default)]
pub struct Counts {
    /// Frames.
    pub frames: Cell,
    /// Their bytes, without FCS.
    pub bytes: Cell,
    /// TSC of the first, 0 before it.
    pub first_tsc: Cell,
    /// TSC of the last so far.
    pub last_tsc: Cell,
}

impl Counts {
    #[inline]
    fn add(&self, frames: u64, bytes: u64, now: u64) {
        self.frames.add(frames);
        self.bytes.add(bytes);
        if self.first_tsc.get() == 0 {
            self.first_tsc.set(now);
        }
        self.last_tsc.set(now);
    }

    fn clear(&self) {
        for cell in [&self.frames, &self.bytes, &self.first_tsc, &self.last_tsc] {
            cell.set(0);
        }
    }
}

#[derive(Debug, Default)]
struct Row {
    bits: [Cell; WORDS],
    port: Cell,
    counts: Counts,
}

impl Row {
    #[inline]
    fn key(&self) -> Key {
        let [a, b, c, d] = &self.bits;
        Key { bits: [a.get(), b.get(), c.get(), d.get()], port: self.port.get() }
    }

    fn begin(&self, key: &Key) {
        self.bits.iter().zip(key.bits).for_each(|(cell, word)| cell.set(word));
        self.port.set(key.port);
        self.counts.clear();
    }
}

/// The rows of one flow.
#[derive(Debug)]
pub struct Rows {
    /// What the keys mean.
    pub tags: Arc<Tags>,
    rows: Box<[Row]>,
    used: AtomicUsize,
    /// By hash: one more than the row's index, or 0. At most half full.
    index: Box<[AtomicU16]>,
    other: Counts,
}

impl Rows {
    /// No rows, and memory for as many as the tags say, at most [`MAX_ROWS`].
    pub fn new(tags: Arc<Tags>) -> Self {
        let most = tags.rows.clamp(1, MAX_ROWS);
        Rows {
            rows: std::iter::repeat_with(Row::default).take(most).collect(),
            used: AtomicUsize::new(0),
            index: std::iter::repeat_with(AtomicU16::default)
                .take((2 * most).next_power_of_two())
                .collect(),
            other: Counts::default(),
            tags,
        }
    }

    /// Counts frames. Only the writer may call this.
    #[inline]
    pub fn add(&self, key: &Key, frames: u64, bytes: u64, now: u64) {
        self.counts(key).add(frames, bytes, now);
    }

    /// The counts of a row, which is made if there is room.
    #[inline]
    fn counts(&self, key: &Key) -> &Counts {
        let mask = self.index.len() - 1;
        let mut at = key.hash() & mask;
        loop {
            let place = &self.index[at];
            match usize::from(place.load(Ordering::Relaxed)).checked_sub(1) {
                Some(found) => match self.rows.get(found) {
                    Some(row) if row.key() == *key => return &row.counts,
                    _ => at = (at + 1) & mask,
                },
                None => return self.begin(place, key),
            }
        }
    }

    #[cold]
    fn begin(&self, place: &AtomicU16, key: &Key) -> &Counts {
        let used = self.used.load(Ordering::Relaxed);
        let Some(row) = self.rows.get(used) else { return &self.other };
        row.begin(key);
        // Readers that see the number of rows see their keys.
        self.used.store(used + 1, Ordering::Release);
        place.store(used as u16 + 1, Ordering::Relaxed);
        &row.counts
    }

    /// The rows so far, in the order in which they were made.
    pub fn iter(&self) -> impl Iterator<Item = (Key, &Counts)> {
        let used = self.used.load(Ordering::Acquire);
        self.rows.iter().take(used).map(|row| (row.key(), &row.counts))
    }

    /// Most rows, that of all others aside.
    pub fn most(&self) -> usize {
        self.rows.len()
    }

    /// The row of all frames that found no room.
    pub fn other(&self) -> &Counts {
        &self.other
    }

    /// Forgets all rows. Called by the control plane while the writer leaves them alone.
    pub fn clear(&self) {
        self.used.store(0, Ordering::Release);
        self.index.iter().for_each(|place| place.store(0, Ordering::Relaxed));
        self.other.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn rows(most: usize) -> Rows {
        Rows::new(Arc::new(Tags { rows: most, ..Tags::default() }))
    }

    fn figures(counts: &Counts) -> [u64; 4] {
        [&counts.frames, &counts.bytes, &counts.first_tsc, &counts.last_tsc].map(Cell::get)
    }

    #[test]
    fn what_finds_no_room_counts_in_one_row() {
        let book = rows(2);
        for (port, now) in [(0, 10), (1, 11), (2, 12), (0, 13), (3, 14)] {
            book.add(&Key::default().at_port(port), 2, 120, now);
        }
        let found: Vec<_> = book.iter().map(|(key, counts)| (key.port, figures(counts))).collect();
        assert_eq!(found, [(1, [4, 240, 10, 13]), (2, [2, 120, 11, 11])]);
        assert_eq!(figures(book.other()), [4, 240, 12, 14]);
        book.clear();
        assert_eq!((book.iter().count(), figures(book.other())), (0, [0; 4]));
        book.add(&Key::default().at_port(7), 1, 60, 20);
        let found: Vec<_> = book.iter().map(|(key, counts)| (key.port, figures(counts))).collect();
        assert_eq!(found, [(8, [1, 60, 20, 20])], "counts of earlier rows are gone");
    }

    proptest! {
        #[test]
        fn rows_count_as_a_map_does(keys in prop::collection::vec((0u64..9, 0u64..9), 0..400), most in 1usize..90) {
            let (book, mut model) = (rows(most), BTreeMap::new());
            let mut others = 0;
            for (high, low) in keys {
                let key = Key { bits: [high << 60, 0, 0, low], port: 0 };
                book.add(&key, 1, 10, 5);
                let room = model.len() < most;
                match model.get_mut(&key) {
                    Some(count) => *count += 1,
                    None if room => drop(model.insert(key, 1u64)),
                    None => others += 1,
                }
            }
            let found: BTreeMap<Key, u64> = book.iter().map(|(key, counts)| (key, counts.frames.get())).collect();
            prop_assert_eq!(found, model);
            prop_assert_eq!(book.other().frames.get(), others);
        }
    }
}
