// SPDX-License-Identifier: BSD-3-Clause
//! When frames are due: exact rates, and the schedule of an open-loop sender.
//!
//! Frame k of a flow is due at `start + k * interval`. The interval has 64 fractional bits of a
//! cycle, so that a schedule is off by less than a cycle after any number of frames that a machine
//! can send. A schedule never drops a slot: a late sender finds all of them.

/// An exact rate: `frames` frames in `seconds` seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameRate {
    frames: u64,
    seconds: u64,
}

/// Highest rate of a schedule, in frames per second.
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

    /// The rate of frames of `bits` bits each, on average, that makes `bits_per_second`; `None` if
    /// [`FrameRate::new`] allows no such rate. The mean is rounded to a thousandth of a bit.
    pub fn from_bits(bits_per_second: u64, bits: f64) -> Option<Self> {
        const PARTS: u64 = 1000;
        let (mut frames, mut seconds) = (
            u128::from(bits_per_second) * u128::from(PARTS),
            (bits * PARTS as f64).round() as u128,
        );
        while frames > u128::from(u64::MAX) {
            (frames, seconds) = (frames >> 1, seconds >> 1);
        }
        FrameRate::new(frames as u64, u64::try_from(seconds).ok()?)
    }

    /// Frames per second.
    pub fn per_second(self) -> f64 {
        self.frames as f64 / self.seconds as f64
    }

    /// Number of frames that are due within `nanoseconds` of the start: one at 0, and all before
    /// the end.
    pub fn frames_in(self, nanoseconds: u64) -> u64 {
        let exact = u128::from(self.frames) * u128::from(nanoseconds);
        let frames = exact.div_ceil(u128::from(self.seconds) * 1_000_000_000);
        u64::try_from(frames).unwrap_or(u64::MAX)
    }

    /// Time between two frames, with a clock of `hz` cycles per second.
    pub fn interval(self, hz: u64) -> Interval {
        let cycles = (u128::from(hz) * u128::from(self.seconds)) / u128::from(self.frames);
        let rest = (u128::from(hz) * u128::from(self.seconds)) % u128::from(self.frames);
        // The remainder is below 2^64, and so is the quotient of the shifted remainder.
        let fraction = (rest << 64) / u128::from(self.frames);
        Interval(cycles.min(u128::from(u64::MAX)) << 64 | fraction)
    }

    /// This percentage of the rate, exact to a millionth of a per cent; `None` for 0.
    pub fn percent(self, percent: f64) -> Option<Self> {
        const WHOLE: u64 = 100_000_000;
        let millionths = (percent * 1e6).round() as u128;
        let (mut frames, mut seconds) =
            (u128::from(self.frames) * millionths, u128::from(self.seconds) * u128::from(WHOLE));
        // Such rates are far below any that can be measured.
        while frames > u128::from(u64::MAX) || seconds > u128::from(u64::MAX) {
            (frames, seconds) = (frames >> 1, seconds >> 1);
        }
        FrameRate::new(frames as u64, seconds as u64)
    }
}

/// What 100 per cent means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineRate {
    /// Bits per second on layer 1.
    Bits(u64),
    /// Frames per second, whatever their size.
    Frames(u64),
}

impl LineRate {
    /// The line rate in frames of `mean_with_fcs` bytes on average.
    pub fn frames(self, mean_with_fcs: f64) -> Option<FrameRate> {
        match self {
            LineRate::Bits(bits) => FrameRate::from_bits(bits, on_wire(mean_with_fcs)),
            LineRate::Frames(frames) => FrameRate::new(frames, 1),
        }
    }

    /// The line rate in bits per second on layer 1, for frames of `mean_with_fcs` bytes on average.
    pub fn bits(self, mean_with_fcs: f64) -> Option<f64> {
        let bits = match self {
            LineRate::Bits(bits) => bits as f64,
            LineRate::Frames(frames) => frames as f64 * on_wire(mean_with_fcs),
        };
        (bits > 0.0).then_some(bits)
    }
}

/// Bits on layer 1 of a frame of `len_with_fcs` bytes, FCS included.
fn on_wire(len_with_fcs: f64) -> f64 {
    (len_with_fcs + packet::L1_OVERHEAD as f64) * 8.0
}

impl std::str::FromStr for LineRate {
    type Err = String;

    /// `12500000` and `12.5Mpps` are frames per second, `10Gbps` bits per second.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bad = || {
            format!(
                "{text:?}: give frames per second, such as 14880952 or 14.88Mpps, or bits per second, such as 10Gbps"
            )
        };
        let (number, bits) = match (text.strip_suffix("bps"), text.strip_suffix("pps")) {
            (_, Some(number)) => (number, false),
            (Some(number), None) => (number, true),
            (None, None) => (text, false),
        };
        let (number, unit) = match number.strip_suffix(['k', 'M', 'G']) {
            Some(rest) if number.ends_with('k') => (rest, 1e3),
            Some(rest) if number.ends_with('M') => (rest, 1e6),
            Some(rest) => (rest, 1e9),
            None => (number, 1.0),
        };
        let value = number.parse::<f64>().map_err(|_| bad())? * unit;
        let most = if bits { 1e15 } else { MAX_FRAMES_PER_SECOND as f64 };
        if !(1.0..=most).contains(&value) {
            return Err(bad());
        }
        let value = value.round() as u64;
        Ok(if bits { LineRate::Bits(value) } else { LineRate::Frames(value) })
    }
}

/// Cycles between two frames, with 64 fractional bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Interval(u128);

impl Interval {
    /// `nanoseconds` with a clock of `hz` cycles per second; negative values count as 0.
    pub fn from_nanoseconds(nanoseconds: f64, hz: u64) -> Interval {
        let cycles = (nanoseconds.max(0.0) * hz as f64 / 1e9).min(u64::MAX as f64);
        let whole = cycles.floor();
        Interval((whole as u128) << 64 | ((cycles - whole) * 2f64.powi(64)) as u128)
    }

    /// Whole cycles, and the fraction in units of 2^-64.
    pub(crate) fn parts(self) -> (u64, u64) {
        (self.whole_cycles(), self.0 as u64)
    }

    /// Whole cycles.
    pub fn whole_cycles(self) -> u64 {
        (self.0 >> 64) as u64
    }

    /// Cycles with their fraction.
    pub fn cycles(self) -> f64 {
        self.0 as f64 / (1u128 << 64) as f64
    }

    /// The fraction `part / parts` of the interval.
    pub fn part(self, part: u64, parts: u64) -> Interval {
        Interval(self.0 / u128::from(parts.max(1)) * u128::from(part))
    }
}

/// The slots of one flow. Times are TSC cycles.
#[derive(Clone, Copy, Debug, Default)]
pub struct Schedule {
    next: u128,
    interval: u128,
    /// Slots left in the present burst, and slots of a whole burst; 0 without bursts.
    left: u64,
    burst: u64,
    gap: u128,
}

impl Schedule {
    /// A schedule whose first slot is `offset` after `start`.
    pub fn new(start: u64, offset: Interval, interval: Interval) -> Self {
        let next = (u128::from(start) << 64).saturating_add(offset.0);
        Schedule { next, interval: interval.0, ..Schedule::default() }
    }

    /// The same slots in bursts of `slots`, with `gap` after the interval of a burst's last slot.
    #[must_use]
    pub fn in_bursts(self, slots: u64, gap: Interval) -> Self {
        Schedule { left: slots, burst: slots, gap: gap.0, ..self }
    }

    /// When the next frame is due.
    #[inline]
    pub fn slot(&self) -> u64 {
        (self.next >> 64) as u64
    }

    /// Advances to the following slot.
    #[inline]
    pub fn advance(&mut self) {
        self.next = self.next.saturating_add(self.interval);
        if self.burst > 0 {
            self.left -= 1;
            if self.left == 0 {
                self.left = self.burst;
                self.next = self.next.saturating_add(self.gap);
            }
        }
    }

    /// Changes the interval at `now`: the next slot is one new interval after the last one, but not
    /// in the past.
    pub fn set_interval(&mut self, interval: Interval, now: u64) {
        let last = self.next.saturating_sub(self.interval);
        let earliest = (u128::from(now) << 64).min(self.next);
        self.next = last.saturating_add(interval.0).max(earliest);
        self.interval = interval.0;
    }

    /// Changes the interval before the first slot, which does not move.
    pub fn begin_with(&mut self, interval: Interval) {
        self.interval = interval.0;
    }

    /// Postpones all slots.
    pub fn put_off(&mut self, cycles: u64) {
        self.next = self.next.saturating_add(u128::from(cycles) << 64);
    }

    /// Number of slots from the next one up to `now`, at most `limit`.
    pub fn due(&self, now: u64, limit: u64) -> u64 {
        if self.slot() > now {
            return 0;
        }
        let end = (u128::from(now) << 64) | u128::from(u64::MAX);
        let passed = end - self.next;
        let slots = if self.burst == 0 {
            passed.checked_div(self.interval).map(|slots| slots.saturating_add(1))
        } else {
            self.due_in_bursts(passed)
        };
        slots.map_or(limit, |slots| u64::try_from(slots).unwrap_or(u64::MAX).min(limit))
    }

    /// Number of slots in `passed` from the next one on; `None` if it is unlimited.
    fn due_in_bursts(&self, passed: u128) -> Option<u128> {
        let span = |slots: u64| self.interval.saturating_mul(u128::from(slots));
        // First the rest of the present burst, then whole bursts, then the last one begun.
        let rest = span(self.left).saturating_add(self.gap);
        let within = |time: u128, most: u64| -> u128 {
            match time.checked_div(self.interval) {
                Some(slots) => slots.saturating_add(1).min(u128::from(most)),
                None => u128::from(most),
            }
        };
        if passed < rest {
            return Some(within(passed, self.left));
        }
        let period = span(self.burst).saturating_add(self.gap);
        let after = passed - rest;
        let bursts = after.checked_div(period)?;
        let begun = within(after - bursts * period, self.burst);
        Some(u128::from(self.left) + bursts * u128::from(self.burst) + begun)
    }
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
    fn line_rates_are_bits_or_frames() {
        for (text, rate) in [
            ("14880952", LineRate::Frames(14_880_952)),
            ("14.88Mpps", LineRate::Frames(14_880_000)),
            ("10Gbps", LineRate::Bits(10_000_000_000)),
            ("250kbps", LineRate::Bits(250_000)),
        ] {
            assert_eq!(text.parse(), Ok(rate), "{text}");
        }
        for bad in ["", "0", "-1", "10Tbps", "1e99", "bps", "NaN", "2000Mpps"] {
            assert!(bad.parse::<LineRate>().is_err(), "{bad}");
        }
        // 10 Gbit/s in 64-byte frames, RFC 2544's 14,880,952 frames per second and a fraction.
        let frames = LineRate::Bits(10_000_000_000).frames(64.0).unwrap();
        assert_eq!(frames.frames_in(1_000_000_000), 14_880_953);
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
