// SPDX-License-Identifier: BSD-3-Clause
//! Which of a flow's frames left while their sender was late.

use measure::Cell;

/// Number of ranges that are kept: far more than can be on the wire at once.
const KEPT: usize = 16;
/// The end of a range that has not ended yet.
const LASTS: u64 = u64::MAX;

/// The latest ranges of a flow's sequence numbers. The thread that sends the flow writes them,
/// before the first frame of a range leaves; the threads that receive it read them. Numbers are
/// modulo 2^32.
#[derive(Debug, Default)]
pub struct Ranges {
    begun: Cell,
    kept: [Range; KEPT],
}

/// From the first number in it to the first one after it.
#[derive(Debug, Default)]
struct Range {
    from: Cell,
    to: Cell,
}

impl Ranges {
    fn at(&self, number: u64) -> &Range {
        &self.kept[number as usize % KEPT]
    }

    fn latest(&self) -> Option<&Range> {
        Some(self.at(self.begun.get().checked_sub(1)?))
    }

    /// Returns true if a range has begun and not ended.
    pub fn last(&self) -> bool {
        self.latest().is_some_and(|latest| latest.to.get() == LASTS)
    }

    /// Begins a range with number `from`. Only the writer may call this, `end` and `clear`.
    pub fn begin(&self, from: u32) {
        let begun = self.begun.get();
        let range = self.at(begun);
        range.from.set(from.into());
        range.to.set(LASTS);
        self.begun.set(begun + 1);
    }

    /// Ends the present range; `to` is the first number after it.
    pub fn end(&self, to: u32) {
        if let Some(latest) = self.latest() {
            latest.to.set(to.into());
        }
    }

    /// Removes all ranges.
    pub fn clear(&self) {
        self.begun.set(0);
    }

    /// Returns how many of the `count` numbers from `first` on are in kept ranges.
    #[inline]
    pub fn overlap(&self, first: u32, count: u32) -> u32 {
        match self.latest().map(|latest| latest.to.get()) {
            None => 0,
            // The usual case: a range has ended, and these frames were sent afterwards.
            Some(to) if to != LASTS && (first.wrapping_sub(to as u32) as i32) >= 0 => 0,
            Some(_) => self.overlap_with_all(first, count),
        }
    }

    #[cold]
    fn overlap_with_all(&self, first: u32, count: u32) -> u32 {
        let begun = self.begun.get();
        let numbers = begun.saturating_sub(KEPT as u64)..begun;
        let count = i64::from(count);
        let within = |range: &Range| {
            // Where it begins and ends relative to `first`; both may be outside the row.
            let place = |number: u64| i64::from((number as u32).wrapping_sub(first) as i32);
            let to = range.to.get();
            let end = if to == LASTS { count } else { place(to).min(count) };
            (end - place(range.from.get()).max(0)).max(0)
        };
        numbers.map(|number| within(self.at(number))).sum::<i64>().min(count) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_range_lasts_until_it_is_ended() {
        let ranges = Ranges::default();
        assert_eq!((ranges.overlap(0, 32), ranges.last()), (0, false));
        ranges.begin(10);
        assert_eq!((ranges.overlap(0, 32), ranges.last()), (22, true));
        ranges.end(20);
        assert_eq!((ranges.overlap(0, 32), ranges.last()), (10, false));
        assert_eq!((ranges.overlap(20, 32), ranges.overlap(19, 1)), (0, 1));
        ranges.clear();
        assert_eq!(ranges.overlap(0, 32), 0);
    }

    proptest! {
        #[test]
        fn as_many_are_inside_as_looking_at_each_finds(
            start: u32, lens in prop::collection::vec((1u32..50, 1u32..50), 1..KEPT),
            rows in prop::collection::vec((0u32..1500, 1u32..70), 1..20), open: bool,
        ) {
            let ranges = Ranges::default();
            let (mut at, mut inside) = (0, Vec::new());
            for (number, (apart, len)) in lens.iter().enumerate() {
                at += apart;
                ranges.begin(start.wrapping_add(at));
                if open && number + 1 == lens.len() {
                    inside.push(at..u32::MAX);
                } else {
                    inside.push(at..at + len);
                    at += len;
                    ranges.end(start.wrapping_add(at));
                }
            }
            for (first, count) in rows {
                let expected = (first..first + count)
                    .filter(|number| inside.iter().any(|range| range.contains(number)))
                    .count();
                let found = ranges.overlap(start.wrapping_add(first), count);
                prop_assert_eq!(found as usize, expected);
            }
        }
    }
}
