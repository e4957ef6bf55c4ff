// SPDX-License-Identifier: BSD-3-Clause
//! When replayed frames are due.
//!
//! Every due time is computed from the start, never from the previous frame, as a product with a
//! factor of 64 fractional bits: it is less than a cycle early after 500 years, and does not drift.

use std::sync::Arc;

use thiserror::Error;

use crate::pacing::FrameRate;

use super::Inner;

/// Slowest speed.
pub const MIN_SPEED: f64 = 1e-6;
/// Highest speed.
pub const MAX_SPEED: f64 = 1e6;
/// Highest TSC frequency that is supported, far above any real one.
const MAX_HZ: u64 = 1 << 40;

/// How fast frames are replayed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Timing {
    /// With the file's gaps.
    Own,
    /// This many times as fast as the file: 2 halves the gaps. From [`MIN_SPEED`] to [`MAX_SPEED`].
    Scaled(f64),
    /// At an even rate.
    Rate(FrameRate),
}

/// Why frames cannot be scheduled.
#[derive(Clone, Copy, Debug, Error, PartialEq)]
pub enum ScheduleError {
    /// All frames have the same time, or none.
    #[error("all frames of the file have the same time, or none; give a rate")]
    NoTimes,
    /// A speed out of range.
    #[error("a speed of {0} is not from {MIN_SPEED} to {MAX_SPEED}")]
    Speed(f64),
}

/// A number with 64 fractional bits.
#[derive(Clone, Copy, Debug)]
struct Fixed {
    whole: u64,
    fraction: u64,
}

impl Fixed {
    /// `numerator / denominator` rounded down. The denominator is not 0 and below 2^96.
    fn ratio(numerator: u128, denominator: u128) -> Fixed {
        let mut rest = numerator % denominator;
        let mut fraction = 0u64;
        for _ in 0..2 {
            rest <<= 32;
            fraction = fraction << 32 | (rest / denominator) as u64;
            rest %= denominator;
        }
        let whole = u64::try_from(numerator / denominator).unwrap_or(u64::MAX);
        Fixed { whole, fraction }
    }

    /// The product with a number, rounded down.
    #[inline]
    fn times(self, n: u64) -> u64 {
        let whole = u128::from(self.whole) * u128::from(n);
        let rest = (u128::from(self.fraction) * u128::from(n)) >> 64;
        u64::try_from(whole + rest).unwrap_or(u64::MAX)
    }
}

#[derive(Clone, Copy, Debug)]
enum Pace {
    /// Cycles per nanosecond, and nanoseconds per loop.
    Times(Fixed, u64),
    /// Cycles per frame.
    Rate(Fixed),
}

/// The frames of a file with their due times, repeated in loops. Times are in cycles since the
/// start, when the first frame is due. There is no limit to the number of loops.
///
/// The time from the last frame of a loop to the first of the next is the file's mean gap, rounded
/// to a nanosecond, so that loops do not change the mean rate. At an even rate it is the interval.
#[derive(Clone, Debug)]
pub struct Schedule {
    frames: Arc<Inner>,
    pace: Pace,
    /// Number of frames before the next one, and its index in the file.
    passed: u64,
    next: usize,
    /// Nanoseconds from the start to the beginning of the loop.
    base: u64,
    slot: u64,
}

impl Schedule {
    pub(super) fn new(frames: Arc<Inner>, timing: Timing, hz: u64) -> Result<Self, ScheduleError> {
        let hz = hz.clamp(1, MAX_HZ);
        let pace = match timing {
            Timing::Own => Pace::Times(Fixed::ratio(hz.into(), 1_000_000_000), period(&frames)?),
            Timing::Scaled(speed) => Pace::Times(scaled(hz, speed)?, period(&frames)?),
            Timing::Rate(rate) => {
                let (whole, fraction) = rate.interval(hz).parts();
                Pace::Rate(Fixed { whole, fraction })
            }
        };
        Ok(Schedule { frames, pace, passed: 0, next: 0, base: 0, slot: 0 })
    }

    /// When frame `k` is due, counted from 0 through all loops.
    pub fn due(&self, k: u64) -> u64 {
        match self.pace {
            Pace::Rate(interval) => interval.times(k),
            Pace::Times(factor, period) => {
                let frames = (self.frames.entries.len() as u64).max(1);
                let offset = self.frames.offset((k % frames) as usize).unwrap_or(0);
                factor.times((k / frames).saturating_mul(period).saturating_add(offset))
            }
        }
    }

    /// When the next frame is due.
    #[inline]
    pub fn slot(&self) -> u64 {
        self.slot
    }

    /// The bytes of the next frame, without FCS.
    #[inline]
    pub fn frame(&self) -> &[u8] {
        self.frames.frame(self.next).unwrap_or_default()
    }

    /// Index of the next frame in the file.
    #[inline]
    pub fn index(&self) -> usize {
        self.next
    }

    /// Number of frames before the next one, over all loops.
    #[inline]
    pub fn passed(&self) -> u64 {
        self.passed
    }

    /// Advances to the following frame.
    #[inline]
    pub fn advance(&mut self) {
        self.passed += 1;
        self.next += 1;
        let again = self.next == self.frames.entries.len();
        if again {
            self.next = 0;
        }
        match self.pace {
            Pace::Rate(interval) => self.slot = interval.times(self.passed),
            Pace::Times(factor, period) => {
                if again {
                    self.base = self.base.saturating_add(period);
                }
                let offset = self.frames.offset(self.next).unwrap_or(0);
                self.slot = factor.times(self.base.saturating_add(offset));
            }
        }
    }
}

/// Nanoseconds per loop.
fn period(frames: &Inner) -> Result<u64, ScheduleError> {
    let (span, gaps) = (frames.span(), frames.entries.len().saturating_sub(1) as u64);
    if span == 0 || gaps == 0 {
        return Err(ScheduleError::NoTimes);
    }
    let mean = (u128::from(span) + u128::from(gaps) / 2) / u128::from(gaps);
    Ok(span.saturating_add((mean as u64).max(1)))
}

/// Cycles per nanosecond of the file. A speed is a whole number times a power of two, and is used
/// exactly.
fn scaled(hz: u64, speed: f64) -> Result<Fixed, ScheduleError> {
    if !(MIN_SPEED..=MAX_SPEED).contains(&speed) {
        return Err(ScheduleError::Speed(speed));
    }
    let bits = speed.to_bits();
    let mantissa = u128::from(bits & ((1 << 52) - 1) | 1 << 52);
    // From 33 to 72 in the range above.
    let negative_exponent = 1075 - (bits >> 52 & 0x7ff);
    Ok(Fixed::ratio(u128::from(hz) << negative_exponent, mantissa * 1_000_000_000))
}
