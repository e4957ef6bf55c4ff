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

    /// How many values a writer keeps at hand: those of lists, and random numbers of short sequences.
    pub(crate) fn kept(&self) -> usize {
        match self {
            _ if self.is_constant() => 0,
            Pattern::Values(values) => values.len(),
            Pattern::Random { count, .. } if *count <= MAX_DRAWN => *count as usize,
            _ => 0,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_known_as_such() {
        assert!(Pattern::Value(3).is_constant());
        assert!(Pattern::Values(vec![3, 3]).is_constant());
        assert!(!Pattern::Values(vec![3, 4]).is_constant());
        assert!(!Pattern::Increment { start: 0, step: 1, count: 2 }.is_constant());
    }
}
