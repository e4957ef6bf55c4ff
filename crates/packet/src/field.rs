// SPDX-License-Identifier: BSD-3-Clause
//! Values that change from frame to frame: one value, a list, or a counter.

/// What a field does over successive frames. Arithmetic wraps at the field's width.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Always the same value.
    Value(u64),
    /// Each value in turn, then from the start again. An empty list is the value 0.
    Values(Vec<u64>),
    /// `start`, `start + step`, ... `count` values in all, then from the start again.
    Increment {
        /// First value.
        start: u64,
        /// Added for each frame.
        step: u64,
        /// How many values there are before the first comes again; 0 counts as 1.
        count: u64,
    },
    /// `start`, `start - step`, ... `count` values in all, then from the start again.
    Decrement {
        /// First value.
        start: u64,
        /// Subtracted for each frame.
        step: u64,
        /// How many values there are before the first comes again; 0 counts as 1.
        count: u64,
    },
}

impl Pattern {
    /// The pattern from its first value on, for a field of `bits` bits (at most 64).
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
            Pattern::Value(value) => Cycle::counter(value, 0, 1, mask),
            Pattern::Increment { start, step, count } => Cycle::counter(start, step, count, mask),
            Pattern::Decrement { start, step, count } => {
                Cycle::counter(start, step.wrapping_neg(), count, mask)
            }
            Pattern::Values(ref values) => match values.as_slice() {
                [] => Cycle::counter(0, 0, 1, mask),
                [one] => Cycle::counter(*one, 0, 1, mask),
                many => Cycle::List { values: many.iter().map(|v| v & mask).collect(), at: 0 },
            },
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
            let pattern = if up { Pattern::Increment { start, step, count } } else { Pattern::Decrement { start, step, count } };
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
            let mut cycle = Pattern::Values(values.clone()).cycle(64);
            for i in 0..30 {
                prop_assert_eq!(cycle.next_value(), values[i % values.len()]);
            }
        }
    }
}
