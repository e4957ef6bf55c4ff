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

    /// The smallest and the largest value in a field with the largest value `max`, all of whose bits are ones;
    /// `None` if values wrap around.
    pub(crate) fn bounds(&self, max: u128) -> Option<(u128, u128)> {
        let first = self.first() & max;
        match *self {
            Pattern::Value(_) => Some((first, first)),
            Pattern::Values(ref values) => {
                let values = || values.iter().map(|value| value & max);
                Some((values().min().unwrap_or(0), values().max().unwrap_or(0)))
            }
            Pattern::Random { min, max: most, .. } => {
                let most = most.max(min);
                ((min ^ most) & !max == 0).then_some((min & max, most & max))
            }
            Pattern::Increment { step, count, .. } => {
                let way = step.checked_mul(u128::from(count.max(1) - 1))?;
                let last = first.checked_add(way).filter(|last| *last <= max)?;
                Some((first, last))
            }
            Pattern::Decrement { step, count, .. } => {
                let way = step.checked_mul(u128::from(count.max(1) - 1))?;
                Some((first.checked_sub(way)?, first))
            }
        }
    }

    /// How many of the low bits differ between values, at most, in a field with the largest value
    /// `max`, all of whose bits are ones.
    pub(crate) fn changing_bits(&self, max: u128) -> u32 {
        // All values between two numbers have the high bits that both have.
        let differ = |(low, high): (u128, u128)| 128 - (low ^ high).leading_zeros();
        self.bounds(max).map_or(128 - max.leading_zeros(), differ)
    }

    /// The bits that may differ between values, in a field with the largest value `max`, all of whose
    /// bits are ones.
    pub(crate) fn varying(&self, max: u128) -> u128 {
        let ones = |bits: u32| 1u128.checked_shl(bits).map_or(u128::MAX, |bit| bit - 1);
        let changing = ones(self.changing_bits(max));
        match *self {
            Pattern::Values(ref values) => {
                let first = self.first();
                values.iter().fold(0, |bits, value| bits | (value ^ first)) & max
            }
            // Multiples of a power of two leave the bits below it alone.
            Pattern::Increment { step, .. } | Pattern::Decrement { step, .. } => {
                changing & !ones(step.trailing_zeros())
            }
            Pattern::Value(_) | Pattern::Random { .. } => changing,
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

    /// The values as a function of the frame's number, in a field with the largest value `max`, all
    /// of whose bits are ones. `None` for more than 65,536 random numbers, each of which follows from
    /// the one before it.
    ///
    /// ```
    /// use packet::field::Pattern;
    /// let course = Pattern::Decrement { start: 1, step: 1, count: 3 }.course(0xff).ok_or("random")?;
    /// assert_eq!([0, 1, 2, 3].map(|frame| course.at(frame)), [1, 0, 255, 1]);
    /// # Ok::<(), &str>(())
    /// ```
    pub fn course(&self, max: u128) -> Option<Course> {
        let counter = |start: u128, step: u128, count: u64| match count {
            0 | 1 => Course::List(vec![start & max]),
            _ => Course::Counter { start, step, count, max },
        };
        Some(match *self {
            Pattern::Value(value) => Course::List(vec![value & max]),
            Pattern::Values(ref values) => {
                Course::List(values.iter().map(|value| value & max).collect())
            }
            Pattern::Increment { start, step, count } => counter(start, step, count),
            Pattern::Decrement { start, step, count } => counter(start, step.wrapping_neg(), count),
            Pattern::Random { count, .. } if count > MAX_DRAWN => return None,
            Pattern::Random { min, max: most, seed, count } => {
                let mut random = Random::new(seed);
                let draws = (0..count.max(1)).map(|_| random.between(min, most) & max);
                Course::List(draws.collect())
            }
        })
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

/// The values of a field as a function of the frame's number in its flow, which starts at 0
/// ([`Pattern::course`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Course {
    /// Each in turn, then from the start again.
    List(Vec<u128>),
    /// `count` steps from `start`, then from the start again, cut to the bits of `max`.
    Counter {
        /// First value.
        start: u128,
        /// Added for each frame, modulo 2^128.
        step: u128,
        /// How many values there are before the first comes again, at least 2.
        count: u64,
        /// The field's largest value.
        max: u128,
    },
}

impl Course {
    /// The value in the frame of this number.
    #[inline]
    pub fn at(&self, frame: u64) -> u128 {
        match self {
            Course::List(values) => {
                let at = frame % (values.len() as u64).max(1);
                values.get(at as usize).copied().unwrap_or(0)
            }
            Course::Counter { start, step, count, max } => {
                let steps = u128::from(frame % (*count).max(1));
                start.wrapping_add(step.wrapping_mul(steps)) & max
            }
        }
    }

    /// After how many frames the first value comes again.
    pub fn period(&self) -> u64 {
        match self {
            Course::List(values) => (values.len() as u64).max(1),
            Course::Counter { count, .. } => (*count).max(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{FrameSpec, Header};
    use crate::headers;
    use crate::payload::Payload;
    use crate::size::Sizes;
    use crate::writer::FrameWriter;
    use proptest::prelude::*;

    fn patterns() -> impl Strategy<Value = Pattern> {
        let (start, step, count) = (any::<u128>(), 0u128..70_000, 0u64..70);
        prop_oneof![
            any::<u128>().prop_map(Pattern::Value),
            prop::collection::vec(any::<u128>(), 0..5).prop_map(Pattern::Values),
            (start, step.clone(), count.clone())
                .prop_map(|(start, step, count)| Pattern::Increment { start, step, count }),
            (any::<u128>(), step, count.clone())
                .prop_map(|(start, step, count)| Pattern::Decrement { start, step, count }),
            (0u128..70_000, 0u128..70_000, any::<u64>(), count)
                .prop_map(|(min, max, seed, count)| Pattern::Random { min, max, seed, count }),
        ]
    }

    proptest! {
        #[test]
        fn a_course_has_the_values_of_the_frames(pattern in patterns()) {
            let spec = FrameSpec {
                headers: vec![Header::new(&headers::UDP).with("src_port", pattern.clone()).unwrap()],
                sizes: Sizes::Fixed(64),
                payload: Payload::default(),
                signature: None,
            };
            let mut frames = vec![Vec::new(); 150];
            FrameWriter::new(&spec, 0).unwrap().write(&mut frames, 0, false);
            let course = pattern.course(0xffff).unwrap();
            for (number, frame) in frames.iter().enumerate() {
                let sent = u16::from_be_bytes([frame[0], frame[1]]);
                prop_assert_eq!(course.at(number as u64), u128::from(sent), "{}", number);
                prop_assert_eq!(course.at(number as u64 + course.period()), u128::from(sent));
            }
        }
    }

    #[test]
    fn long_random_sequences_have_no_course() {
        let random = |count| Pattern::Random { min: 0, max: 9, seed: 1, count };
        assert!(random(65_536).course(0xff).is_some());
        assert!(random(65_537).course(0xff).is_none());
    }

    #[test]
    fn constants_are_known_as_such() {
        assert!(Pattern::Value(3).is_constant());
        assert!(Pattern::Values(vec![3, 3]).is_constant());
        assert!(!Pattern::Values(vec![3, 4]).is_constant());
        assert!(!Pattern::Increment { start: 0, step: 1, count: 2 }.is_constant());
    }
}
