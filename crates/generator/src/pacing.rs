// SPDX-License-Identifier: BSD-3-Clause
//! When frames are due: exact rates and the schedule of an open-loop sender.
//!
//! Frame k of a flow is due at `start + k * interval`. The interval is kept with 64 fractional bits
//! of a cycle, so that a schedule is off by less than a cycle after any number of frames that a
//! machine will ever send. A schedule never drops a slot: whoever comes late finds all of them.

/// An exact rate: `frames` frames in `seconds` seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameRate {
    frames: u64,
    seconds: u64,
}

/// Highest rate that a schedule is made for, in frames per second.
pub const MAX_FRAMES_PER_SECOND: u64 = 1_000_000_000;

impl FrameRate {
    /// `frames` frames in `seconds` seconds; `None` when either is 0 or the rate is above
    /// [`MAX_FRAMES_PER_SECOND`].
    ///
    /// ```
    /// use generator::pacing::FrameRate;
    /// // 1 Gbit/s on layer 1 in 64-byte frames: 10^9 / (84 * 8) frames in a second.
    /// let rate = FrameRate::new(1_000_000_000, 672).ok_or("out of range")?;
    /// assert_eq!(rate.frames_in(1_000_000_000), 1_488_096);
    /// # Ok::<(), &str>(())
    /// ```
    pub fn new(frames: u64, seconds: u64) -> Option<Self> {
        let in_range = frames > 0
            && seconds > 0
            && u128::from(frames) <= u128::from(MAX_FRAMES_PER_SECOND) * u128::from(seconds);
        in_range.then_some(FrameRate { frames, seconds })
    }

    /// Frames that are due within `nanoseconds` of the start: one at 0 and all before the end.
    pub fn frames_in(self, nanoseconds: u64) -> u64 {
        let exact = u128::from(self.frames) * u128::from(nanoseconds);
        let frames = exact.div_ceil(u128::from(self.seconds) * 1_000_000_000);
        u64::try_from(frames).unwrap_or(u64::MAX)
    }

    /// Distance of two frames where a second has `hz` cycles.
    pub fn interval(self, hz: u64) -> Interval {
        let cycles = (u128::from(hz) * u128::from(self.seconds)) / u128::from(self.frames);
        let rest = (u128::from(hz) * u128::from(self.seconds)) % u128::from(self.frames);
        // The rest is below 2^64, and so is the quotient of the shifted rest.
        let fraction = (rest << 64) / u128::from(self.frames);
        Interval(cycles.min(u128::from(u64::MAX)) << 64 | fraction)
    }

    /// So many per cent of the rate, exact to a millionth of a per cent; `None` for 0.
    pub fn percent(self, percent: f64) -> Option<Self> {
        const WHOLE: u64 = 100_000_000;
        let millionths = (percent * 1e6).round() as u128;
        let (mut frames, mut seconds) =
            (u128::from(self.frames) * millionths, u128::from(self.seconds) * u128::from(WHOLE));
        // Far below any rate that can be measured.
        while frames > u128::from(u64::MAX) || seconds > u128::from(u64::MAX) {
            (frames, seconds) = (frames >> 1, seconds >> 1);
        }
        FrameRate::new(frames as u64, seconds as u64)
    }
}

/// Cycles between two frames, with 64 fractional bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Interval(u128);

impl Interval {
    /// Whole and broken cycles.
    pub fn cycles(self) -> f64 {
        self.0 as f64 / (1u128 << 64) as f64
    }

    /// Whole cycles, and the rest in parts of 2^-64.
    pub(crate) fn parts(self) -> (u64, u64) {
        ((self.0 >> 64) as u64, self.0 as u64)
    }

    /// The same interval, cut into `parts`: where in it the first of so many flows starts.
    pub fn part(self, part: u64, parts: u64) -> Interval {
        Interval(self.0 / u128::from(parts.max(1)) * u128::from(part))
    }
}

/// The slots of one flow. Times are TSC cycles.
#[derive(Clone, Copy, Debug, Default)]
pub struct Schedule {
    next: u128,
    interval: u128,
}

impl Schedule {
    /// The first slot is `offset` after `start`.
    pub fn new(start: u64, offset: Interval, interval: Interval) -> Self {
        Schedule { next: (u128::from(start) << 64).saturating_add(offset.0), interval: interval.0 }
    }

    /// When the next frame is due.
    #[inline]
    pub fn slot(&self) -> u64 {
        (self.next >> 64) as u64
    }

    /// Goes on to the slot after.
    #[inline]
    pub fn advance(&mut self) {
        self.next = self.next.saturating_add(self.interval);
    }

    /// Slots from the next one up to `now`, at most `limit`.
    pub fn due(&self, now: u64, limit: u64) -> u64 {
        if self.slot() > now {
            return 0;
        }
        let end = (u128::from(now) << 64) | u128::from(u64::MAX);
        match (end - self.next).checked_div(self.interval) {
            Some(slots) => {
                u64::try_from(slots).map_or(limit, |slots| slots.saturating_add(1).min(limit))
            }
            None => limit,
        }
    }
}

/// How far a run of `frames` frames missed its rate, in millionths: positive when it took longer.
/// `duration` is from the first frame to the last, in cycles. `None` below two frames.
pub fn error_ppm(frames: u64, duration: u64, interval: Interval) -> Option<f64> {
    let ideal = frames.checked_sub(1).filter(|gaps| *gaps > 0)? as f64 * interval.cycles();
    (ideal > 0.0).then(|| (duration as f64 / ideal - 1.0) * 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rates_out_of_range_are_none() {
        assert_eq!(FrameRate::new(0, 1), None);
        assert_eq!(FrameRate::new(1, 0), None);
        assert_eq!(FrameRate::new(1_000_000_001, 1), None);
        assert!(FrameRate::new(1_000_000_000, 1).is_some());
    }

    #[test]
    fn a_second_at_a_whole_rate_has_exactly_that_many_frames() {
        for frames in [1, 3, 1000, 14_880_952] {
            assert_eq!(FrameRate::new(frames, 1).unwrap().frames_in(1_000_000_000), frames);
        }
    }

    #[test]
    fn the_error_of_a_perfect_run_is_zero() {
        let interval = FrameRate::new(1000, 1).unwrap().interval(2_000_000_000);
        assert_eq!(error_ppm(1001, 2_000_000_000, interval), Some(0.0));
        assert_eq!(error_ppm(1, 0, interval), None);
        let late = error_ppm(1001, 2_002_000_000, interval).unwrap();
        assert!((late - 1000.0).abs() < 1e-6, "{late}");
    }

    proptest! {
        // Poll a schedule at random, late and early, until its time is over: it has offered
        // exactly the intended frames, each at its slot or after it.
        #[test]
        fn a_schedule_offers_exactly_the_intended_frames(
            frames in 1u64..20_000_000, seconds in 1u64..2000, hz in 1_000_000_000u64..5_000_000_000,
            start in 0u64..1 << 62, steps in prop::collection::vec(0.0f64..2.0, 1..60),
        ) {
            let rate = FrameRate::new(frames, seconds).unwrap();
            let interval = rate.interval(hz);
            // A time in which some thousand frames are due.
            let wanted = 3000u64;
            let nanoseconds = (u128::from(wanted) * u128::from(seconds) * 1_000_000_000 / u128::from(frames)) as u64;
            let intended = rate.frames_in(nanoseconds);
            let mut schedule = Schedule::new(start, Interval::default(), interval);
            let (mut sent, mut now, mut step) = (0u64, start, 0);
            while sent < intended {
                let due = schedule.due(now, intended - sent);
                for _ in 0..due {
                    prop_assert!(schedule.slot() <= now);
                    let exact = start + (u128::from(sent) * u128::from(hz) * u128::from(seconds) / u128::from(frames)) as u64;
                    prop_assert!(schedule.slot().abs_diff(exact) <= 1, "slot {} exact {exact}", schedule.slot());
                    schedule.advance();
                    sent += 1;
                }
                prop_assert!(sent == intended || schedule.slot() > now);
                now += 1 + (interval.cycles() * 40.0 * steps[step % steps.len()]) as u64;
                step += 1;
            }
            prop_assert_eq!(sent, intended);
            // The slot after the last is not before the end of the time.
            let end = start + (u128::from(nanoseconds) * u128::from(hz) / 1_000_000_000) as u64;
            prop_assert!(schedule.slot() + 1 >= end);
        }
    }
}
