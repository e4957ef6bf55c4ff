// SPDX-License-Identifier: BSD-3-Clause
//! Patterns being walked, many values at a time.

use super::{BURST, LANES, Lanes};
use crate::field::{MAX_DRAWN, Pattern};
use crate::random::Random;

/// A type of values: `u32`, `u64` or `u128`, the smallest that holds a field.
pub trait Word: Copy + Default {
    /// The low bits of `value`.
    fn cut(value: u128) -> Self;
    /// The low 64 bits.
    fn low(self) -> u64;
    /// All bits.
    fn whole(self) -> u128;
    /// The sum, modulo the type's width.
    fn plus(self, other: Self) -> Self;
    /// The product with a number, modulo the type's width.
    fn times(self, n: u64) -> Self;
    /// The bits that both have.
    fn and(self, mask: Self) -> Self;
    /// What the value, shifted left by `shift` bits (at most 15), adds to an internet checksum: a
    /// sum of at most 18 bits.
    fn adds(self, shift: u32) -> u32;
    /// The values themselves as what they add, where they are `short`, of at most 16 bits, and of
    /// the right type.
    fn themselves(_values: &Lanes<Self>, _short: bool) -> Option<&Lanes<u32>> {
        None
    }
}

/// Folds 32 bits once; the result has at most 17.
#[inline]
const fn fold_once(sum: u32) -> u32 {
    (sum & 0xffff) + (sum >> 16)
}

macro_rules! word {
    ($type:ty, $value:ident => $words:expr $(, $themselves:item)?) => {
        impl Word for $type {
            #[inline]
            fn cut(value: u128) -> Self {
                value as $type
            }
            #[inline]
            fn low(self) -> u64 {
                self as u64
            }
            #[inline]
            fn whole(self) -> u128 {
                self as u128
            }
            #[inline]
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            #[inline]
            fn times(self, n: u64) -> Self {
                self.wrapping_mul(n as $type)
            }
            #[inline]
            fn and(self, mask: Self) -> Self {
                self & mask
            }
            #[inline]
            fn adds(self, shift: u32) -> u32 {
                let $value = self;
                let sum: u32 = $words;
                // 17 bits shifted by 15 still fit.
                if shift == 0 { sum } else { fold_once(sum << shift) }
            }
            $(#[inline] $themselves)?
        }
    };
}

word!(
    u32, v => fold_once(v),
    fn themselves(values: &Lanes<u32>, short: bool) -> Option<&Lanes<u32>> {
        short.then_some(values)
    }
);
word!(u64, v => {
    let sum = (v & 0xffff) + (v >> 16 & 0xffff) + (v >> 32 & 0xffff) + (v >> 48);
    fold_once(sum as u32)
});
word!(u128, v => {
    let halves = [v as u64, (v >> 64) as u64].map(|half| half.adds(0));
    fold_once(halves[0] + halves[1])
});

/// A pattern being walked: the state that one writer keeps for one field.
#[derive(Clone, Debug)]
pub enum Source<T> {
    /// Counts by `step`, which wraps, so that a decrement is a large step. More than [`BURST`]
    /// values long, so that a burst sees the end at most once. `ramp` is the first [`LANES`]
    /// multiples of `step`.
    Counter { start: T, step: T, ramp: [T; LANES], mask: T, count: u64, value: T, left: u64 },
    /// Walks a list, which goes on for a burst behind its end, so that any burst is one piece.
    List { values: Box<[T]>, period: usize, at: usize },
    /// Draws numbers, too many for a list.
    Random { min: u128, max: u128, mask: T, seed: u64, count: u64, random: Random, left: u64 },
}

impl<T: Word> Source<T> {
    /// The pattern from its first value on, for a field with the largest value `mask`.
    pub fn new(pattern: &Pattern, mask: u128) -> Self {
        let cut = |value: u128| T::cut(value & mask);
        match *pattern {
            Pattern::Value(value) => Self::list(vec![cut(value)]),
            Pattern::Values(ref values) if values.is_empty() => Self::list(vec![T::default()]),
            Pattern::Values(ref values) => Self::list(values.iter().map(|v| cut(*v)).collect()),
            Pattern::Increment { start, step, count } => Self::counter(start, step, count, mask),
            Pattern::Decrement { start, step, count } => {
                Self::counter(start, step.wrapping_neg(), count, mask)
            }
            Pattern::Random { min, max, seed, count } => {
                let (mut random, count) = (Random::new(seed), count.max(1));
                if count > MAX_DRAWN {
                    let mask = T::cut(mask);
                    return Source::Random { min, max, mask, seed, count, random, left: count };
                }
                Self::list((0..count).map(|_| cut(random.between(min, max))).collect())
            }
        }
    }

    fn counter(start: u128, step: u128, count: u64, mask: u128) -> Self {
        let count = count.max(1);
        if count <= BURST as u64 {
            let value = |i: u64| start.wrapping_add(step.wrapping_mul(i.into())) & mask;
            return Self::list((0..count).map(|i| T::cut(value(i))).collect());
        }
        let (start, step, mask) = (T::cut(start & mask), T::cut(step), T::cut(mask));
        let ramp = std::array::from_fn(|i| step.times(i as u64));
        Source::Counter { start, step, ramp, mask, count, value: start, left: count }
    }

    fn list(mut values: Vec<T>) -> Self {
        let period = values.len();
        for i in 0..BURST {
            values.push(values[i]);
        }
        Source::List { values: values.into(), period, at: 0 }
    }

    /// The next `n` values, `n` at most [`BURST`]. What is in the lanes behind them means nothing.
    #[inline]
    pub fn fill(&mut self, out: &mut Lanes<T>, n: usize) {
        match self {
            Source::Counter { start, step, ramp, mask, count, value, left } => {
                if *left > n as u64 {
                    let by = step.times(LANES as u64);
                    let mut from = *value;
                    for lanes in out.iter_mut().take(n.div_ceil(LANES)) {
                        for (out, more) in lanes.iter_mut().zip(&*ramp) {
                            *out = from.plus(*more).and(*mask);
                        }
                        from = from.plus(by);
                    }
                    (*value, *left) = (value.plus(step.times(n as u64)), *left - n as u64);
                    return;
                }
                for out in out.as_flattened_mut().iter_mut().take(n) {
                    *out = value.and(*mask);
                    (*value, *left) = (value.plus(*step), *left - 1);
                    if *left == 0 {
                        (*value, *left) = (*start, *count);
                    }
                }
            }
            Source::List { values, period, at } => {
                if let Some(next) = values.get(*at..).and_then(|rest| rest.first_chunk::<BURST>()) {
                    out.as_flattened_mut().copy_from_slice(next);
                }
                *at += n;
                if *at >= *period {
                    *at %= *period;
                }
            }
            Source::Random { min, max, mask, seed, count, random, left } => {
                for out in out.as_flattened_mut().iter_mut().take(n) {
                    *out = T::cut(random.between(*min, *max)).and(*mask);
                    *left -= 1;
                    if *left == 0 {
                        (*random, *left) = (Random::new(*seed), *count);
                    }
                }
            }
        }
    }

    /// Back to the first value.
    pub fn restart(&mut self) {
        match self {
            Source::Counter { start, count, value, left, .. } => (*value, *left) = (*start, *count),
            Source::List { at, .. } => *at = 0,
            Source::Random { seed, count, random, left, .. } => {
                (*random, *left) = (Random::new(*seed), *count);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn patterns() -> impl Strategy<Value = Pattern> {
        let number = || prop_oneof![0u128..20, 240u128..=260, any::<u128>()];
        let count = || prop_oneof![0u64..20, 200u64..300];
        prop_oneof![
            number().prop_map(Pattern::Value),
            prop::collection::vec(number(), 0..6).prop_map(Pattern::Values),
            (number(), number(), count()).prop_map(|(start, step, count)| Pattern::Increment {
                start,
                step,
                count
            }),
            (number(), number(), count()).prop_map(|(start, step, count)| Pattern::Decrement {
                start,
                step,
                count
            }),
            (number(), number(), any::<u64>(), count())
                .prop_map(|(min, max, seed, count)| Pattern::Random { min, max, seed, count }),
        ]
    }

    proptest! {
        #[test]
        fn values_stay_in_their_bounds(pattern in patterns(), bits in 1u32..=128) {
            let max = u128::MAX >> (128 - bits);
            let mut source = Source::<u128>::new(&pattern, max);
            let mut values = Vec::new();
            while values.len() < 600 {
                let mut next = Lanes::default();
                source.fill(&mut next, BURST);
                values.extend_from_slice(next.as_flattened());
            }
            let varying = values.iter().fold(0, |bits, value| bits | (value ^ values[0]));
            prop_assert_eq!(varying & !pattern.varying(max), 0);
            let changing = 128 - varying.leading_zeros();
            prop_assert!(changing <= pattern.changing_bits(max));
            if let Some((low, high)) = pattern.bounds(max) {
                prop_assert!(values.iter().all(|value| (low..=high).contains(value)));
            }
        }
    }
}
