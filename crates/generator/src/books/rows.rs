// SPDX-License-Identifier: BSD-3-Clause
//! Rows of tagged metrics: counts of a flow's frames by the values of its tags.
//!
//! Like the other books, each has one writer, and any thread may read. A row is made when its key is
//! first seen and stays until the book is cleared. If there is no room for another, frames count in
//! one row for all others. Nothing is allocated after [`Rows::new`].

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};

use measure::Cell;

use crate::tags::{MAX_ROWS, Tags, low};

/// Words of 64 bits that a key has for the bits of tags.
pub const WORDS: usize = 4;

/// Identifies a row of a flow: the bits of its tags, the last tag in the lowest bits, and the port where frames arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The high bits first.
    bits: [u128; WORDS / 2],
    /// One more than the port's index, or 0 where ports do not count.
    pub port: u64,
    /// True if the frames do not have the fields whose received bits are tags.
    pub absent: bool,
}

/// Set in a row's port where [`Key::absent`] is true.
const ABSENT: u64 = 1 << 63;

impl Key {
    /// The same, of frames that arrived at a port.
    #[inline]
    #[must_use]
    pub fn at_port(self, port: usize) -> Self {
        Key { port: port as u64 + 1, ..self }
    }

    /// Appends the low `count` bits of a value, 1 to 128.
    #[inline]
    pub fn push(&mut self, value: u128, count: u32) {
        let [high, low] = &mut self.bits;
        (*high, *low) = match count {
            128 => (*low, value),
            _ => (*high << count | *low >> (128 - count), *low << count | value),
        };
    }

    /// Takes the last `count` bits away, 1 to 128.
    pub fn pop(&mut self, count: u32) -> u128 {
        let [high, lower] = &mut self.bits;
        let value = *lower & low(count);
        (*high, *lower) = match count {
            128 => (0, *high),
            _ => (*high >> count, *lower >> count | *high << (128 - count)),
        };
        value
    }

    #[inline]
    fn words(&self) -> [u64; WORDS + 1] {
        let [high, low] = self.bits;
        let port = if self.absent { self.port | ABSENT } else { self.port };
        [(high >> 64) as u64, high as u64, (low >> 64) as u64, low as u64, port]
    }

    fn of([a, b, c, d, port]: [u64; WORDS + 1]) -> Self {
        let join = |high: u64, low: u64| u128::from(high) << 64 | u128::from(low);
        Key { bits: [join(a, b), join(c, d)], port: port & !ABSENT, absent: port & ABSENT != 0 }
    }
}

#[inline]
fn hash(words: &[u64; WORDS + 1]) -> usize {
    let mix =
        |hash: u64, word: &u64| (hash.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (words.iter().fold(0, mix) >> 32) as usize
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
    words: [Cell; WORDS + 1],
    counts: Counts,
}

impl Row {
    #[inline]
    fn words(&self) -> [u64; WORDS + 1] {
        let [a, b, c, d, e] = &self.words;
        [a.get(), b.get(), c.get(), d.get(), e.get()]
    }

    fn begin(&self, words: &[u64; WORDS + 1]) {
        self.words.iter().zip(words).for_each(|(cell, word)| cell.set(*word));
        self.counts.clear();
    }
}

/// The rows of one flow.
#[derive(Debug)]
pub struct Rows {
    /// The tags that make the keys.
    pub tags: Arc<Tags>,
    rows: Box<[Row]>,
    used: AtomicUsize,
    /// A hash table of row indices plus one; 0 is an empty place. At most half of it is used.
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
        let (words, mask) = (key.words(), self.index.len() - 1);
        let mut at = hash(&words) & mask;
        loop {
            let place = &self.index[at];
            match usize::from(place.load(Ordering::Relaxed)).checked_sub(1) {
                Some(found) => match self.rows.get(found) {
                    Some(row) if row.words() == words => return &row.counts,
                    _ => at = (at + 1) & mask,
                },
                None => return self.begin(place, &words),
            }
        }
    }

    #[cold]
    fn begin(&self, place: &AtomicU16, words: &[u64; WORDS + 1]) -> &Counts {
        let used = self.used.load(Ordering::Relaxed);
        let Some(row) = self.rows.get(used) else { return &self.other };
        row.begin(words);
        // Readers that see the number of rows see their keys.
        self.used.store(used + 1, Ordering::Release);
        place.store(used as u16 + 1, Ordering::Relaxed);
        &row.counts
    }

    /// The rows so far, in the order in which they were made.
    pub fn iter(&self) -> impl Iterator<Item = (Key, &Counts)> {
        let used = self.used.load(Ordering::Acquire);
        self.rows.iter().take(used).map(|row| (Key::of(row.words()), &row.counts))
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

/// The numbers of a flow's frames that have left, and their rows, for tags of what was sent.
#[derive(Debug)]
pub struct Sent {
    tags: Arc<Tags>,
    /// Number of the next frame that is to leave or to be lost at ingress, from 0 on.
    next: Cell,
    /// Counts by tags whose values are known when a frame is sent.
    rows: Option<Rows>,
}

impl Sent {
    /// No frames.
    pub fn new(tags: Arc<Tags>) -> Self {
        let rows = tags.count_sent().then(|| Rows::new(tags.clone()));
        Sent { tags, next: Cell::default(), rows }
    }

    /// The port took the next `count` frames; `len` says how long each is. Only the writer may call this.
    pub fn accept(&self, count: u64, len: impl Fn(usize) -> u64, now: u64) {
        let first = self.next.get();
        if let Some(rows) = &self.rows {
            let frames = (first..).zip(0..count as usize);
            frames.for_each(|(number, at)| rows.add(&self.tags.sent(number), 1, len(at), now));
        }
        self.next.set(first + count);
    }

    /// The next `count` frames were lost. Only the writer may call this.
    pub fn skip(&self, count: u64) {
        self.next.add(count);
    }

    /// The number of a frame whose low 32 bits are `sequence`, and which was sent within the last 2^31 frames or
    /// is about to be.
    #[inline]
    pub fn number(&self, sequence: u32) -> u64 {
        let next = self.next.get();
        next.wrapping_add_signed(i64::from(sequence.wrapping_sub(next as u32) as i32))
    }

    /// The rows, where tags are known when frames are sent.
    pub fn rows(&self) -> Option<&Rows> {
        self.rows.as_ref()
    }

    /// Forgets all. Called by the control plane while the writer leaves it alone.
    pub fn clear(&self) {
        self.next.set(0);
        self.rows.iter().for_each(Rows::clear);
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

    #[test]
    fn numbers_go_on_beyond_32_bits() {
        let sent = Sent::new(Arc::default());
        assert_eq!((sent.number(0), sent.number(40)), (0, 40), "not in the book yet");
        sent.skip(0x1_0000_0003);
        assert_eq!(sent.number(2), 0x1_0000_0002);
        assert_eq!(sent.number(0x7fff_0000), 0x1_7fff_0000);
        assert_eq!(sent.number(0xffff_ffff), 0xffff_ffff);
        sent.clear();
        assert_eq!(sent.number(5), 5);
    }

    proptest! {
        #[test]
        fn rows_count_as_a_map_does(keys in prop::collection::vec((0u64..9, 0u64..9), 0..400), most in 1usize..90) {
            let (book, mut model) = (rows(most), BTreeMap::new());
            let mut others = 0;
            for (high, low) in keys {
                let mut key = Key::default();
                key.push(high.into(), 100);
                key.push(low.into(), 100);
                prop_assert_eq!(Key::of(key.words()), key);
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
