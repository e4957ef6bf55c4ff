// SPDX-License-Identifier: BSD-3-Clause
//! Token buckets that colour packets: RFC 2697, RFC 2698 and RFC 4115.
//!
//! Times are numbers of a clock that does not go back, such as the time stamp counter; a meter is told how fast it runs. Tokens are
//! bytes, kept in fractions, so that no rate is too low for the clock.
//!
//! ```
//! use flow::meter::{Colour, SingleRate};
//!
//! // 1 MB/s; a burst of 1500 bytes is green, and 1500 more are yellow. The clock counts microseconds.
//! let mut meter = SingleRate::new(1_000_000, 1500, 1500, 1_000_000, 0)?;
//! let colours: Vec<_> = (0..3).map(|_| meter.colour(0, 1500)).collect();
//! assert_eq!(colours, [Colour::Green, Colour::Yellow, Colour::Red]);
//! assert_eq!(meter.colour(1500, 1500), Colour::Green); // 1.5 ms later there are 1500 tokens more
//! # Ok::<(), flow::meter::MeterError>(())
//! ```

/// What a meter says of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Colour {
    /// Within the committed rate and burst.
    Green,
    /// Above it, within what is allowed in excess.
    Yellow,
    /// Above both.
    Red,
}

/// Why a meter cannot be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MeterError {
    /// The clock does not run.
    #[error("the clock's frequency is 0")]
    Clock,
    /// No packet could ever be green or yellow.
    #[error("all bursts are of 0 bytes, so every packet would be red")]
    NoBurst,
    /// RFC 2698 wants the peak rate to be at least the committed one.
    #[error("the peak rate, {peak} bytes/s, is below the committed rate, {committed}")]
    Peak {
        /// Peak rate, bytes/s.
        peak: u64,
        /// Committed rate, bytes/s.
        committed: u64,
    },
    /// A rate or burst is more than fractions leave room for.
    #[error("a rate or burst of {0} is more than 2^40")]
    TooLarge(u64),
}

/// The largest rate (bytes/s) and burst (bytes): a terabyte.
const MOST: u64 = 1 << 40;

/// Tokens that come at a rate, up to a limit. In units of 1/hz bytes, so that a tick of the clock brings `rate` units: exact.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    tokens: u128,
    limit: u128,
    rate: u64,
}

impl Bucket {
    fn new(rate: u64, burst: u64, hz: u64) -> Result<Self, MeterError> {
        if let Some(large) = [rate, burst].into_iter().find(|given| *given > MOST) {
            return Err(MeterError::TooLarge(large));
        }
        let limit = u128::from(burst) * u128::from(hz);
        Ok(Self { tokens: limit, limit, rate })
    }

    /// Adds tokens, and returns those above the limit.
    #[inline]
    fn fill(&mut self, more: u128) -> u128 {
        let sum = self.tokens + more;
        self.tokens = sum.min(self.limit);
        sum - self.tokens
    }

    #[inline]
    fn earn(&mut self, ticks: u64) {
        self.fill(u128::from(self.rate) * u128::from(ticks));
    }

    /// Takes tokens, if there are so many.
    #[inline]
    fn take(&mut self, cost: u128) -> bool {
        let left = self.tokens.checked_sub(cost);
        self.tokens = left.unwrap_or(self.tokens);
        left.is_some()
    }
}

/// The colour where green packets take from one bucket and yellow ones from another (RFC 2697 and RFC 4115).
#[inline]
fn of_two(before: Colour, cost: u128, committed: &mut Bucket, excess: &mut Bucket) -> Colour {
    if before == Colour::Green && committed.take(cost) {
        Colour::Green
    } else if before != Colour::Red && excess.take(cost) {
        Colour::Yellow
    } else {
        Colour::Red
    }
}

/// The clock of a meter.
#[derive(Clone, Copy, Debug)]
struct Clock {
    hz: u64,
    last: u64,
}

impl Clock {
    fn new(hz: u64, now: u64) -> Result<Self, MeterError> {
        if hz == 0 { Err(MeterError::Clock) } else { Ok(Self { hz, last: now }) }
    }

    /// The ticks since the last call; 0 if the clock went back.
    #[inline]
    fn ticks(&mut self, now: u64) -> u64 {
        let ticks = now.saturating_sub(self.last);
        self.last += ticks;
        ticks
    }

    #[inline]
    fn cost(&self, bytes: u32) -> u128 {
        u128::from(bytes) * u128::from(self.hz)
    }
}

fn with_burst<T>(bursts: [u64; 2], meter: T) -> Result<T, MeterError> {
    if bursts == [0, 0] { Err(MeterError::NoBurst) } else { Ok(meter) }
}

/// The single rate three color marker of RFC 2697: one rate, which fills the committed burst first and then the excess burst.
#[derive(Clone, Copy, Debug)]
pub struct SingleRate {
    clock: Clock,
    committed: Bucket,
    excess: Bucket,
}

impl SingleRate {
    /// `rate` in bytes/s (CIR), `burst` and `excess` in bytes (CBS, EBS), of a clock of `hz` that shows `now`. Both bursts are full.
    ///
    /// # Errors
    /// See [`MeterError`].
    pub fn new(rate: u64, burst: u64, excess: u64, hz: u64, now: u64) -> Result<Self, MeterError> {
        let clock = Clock::new(hz, now)?;
        let (committed, excess_bucket) =
            (Bucket::new(rate, burst, hz)?, Bucket::new(0, excess, hz)?);
        with_burst([burst, excess], Self { clock, committed, excess: excess_bucket })
    }

    /// The colour of a packet of `bytes`, that had none (color-blind mode).
    #[inline]
    pub fn colour(&mut self, now: u64, bytes: u32) -> Colour {
        self.colour_aware(now, bytes, Colour::Green)
    }

    /// The colour of a packet that was given one before (color-aware mode); it never gets a better one.
    #[inline]
    pub fn colour_aware(&mut self, now: u64, bytes: u32, before: Colour) -> Colour {
        let ticks = self.clock.ticks(now);
        let over = self.committed.fill(u128::from(self.committed.rate) * u128::from(ticks));
        self.excess.fill(over);
        of_two(before, self.clock.cost(bytes), &mut self.committed, &mut self.excess)
    }
}

/// The two rate three color marker of RFC 2698: a packet above the peak rate is red; a green one counts for both rates.
#[derive(Clone, Copy, Debug)]
pub struct TwoRate {
    clock: Clock,
    committed: Bucket,
    peak: Bucket,
}

impl TwoRate {
    /// `committed` and `peak`: a rate in bytes/s (CIR, PIR) and a burst in bytes (CBS, PBS), of a clock of `hz` that shows `now`.
    /// Both bursts are full.
    ///
    /// # Errors
    /// See [`MeterError`].
    pub fn new(
        committed: (u64, u64),
        peak: (u64, u64),
        hz: u64,
        now: u64,
    ) -> Result<Self, MeterError> {
        if peak.0 < committed.0 {
            return Err(MeterError::Peak { peak: peak.0, committed: committed.0 });
        }
        let clock = Clock::new(hz, now)?;
        let meter = Self {
            clock,
            committed: Bucket::new(committed.0, committed.1, hz)?,
            peak: Bucket::new(peak.0, peak.1, hz)?,
        };
        // Without a peak burst everything is red.
        with_burst([peak.1; 2], meter)
    }

    /// The colour of a packet of `bytes`, that had none (color-blind mode).
    #[inline]
    pub fn colour(&mut self, now: u64, bytes: u32) -> Colour {
        self.colour_aware(now, bytes, Colour::Green)
    }

    /// The colour of a packet that was given one before (color-aware mode); it never gets a better one.
    #[inline]
    pub fn colour_aware(&mut self, now: u64, bytes: u32, before: Colour) -> Colour {
        let ticks = self.clock.ticks(now);
        self.committed.earn(ticks);
        self.peak.earn(ticks);
        let cost = self.clock.cost(bytes);
        if before == Colour::Red || !self.peak.take(cost) {
            return Colour::Red;
        }
        let green = before == Colour::Green && self.committed.take(cost);
        if green { Colour::Green } else { Colour::Yellow }
    }
}

/// The differentiated service two-rate, three-color marker of RFC 4115: a rate for green packets and another for yellow ones, so that
/// yellow packets never use tokens of green ones.
#[derive(Clone, Copy, Debug)]
pub struct TwoRateExcess {
    clock: Clock,
    committed: Bucket,
    excess: Bucket,
}

impl TwoRateExcess {
    /// `committed` and `excess`: a rate in bytes/s (CIR, EIR) and a burst in bytes (CBS, EBS), of a clock of `hz` that shows `now`.
    /// Both bursts are full.
    ///
    /// # Errors
    /// See [`MeterError`].
    pub fn new(
        committed: (u64, u64),
        excess: (u64, u64),
        hz: u64,
        now: u64,
    ) -> Result<Self, MeterError> {
        let clock = Clock::new(hz, now)?;
        let meter = Self {
            clock,
            committed: Bucket::new(committed.0, committed.1, hz)?,
            excess: Bucket::new(excess.0, excess.1, hz)?,
        };
        with_burst([committed.1, excess.1], meter)
    }

    /// The colour of a packet of `bytes`, that had none (color-blind mode).
    #[inline]
    pub fn colour(&mut self, now: u64, bytes: u32) -> Colour {
        self.colour_aware(now, bytes, Colour::Green)
    }

    /// The colour of a packet that was given one before (color-aware mode); it never gets a better one.
    #[inline]
    pub fn colour_aware(&mut self, now: u64, bytes: u32, before: Colour) -> Colour {
        let ticks = self.clock.ticks(now);
        self.committed.earn(ticks);
        self.excess.earn(ticks);
        of_two(before, self.clock.cost(bytes), &mut self.committed, &mut self.excess)
    }
}

#[cfg(test)]
mod tests {
    use super::Colour::{Green, Red, Yellow};
    use super::*;

    const HZ: u64 = 2_600_000_000;

    /// The bytes of each colour when packets of 100 bytes are sent at `rate` bytes/s for 10 s.
    fn shares(rate: u64, mut colour: impl FnMut(u64, u32) -> Colour) -> [u64; 3] {
        let mut bytes = [0; 3];
        for packet in 0..rate / 10 {
            let now = (u128::from(packet) * u128::from(HZ) * 100 / u128::from(rate)) as u64;
            bytes[colour(now, 100) as usize] += 100;
        }
        bytes
    }

    fn near(found: [u64; 3], wanted: [u64; 3]) {
        // The bursts, 10,000 bytes each, come on top of the rates; a packet is 100 bytes.
        for (found, wanted) in found.into_iter().zip(wanted) {
            assert!(found.abs_diff(wanted) <= 200, "{found}, not {wanted}");
        }
    }

    #[test]
    fn a_single_rate_is_kept() {
        let mut meter = SingleRate::new(50_000, 10_000, 10_000, HZ, 0).unwrap();
        near(shares(100_000, |now, len| meter.colour(now, len)), [510_000, 10_000, 480_000]);
        let mut meter = SingleRate::new(100_000, 10_000, 10_000, HZ, 0).unwrap();
        near(shares(100_000, |now, len| meter.colour(now, len)), [1_000_000, 0, 0]);
    }

    #[test]
    fn two_rates_are_kept() {
        // RFC 2698: the peak rate is for green and yellow packets together.
        let mut meter = TwoRate::new((30_000, 10_000), (50_000, 10_000), HZ, 0).unwrap();
        near(shares(100_000, |now, len| meter.colour(now, len)), [310_000, 200_000, 490_000]);
        // RFC 4115: the excess rate is for yellow packets alone.
        let mut meter = TwoRateExcess::new((30_000, 10_000), (50_000, 10_000), HZ, 0).unwrap();
        // Its burst stays full, and what comes is lost, until the committed burst is used up after 1/7 s.
        near(shares(100_000, |now, len| meter.colour(now, len)), [310_000, 502_900, 187_100]);
    }

    #[test]
    fn a_colour_never_becomes_better() {
        let single = || SingleRate::new(1000, 1000, 1000, HZ, 0).unwrap();
        let two = || TwoRate::new((1000, 1000), (1000, 1000), HZ, 0).unwrap();
        let excess = || TwoRateExcess::new((1000, 1000), (1000, 1000), HZ, 0).unwrap();
        for before in [Green, Yellow, Red] {
            assert_eq!(single().colour_aware(0, 100, before), before);
            assert_eq!(two().colour_aware(0, 100, before), before);
            assert_eq!(excess().colour_aware(0, 100, before), before);
        }
    }

    #[test]
    fn slow_rates_lose_nothing_to_rounding() {
        // A byte a second, polled a million times a second.
        let mut meter = SingleRate::new(1, 10, 0, HZ, 0).unwrap();
        assert_eq!(meter.colour(0, 10), Green);
        for poll in 1..5_000_000u64 {
            assert_eq!(meter.colour(poll * (HZ / 1_000_000), 10), Red);
        }
        assert_eq!(meter.colour(5 * HZ, 5), Green);
    }

    #[test]
    fn a_clock_that_goes_back_brings_nothing() {
        let mut meter = SingleRate::new(1000, 1000, 0, 1000, 5000).unwrap();
        assert_eq!(meter.colour(5000, 1000), Green);
        assert_eq!(meter.colour(0, 1), Red);
        assert_eq!(meter.colour(5000, 1), Red);
        assert_eq!(meter.colour(u64::MAX, 1000), Green);
    }

    #[test]
    fn wrong_parameters_are_refused() {
        assert_eq!(SingleRate::new(1, 1, 1, 0, 0).unwrap_err(), MeterError::Clock);
        assert_eq!(SingleRate::new(1, 0, 0, 1, 0).unwrap_err(), MeterError::NoBurst);
        assert_eq!(
            SingleRate::new(MOST + 1, 1, 0, 1, 0).unwrap_err(),
            MeterError::TooLarge(MOST + 1)
        );
        let peak = MeterError::Peak { peak: 1, committed: 2 };
        assert_eq!(TwoRate::new((2, 1), (1, 1), 1, 0).unwrap_err(), peak);
        assert_eq!(TwoRate::new((1, 1), (1, 0), 1, 0).unwrap_err(), MeterError::NoBurst);
        assert_eq!(TwoRateExcess::new((1, 0), (1, 0), 1, 0).unwrap_err(), MeterError::NoBurst);
        assert!(peak.to_string().contains("1 bytes/s"));
    }
}
