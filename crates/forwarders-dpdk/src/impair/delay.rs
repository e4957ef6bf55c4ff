// SPDX-License-Identifier: BSD-3-Clause
//! Holds frames for a time.

use std::collections::VecDeque;

use super::every::Random;

/// Holds every frame for a time, in order, up to a fixed number of frames. Times are TSC cycles.
pub(super) struct Delay<F> {
    cycles: u64,
    jitter: u64,
    random: Random,
    /// Most frames held at once.
    limit: usize,
    /// When the last frame received is to leave.
    last: u64,
    held: VecDeque<(u64, F)>,
}

impl<F> Delay<F> {
    /// Holds each frame for `cycles` and up to `jitter` more.
    pub(super) fn new(cycles: u64, jitter: u64, random: Random, limit: usize) -> Self {
        let held = VecDeque::with_capacity(limit);
        Self { cycles, jitter, random, limit, last: 0, held }
    }

    /// Holds a frame that comes at `now`. It leaves no earlier than the one before it.
    ///
    /// # Errors
    /// Gives it back if there is no room.
    #[inline]
    pub(super) fn hold(&mut self, frame: F, now: u64) -> Result<(), F> {
        if self.held.len() >= self.limit {
            return Err(frame);
        }
        let jitter = match self.jitter {
            0 => 0,
            most => self.random.below(most + 1),
        };
        self.last = self.last.max(now + self.cycles + jitter);
        self.held.push_back((self.last, frame));
        Ok(())
    }

    /// The next frame whose time is up.
    #[inline]
    pub(super) fn release(&mut self, now: u64) -> Option<F> {
        if self.held.front()?.0 > now {
            return None;
        }
        self.held.pop_front().map(|(_, frame)| frame)
    }

    /// Frames that are held.
    pub(super) fn held(&self) -> usize {
        self.held.len()
    }

    /// Gives up all frames that are held; returns their number.
    pub(super) fn end(&mut self) -> usize {
        let held = self.held.len();
        self.held.clear();
        held
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_frame_leaves_when_its_time_has_come_and_not_before() {
        let mut delay = Delay::new(100, 0, Random::new(1, 0), 2);
        assert_eq!(delay.hold('a', 1000), Ok(()));
        assert_eq!(delay.hold('b', 1050), Ok(()));
        assert_eq!(delay.hold('c', 1060), Err('c'), "full");
        assert_eq!(delay.release(1099), None);
        assert_eq!(delay.release(1100), Some('a'));
        assert_eq!(delay.release(1149), None);
        assert_eq!(delay.hold('d', 1149), Ok(()));
        assert_eq!(delay.release(2000), Some('b'));
        assert_eq!((delay.held(), delay.end(), delay.held()), (1, 1, 0));
        assert_eq!(delay.release(9999), None);
    }

    proptest! {
        #[test]
        fn jitter_stays_within_its_bound_and_keeps_the_order(
            seed: u64,
            cycles in 0u64..1000,
            jitter in 0u64..1000,
            gaps in prop::collection::vec(0u64..500, 1..100),
        ) {
            let mut delay = Delay::new(cycles, jitter, Random::new(seed, 0), gaps.len());
            let mut same = Delay::new(cycles, jitter, Random::new(seed, 0), gaps.len());
            let mut now = 0;
            let mut latest = 0;
            for (frame, gap) in gaps.iter().enumerate() {
                now += gap;
                prop_assert!(delay.hold(frame, now).is_ok() && same.hold(frame, now).is_ok());
                let due = delay.held.back().unwrap().0;
                prop_assert!(due >= now + cycles && due <= now + cycles + jitter);
                prop_assert!(due >= latest);
                latest = due;
            }
            prop_assert_eq!(&delay.held, &same.held);
            let left: Vec<usize> = std::iter::from_fn(|| delay.release(latest)).collect();
            prop_assert_eq!(left, (0..gaps.len()).collect::<Vec<_>>());
        }
    }
}
