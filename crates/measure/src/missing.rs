// SPDX-License-Identifier: BSD-3-Clause
//! The numbers that were skipped and have not arrived since: a bounded list of ranges.

use std::collections::VecDeque;

/// Consecutive numbers that one arrival skipped, and that are still missing.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Gap {
    first: u64,
    /// At least 1.
    len: u32,
    /// Index of the arrival that skipped them, modulo 2^32.
    jumped_at: u32,
}

impl Gap {
    fn end(&self) -> u64 {
        self.first + u64::from(self.len)
    }
}

/// The state of a number below the next expected one.
#[derive(Debug, PartialEq)]
pub enum Place {
    /// It was missing; the arrival with this index, modulo 2^32, had skipped it.
    Missing(u32),
    /// It was not missing.
    Present,
    /// Too old: ranges of its time have been forgotten.
    Forgotten,
}

/// The missing numbers, in ascending order and so in the order of the skips. If there are more
/// ranges than it has room for, the lowest is forgotten.
#[derive(Debug)]
pub struct Missing {
    gaps: VecDeque<Gap>,
    capacity: usize,
    /// The state of numbers below this is unknown.
    horizon: u64,
}

impl Missing {
    /// Room for `capacity` ranges of 16 bytes; the state of numbers below `horizon` is unknown.
    pub fn new(capacity: usize, horizon: u64) -> Self {
        Missing { gaps: VecDeque::with_capacity(capacity), capacity, horizon }
    }

    /// Forgets everything; the state of numbers below `horizon` is unknown from now on.
    pub fn restart(&mut self, horizon: u64) {
        self.gaps.clear();
        self.horizon = horizon;
    }

    /// The number of ranges.
    pub fn len(&self) -> usize {
        self.gaps.len()
    }

    /// The number of ranges that fit into its memory; must not change.
    #[cfg(test)]
    pub fn room(&self) -> usize {
        self.gaps.capacity()
    }

    /// The arrival with index `at` skipped `len` numbers from `first` on, which are larger than all
    /// others.
    pub fn jump(&mut self, first: u64, len: u32, at: u32) {
        if len > 0 {
            self.insert(self.gaps.len(), Gap { first, len, jumped_at: at });
        }
    }

    /// A number has arrived: removes it from the list if it is there.
    pub fn take(&mut self, number: u64) -> Place {
        if number < self.horizon {
            return Place::Forgotten;
        }
        let index = self.gaps.partition_point(|gap| gap.end() <= number);
        let Some(gap) = self.gaps.get_mut(index).filter(|gap| gap.first <= number) else {
            return Place::Present;
        };
        let below = Gap { len: (number - gap.first) as u32, ..*gap };
        *gap = Gap { first: number + 1, len: gap.len - below.len - 1, ..*gap };
        match (below.len, gap.len) {
            (0, 0) => drop(self.gaps.remove(index)),
            (0, _) => {}
            (_, 0) => *gap = below,
            _ => self.insert(index, below),
        }
        Place::Missing(below.jumped_at)
    }

    /// Inserts a range before that at `index`; if there is no room, the lowest is forgotten.
    fn insert(&mut self, index: usize, gap: Gap) {
        if self.gaps.len() < self.capacity {
            return self.gaps.insert(index, gap);
        }
        if index == 0 {
            self.horizon = gap.end();
        } else if let Some(lowest) = self.gaps.pop_front() {
            self.horizon = lowest.end();
            self.gaps.insert(index - 1, gap);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_shrinks_at_both_ends_splits_and_goes() {
        let mut missing = Missing::new(8, 0);
        missing.jump(10, 5, 7);
        for (number, ranges) in [(10, 1), (14, 1), (12, 2), (11, 1), (13, 0)] {
            assert_eq!(missing.take(number), Place::Missing(7));
            assert_eq!(missing.take(number), Place::Present);
            assert_eq!(missing.len(), ranges);
        }
    }

    #[test]
    fn the_lowest_range_is_forgotten() {
        let mut missing = Missing::new(2, 0);
        for (first, at) in [(10, 1), (20, 2), (30, 3)] {
            missing.jump(first, 5, at);
        }
        assert_eq!(missing.len(), 2);
        assert_eq!(missing.take(14), Place::Forgotten);
        assert_eq!(missing.take(15), Place::Present);
        // Splitting the lower one leaves no room for its lower part.
        assert_eq!(missing.take(22), Place::Missing(2));
        assert_eq!(missing.take(21), Place::Forgotten);
        assert_eq!((missing.take(22), missing.take(23)), (Place::Present, Place::Missing(2)));
        // Splitting the upper one forgets the lower.
        assert_eq!(missing.take(32), Place::Missing(3));
        assert_eq!(missing.take(24), Place::Forgotten);
        assert_eq!((missing.take(31), missing.take(33)), (Place::Missing(3), Place::Missing(3)));
    }

    #[test]
    fn without_room_every_gap_is_forgotten() {
        let mut missing = Missing::new(0, 0);
        missing.jump(10, 5, 1);
        assert_eq!((missing.take(14), missing.take(15)), (Place::Forgotten, Place::Present));
    }
}
