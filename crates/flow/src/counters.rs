// SPDX-License-Identifier: BSD-3-Clause
//! Counters that one thread writes and any thread reads.
//!
//! Each writer has memory of its own, so writers never share a cache line, and an addition is an ordinary one without a `lock`
//! prefix. A reader adds up what all of them have.
//!
//! ```
//! use flow::counters::{Writer, total};
//!
//! /// Packets and bytes of each of 1000 customers.
//! let mut lcores: Vec<Writer<2>> = (0..2).map(|_| Writer::new(1000)).collect();
//! let readers: Vec<_> = lcores.iter().map(Writer::reader).collect();
//! lcores[0].add(7, [1, 64]);
//! lcores[1].add(7, [1, 1500]);
//! assert_eq!(total(&readers, 7), [2, 1564]);
//! ```

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Eight counters: a cache line.
#[derive(Default)]
#[repr(align(64))]
struct Line([AtomicU64; LINE]);

const LINE: usize = 8;

/// `FIELDS` counters, 1 to 8, for each of some entries. Only its owner adds to them.
pub struct Writer<const FIELDS: usize> {
    lines: Arc<[Line]>,
    entries: usize,
}

/// Reads what a [`Writer`] has counted.
#[derive(Clone)]
pub struct Reader<const FIELDS: usize> {
    lines: Arc<[Line]>,
    entries: usize,
}

impl<const FIELDS: usize> fmt::Debug for Writer<FIELDS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").field("entries", &self.entries).finish_non_exhaustive()
    }
}

impl<const FIELDS: usize> fmt::Debug for Reader<FIELDS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").field("entries", &self.entries).finish_non_exhaustive()
    }
}

/// Entries that share a line. Counters of an entry never lie in two lines.
const fn entries_of_a_line<const FIELDS: usize>() -> usize {
    assert!(FIELDS >= 1 && FIELDS <= LINE, "an entry has 1 to 8 counters");
    LINE / FIELDS
}

/// The counters of an entry.
#[inline(always)]
fn counters<const FIELDS: usize>(lines: &[Line], entry: usize) -> Option<&[AtomicU64; FIELDS]> {
    let of_a_line = const { entries_of_a_line::<FIELDS>() };
    let line = lines.get(entry / of_a_line)?;
    line.0[entry % of_a_line * FIELDS..].first_chunk()
}

impl<const FIELDS: usize> Writer<FIELDS> {
    /// Counters for `entries` entries, all 0.
    #[must_use]
    pub fn new(entries: usize) -> Self {
        let lines = entries.div_ceil(const { entries_of_a_line::<FIELDS>() });
        Self { lines: (0..lines).map(|_| Line::default()).collect(), entries }
    }

    /// Adds to the counters of an entry. Nothing happens if there is no such entry.
    #[inline(always)]
    pub fn add(&mut self, entry: usize, more: [u64; FIELDS]) {
        // The last line may have room for more.
        if entry >= self.entries {
            return;
        }
        let Some(counters) = counters::<FIELDS>(&self.lines, entry) else { return };
        for (counter, more) in counters.iter().zip(more) {
            // Nobody else writes.
            counter.store(counter.load(Relaxed).wrapping_add(more), Relaxed);
        }
    }

    /// A reader of these counters, for another thread.
    #[must_use]
    pub fn reader(&self) -> Reader<FIELDS> {
        Reader { lines: Arc::clone(&self.lines), entries: self.entries }
    }
}

impl<const FIELDS: usize> Reader<FIELDS> {
    /// The counters of an entry; zeros if there is no such entry. While the writer adds, one counter may be a packet ahead of
    /// another.
    #[must_use]
    pub fn get(&self, entry: usize) -> [u64; FIELDS] {
        if entry >= self.entries {
            return [0; FIELDS];
        }
        counters::<FIELDS>(&self.lines, entry).map_or([0; FIELDS], |counters| {
            counters.each_ref().map(|counter| counter.load(Relaxed))
        })
    }

    /// The number of entries.
    #[must_use]
    pub fn entries(&self) -> usize {
        self.entries
    }
}

/// The sums of an entry's counters over several writers.
#[must_use]
pub fn total<const FIELDS: usize>(readers: &[Reader<FIELDS>], entry: usize) -> [u64; FIELDS] {
    readers.iter().fold([0; FIELDS], |mut sums, reader| {
        for (sum, counter) in sums.iter_mut().zip(reader.get(entry)) {
            *sum = sum.wrapping_add(counter);
        }
        sums
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_do_not_touch_each_other() {
        fn check<const FIELDS: usize>() {
            let mut writer = Writer::<FIELDS>::new(20);
            let reader = writer.reader();
            for entry in 0..20 {
                writer.add(entry, std::array::from_fn(|field| (entry * 10 + field) as u64));
            }
            for none in [20, 21, 24, usize::MAX] {
                writer.add(none, [1; FIELDS]);
                assert_eq!(reader.get(none), [0; FIELDS]);
            }
            for entry in 0..20 {
                let wanted = std::array::from_fn(|field| (entry * 10 + field) as u64);
                assert_eq!(reader.get(entry), wanted);
            }
            assert_eq!(reader.entries(), 20);
        }
        check::<1>();
        check::<2>();
        check::<3>();
        check::<5>();
        check::<8>();
    }

    #[test]
    fn each_writer_has_lines_of_its_own() {
        let writers: Vec<_> = (0..4).map(|_| Writer::<2>::new(1)).collect();
        for writer in &writers {
            assert_eq!(writer.lines.as_ptr() as usize % 64, 0);
            assert_eq!(size_of_val(&*writer.lines), 64);
        }
    }

    #[test]
    fn another_thread_reads_what_was_added() {
        let mut writers = [Writer::<2>::new(3), Writer::new(3)];
        let readers = writers.each_ref().map(Writer::reader);
        std::thread::scope(|threads| {
            for writer in &mut writers {
                threads.spawn(move || (0..1000).for_each(|_| writer.add(1, [1, 64])));
            }
        });
        assert_eq!(total(&readers, 1), [2000, 128_000]);
        assert_eq!(total(&readers, 0), [0, 0]);
    }
}
