// SPDX-License-Identifier: BSD-3-Clause
//! The order in which a flow's frames arrive: loss, reordering (RFC 4737) and duplicates (RFC
//! 5560).
//!
//! *NextExp* is the number after the largest that has arrived (RFC 4737, section 3.3). A frame with
//! a smaller number is *reordered*, unless it arrived before: then it is a *duplicate*, and RFC
//! 4737 excludes it from everything else. The *extent* of a reordered frame (section 4.2.1) is its
//! distance in arrivals to the earliest one with a larger number, which is the one that skipped it.
//! So it is enough to know which numbers were skipped, by which arrival, and have not arrived yet:
//! a bounded list of gaps. When a gap had to be forgotten, frames as old as it cannot be classified
//! as reordered or duplicate; they are counted as *unknown*, apart from both, and excluded from
//! extents.
//!
//! The unit of an extent is arrivals. Numbers are compared modulo 2^32: a number less than 2^31
//! ahead of NextExp skips forward, everything else is old. So one wrong number far ahead makes all
//! correct ones after it reordered: record only frames whose bytes have been checked.

use crate::missing::{Missing, Place};
use crate::{Cell, Counters};

/// Positions start here, so that numbers from before the start have one too.
const ORIGIN: u64 = 1 << 32;

/// The classification of a frame by those that arrived before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// The next number, or one beyond it.
    InOrder {
        /// Numbers between the expected one and this one, missing from now on.
        skipped: u32,
    },
    /// A number that was missing.
    Reordered {
        /// Arrivals from the earliest with a larger number to this one; 1 or more. RFC 4737, 4.2.1.
        extent: u32,
    },
    /// A number that has arrived before. RFC 5560.
    Duplicate,
    /// A number from before the start, or as old as gaps that have been forgotten: reordered or a
    /// duplicate.
    Unknown,
}

/// How a flow's frames arrived. One thread writes.
#[derive(Debug, Default)]
pub struct SequenceBooks {
    /// Frames with the expected number or a larger one.
    pub in_order: Cell,
    /// Frames that arrived after one with a larger number.
    pub reordered: Cell,
    /// Further copies of frames.
    pub duplicates: Cell,
    /// Old frames that are reordered or duplicates; gaps that were forgotten would tell which.
    pub unknown: Cell,
    /// Numbers below the largest that arrived which have not arrived: lost so far. Each unknown
    /// frame may be one of them. Frames lost after the largest are not known here; the sender knows
    /// them.
    pub missing: Cell,
    /// Ranges of missing numbers that are remembered.
    pub gaps: Cell,
    /// Largest extent of a reordered frame, in arrivals; 0 while there is none.
    pub max_extent: Cell,
    extents: Option<Counters>,
}

impl SequenceBooks {
    /// Makes statistics with a histogram of extents, which takes 28 KiB. [`Default`] makes them
    /// without.
    #[must_use]
    pub fn with_extents() -> Self {
        SequenceBooks { extents: Some(Counters::new()), ..Self::default() }
    }

    /// Extents of the reordered frames, in arrivals, if a histogram was requested. The number of
    /// frames with an extent of n or more is an upper bound of the number that are n-reordered (RFC
    /// 4737, section 5.4).
    #[must_use]
    pub fn extents(&self) -> Option<&Counters> {
        self.extents.as_ref()
    }

    /// Clears everything. Only the writer may call this.
    pub fn clear(&self) {
        for cell in [
            &self.in_order,
            &self.reordered,
            &self.duplicates,
            &self.unknown,
            &self.missing,
            &self.gaps,
            &self.max_extent,
        ] {
            cell.set(0);
        }
        if let Some(extents) = &self.extents {
            extents.clear();
        }
    }
}

/// State of the thread that receives a flow: 16 bytes for each gap, and 64 more. With 1024 gaps and
/// 1024 flows that is 16 MiB.
///
/// ```
/// use measure::{Arrival, Arrivals, SequenceBooks};
/// let (mut arrivals, books) = (Arrivals::new(1024), SequenceBooks::default());
/// arrivals.see_row(&books, 0, 100);
/// assert_eq!(arrivals.see(&books, 102), Arrival::InOrder { skipped: 2 });
/// assert_eq!(arrivals.see(&books, 100), Arrival::Reordered { extent: 1 });
/// assert_eq!(arrivals.see(&books, 100), Arrival::Duplicate);
/// assert_eq!((books.in_order.get(), books.missing.get()), (101, 1));
/// ```
#[derive(Debug)]
pub struct Arrivals {
    /// Position of NextExp.
    next: u64,
    /// Numbers from the start to NextExp that have not come, in forgotten gaps too.
    missing: u64,
    gaps: Missing,
}

impl Arrivals {
    /// For a flow that starts with number 0. Remembers up to `gaps` ranges of missing numbers; with
    /// 0 every late frame is unknown or a duplicate.
    #[must_use]
    pub fn new(gaps: usize) -> Self {
        Arrivals { next: ORIGIN, missing: 0, gaps: Missing::new(gaps, ORIGIN) }
    }

    /// The flow starts again with number 0. The statistics are left as they are.
    pub fn restart(&mut self) {
        self.next = ORIGIN;
        self.missing = 0;
        self.gaps.restart(ORIGIN);
    }

    /// Records a frame and returns its classification.
    #[inline]
    pub fn see(&mut self, books: &SequenceBooks, sequence: u32) -> Arrival {
        if sequence == self.next as u32 {
            self.next += 1;
            books.in_order.add(1);
            return Arrival::InOrder { skipped: 0 };
        }
        self.see_other(books, sequence)
    }

    /// Records `count` frames with consecutive numbers from `first` on, with the same result as one
    /// by one: in one step if `first` is NextExp or beyond, one by one as far as they are old.
    #[inline]
    pub fn see_row(&mut self, books: &SequenceBooks, first: u32, count: u32) {
        if first == self.next as u32 {
            self.next += u64::from(count);
            books.in_order.add(u64::from(count));
        } else {
            self.see_other_row(books, first, count);
        }
    }

    #[inline(never)]
    fn see_other_row(&mut self, books: &SequenceBooks, first: u32, count: u32) {
        let mut entered = 0;
        while entered < count {
            let sequence = first.wrapping_add(entered);
            if sequence == self.next as u32 {
                return self.see_row(books, sequence, count - entered);
            }
            self.see_other(books, sequence);
            entered += 1;
        }
    }

    /// A frame that is not the expected one.
    #[inline(never)]
    fn see_other(&mut self, books: &SequenceBooks, sequence: u32) -> Arrival {
        let ahead = sequence.wrapping_sub(self.next as u32);
        if ahead < 1 << 31 {
            self.gaps.jump(self.next, ahead, self.index());
            self.next += u64::from(ahead) + 1;
            self.missing += u64::from(ahead);
            books.in_order.add(1);
            self.note_gaps(books);
            return Arrival::InOrder { skipped: ahead };
        }
        let behind = sequence.wrapping_neg().wrapping_add(self.next as u32);
        // The first positions are 2^32, so nothing is below 0.
        match self.gaps.take(self.next - u64::from(behind)) {
            Place::Missing(jumped_at) => {
                let extent = self.index().wrapping_sub(jumped_at);
                self.missing -= 1;
                books.reordered.add(1);
                books.max_extent.set(books.max_extent.get().max(u64::from(extent)));
                if let Some(extents) = books.extents() {
                    extents.add(u64::from(extent), 1);
                }
                self.note_gaps(books);
                Arrival::Reordered { extent }
            }
            Place::Present => {
                books.duplicates.add(1);
                Arrival::Duplicate
            }
            Place::Forgotten => {
                books.unknown.add(1);
                Arrival::Unknown
            }
        }
    }

    /// Index of the next arrival modulo 2^32, without duplicates and unknown frames: every number
    /// below NextExp is missing or has arrived.
    fn index(&self) -> u32 {
        (self.next - self.missing) as u32
    }

    fn note_gaps(&self, books: &SequenceBooks) {
        books.missing.set(self.missing);
        books.gaps.set(self.gaps.len() as u64);
    }
}

#[cfg(test)]
mod tests;
