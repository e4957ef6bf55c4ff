// SPDX-License-Identifier: BSD-3-Clause
//! Which frames a rule affects: every Nth, or each with probability 1/N.

/// A sequence of numbers that a seed determines: SplitMix64 (Steele, Lea, Flood, 2014).
pub(super) struct Random(u64);

impl Random {
    /// The sequence of a seed. Different values of `stream` give rules that affect different
    /// frames.
    pub(super) fn new(seed: u64, stream: u64) -> Self {
        let mut streams = Self(stream);
        Self(seed ^ streams.next())
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from 0 to `n - 1`, uniform to one part in 2^64 / n; 0 if `n` is 0.
    pub(super) fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(n)) >> 64) as u64
    }
}

/// A rule that affects one frame in N.
pub(super) struct Every {
    n: u64,
    how: How,
}

enum How {
    /// Frames since the last one affected.
    Exactly(u64),
    ByChance(Random),
}

impl Every {
    /// Affects every `n`th frame, or with a random source each with probability 1/n.
    pub(super) fn new(n: u64, chance: Option<Random>) -> Self {
        Self { n, how: chance.map_or(How::Exactly(0), How::ByChance) }
    }

    /// Returns true if the rule affects the present frame.
    #[inline]
    pub(super) fn hits(&mut self) -> bool {
        match &mut self.how {
            How::Exactly(seen) => {
                *seen += 1;
                let hit = *seen >= self.n;
                if hit {
                    *seen = 0;
                }
                hit
            }
            How::ByChance(random) => random.below(self.n) == 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hits(mut every: Every, frames: usize) -> Vec<usize> {
        (1..=frames).filter(|_| every.hits()).collect()
    }

    #[test]
    fn exactly_each_nth_frame_is_hit() {
        assert_eq!(hits(Every::new(1, None), 4), [1, 2, 3, 4]);
        assert_eq!(hits(Every::new(3, None), 10), [3, 6, 9]);
    }

    #[test]
    fn chance_is_the_same_for_a_seed_and_about_one_in_n() {
        let by_chance =
            |seed, stream| hits(Every::new(10, Some(Random::new(seed, stream))), 100_000);
        let first = by_chance(1, 0);
        assert_eq!(first, by_chance(1, 0));
        assert_ne!(first, by_chance(2, 0), "another seed");
        assert_ne!(first, by_chance(1, 1), "another stream");
        // Six standard deviations of a binomial distribution: 6 * sqrt(100000 * 0.1 * 0.9).
        assert!(first.len().abs_diff(10_000) < 570, "{}", first.len());
        assert!(first.windows(2).any(|pair| pair[1] - pair[0] != 10));
        let mut random = Random::new(7, 0);
        assert_eq!((random.below(0), random.below(1)), (0, 0));
        assert!((0..1000).all(|_| random.below(3) < 3));
    }
}
