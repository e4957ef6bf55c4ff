// SPDX-License-Identifier: BSD-3-Clause
//! Values that change from frame to frame: one value, a list, a counter, or random numbers.

use crate::random::Random;

/// What a field does over successive frames. Arithmetic wraps at the field's width.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Always the same value.
    Value(u128),
    /// Each value in turn, then from the start again. An empty list is the value 0.
    Values(Vec<u128>),
    /// `start`, `start + step`, ... `count` values in all, then from the start again.
    Increment {
        /// First value.
        start: u128,
        /// Added for each frame.
        step: u128,
        /// How many values there are before the first comes again; 0 counts as 1.
        count: u64,
    },
    /// `start`, `start - step`, ... `count` values in all, then from the start again.
    Decrement {
        /// First value.
        start: u128,
        /// Subtracted for each frame.
        step: u128,
        /// How many values there are before the first comes again; 0 counts as 1.
        count: u64,
    },
    /// `count` pseudo-random values, then the same again. The same seed gives the same values on
    /// every machine ([`crate::random`] says how they are drawn).
    Random {
        /// Smallest value.
        min: u128,
        /// Largest value; one below `min` counts as `min`.
        max: u128,
        /// Where the sequence starts.
        seed: u64,
        /// How many values are drawn before the first comes again; 0 counts as 1.
        count: u64,
    },
}

/// Random sequences up to this length are drawn once; longer ones are drawn again in each round.
pub(crate) const MAX_DRAWN: u64 = 65_536;

impl Pattern {
    /// The value of the first frame, before it is cut to a field's width.
    pub fn first(&self) -> u128 {
        match *self {
            Pattern::Value(value) => value,
            Pattern::Values(ref values) => values.first().copied().unwrap_or(0),
            Pattern::Increment { start, .. } | Pattern::Decrement { start, .. } => start,
            Pattern::Random { min, max, seed, .. } => Random::new(seed).between(min, max),
        }
    }

    /// The pattern from its first value on, for a field of `bits` bits (at most 64). Of a random
    /// pattern at most 65536 values are drawn.
    ///
    /// ```
    /// let ports = packet::field::Pattern::Increment { start: 10_000, step: 1, count: 3 };
    /// let mut values = ports.cycle(16);
    /// let six: Vec<u64> = (0..6).map(|_| values.next_value()).collect();
    /// assert_eq!(six, [10_000, 10_001, 10_002, 10_000, 10_001, 10_002]);
    /// ```
    pub fn cycle(&self, bits: u32) -> Cycle {
        let mask = u64::MAX.checked_shr(64 - bits.clamp(1, 64)).unwrap_or(0);
        match *self {
            Pattern::Value(value) => Cycle::counter(value as u64, 0, 1, mask),
            Pattern::Increment { start, step, count } => {
                Cycle::counter(start as u64, step as u64, count, mask)
            }
            Pattern::Decrement { start, step, count } => {
                Cycle::counter(start as u64, (step as u64).wrapping_neg(), count, mask)
            }
            Pattern::Values(ref values) => match values.as_slice() {
                [] => Cycle::counter(0, 0, 1, mask),
                [one] => Cycle::counter(*one as u64, 0, 1, mask),
                many => {
                    Cycle::List { values: many.iter().map(|v| *v as u64 & mask).collect(), at: 0 }
                }
            },
            Pattern::Random { min, max, seed, count } => {
                let mut random = Random::new(seed);
                let draw = |_| random.between(min, max) as u64 & mask;
                Cycle::List { values: (0..count.clamp(1, MAX_DRAWN)).map(draw).collect(), at: 0 }
            }
        }
    }

    /// How many of the low bits differ between values, at most, in a field with the largest value
    /// `max`, all of whose bits are ones.
    pub(crate) fn changing_bits(&self, max: u128) -> u32 {
        let differ = |a: u128, b: u128| 128 - ((a ^ b) & max).leading_zeros();
        let whole = 128 - max.leading_zeros();
        let first = self.first();
        match *self {
            Pattern::Value(_) => 0,
            Pattern::Values(ref values) => {
                values.iter().map(|value| differ(first, *value)).max().unwrap_or(0)
            }
            // What lies between two numbers has the high bits that both have.
            Pattern::Random { min, max, .. } => differ(min, max.max(min)),
            Pattern::Increment { start, step, count } => {
                let (start, moves) = (start & max, u128::from(count.max(1) - 1));
                let last = step.checked_mul(moves).and_then(|way| start.checked_add(way));
                last.filter(|last| *last <= max).map_or(whole, |last| differ(start, last))
            }
            Pattern::Decrement { start, step, count } => {
                let (start, moves) = (start & max, u128::from(count.max(1) - 1));
                let last = step.checked_mul(moves).and_then(|way| start.checked_sub(way));
                last.map_or(whole, |last| differ(start, last))
            }
        }
    }

    /// Whether every frame has the same value.
    pub fn is_constant(&self) -> bool {
        match self {
            Pattern::Value(_) => true,
            Pattern::Values(values) => values.windows(2).all(|pair| pair[0] == pair[1]),
            Pattern::Increment { step, count, .. } | Pattern::Decrement { step, count, .. } => {
                *step == 0 || *count <= 1
            }
            Pattern::Random { min, max, count, .. } => max <= min || *count <= 1,
        }
    }
}

/// A [`Pattern`] being walked: the state that one transmitter keeps for one field.
#[derive(Clone, Debug)]
pub enum Cycle {
    /// Counts by `step` (wrapping, so a decrement is a large step).
    Counter {
        /// First value.
        start: u64,
        /// Added for each frame.
        step: u64,
        /// Values before the first comes again.
        count: u64,
        /// The field's width as a mask.
        mask: u64,
        /// What the next frame gets.
        value: u64,
        /// Values left in this round, the next one included.
        left: u64,
    },
    /// Walks a list.
    List {
        /// The values, already masked.
        values: Box<[u64]>,
        /// Index of the next one.
        at: usize,
    },
}

impl Cycle {
    fn counter(start: u64, step: u64, count: u64, mask: u64) -> Self {
        let (start, count) = (start & mask, count.max(1));
        Cycle::Counter { start, step, count, mask, value: start, left: count }
    }

    /// The value of the next frame; moves on by one.
    #[inline]
    pub fn next_value(&mut self) -> u64 {
        match self {
            Cycle::Counter { start, step, count, mask, value, left } => {
                let this = *value;
                *left -= 1;
                if *left == 0 {
                    (*value, *left) = (*start, *count);
                } else {
                    *value = this.wrapping_add(*step) & *mask;
                }
                this
            }
            Cycle::List { values, at } => {
                let this = values.get(*at).copied().unwrap_or(0);
                *at += 1;
                if *at >= values.len() {
                    *at = 0;
                }
                this
            }
        }
    }

    /// Back to the first value.
    pub fn restart(&mut self) {
        match self {
            Cycle::Counter { start, count, value, left, .. } => (*value, *left) = (*start, *count),
            Cycle::List { at, .. } => *at = 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn decrements_wrap_at_the_width() {
        let mut cycle = Pattern::Decrement { start: 1, step: 1, count: 3 }.cycle(16);
        let four: Vec<u64> = (0..4).map(|_| cycle.next_value()).collect();
        assert_eq!(four, [1, 0, 0xffff, 1]);
    }

    #[test]
    fn constants_are_known_as_such() {
        assert!(Pattern::Value(3).is_constant());
        assert!(Pattern::Values(vec![3, 3]).is_constant());
        assert!(!Pattern::Values(vec![3, 4]).is_constant());
        assert!(!Pattern::Increment { start: 0, step: 1, count: 2 }.is_constant());
    }

    proptest! {
        #[test]
        fn frame_i_has_the_formula_s_value(start: u64, step: u64, count in 0u64..50, bits in 1u32..=64, up: bool) {
            let mask = u64::MAX >> (64 - bits);
            let (wide, by) = (u128::from(start), u128::from(step));
            let pattern = if up { Pattern::Increment { start: wide, step: by, count } } else { Pattern::Decrement { start: wide, step: by, count } };
            let mut cycle = pattern.cycle(bits);
            for i in 0..120u64 {
                let k = i % count.max(1);
                let moved = step.wrapping_mul(k);
                let wanted = if up { start.wrapping_add(moved) } else { start.wrapping_sub(moved) } & mask;
                prop_assert_eq!(cycle.next_value(), wanted);
            }
            cycle.restart();
            prop_assert_eq!(cycle.next_value(), start & mask);
        }

        #[test]
        fn lists_go_round(values in prop::collection::vec(any::<u64>(), 1..9)) {
            let mut cycle = Pattern::Values(values.iter().map(|v| u128::from(*v)).collect()).cycle(64);
            for i in 0..30 {
                prop_assert_eq!(cycle.next_value(), values[i % values.len()]);
            }
        }
    }
}
