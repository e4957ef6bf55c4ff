// SPDX-License-Identifier: BSD-3-Clause
//! From TSC cycles to time of day.

use std::time::{SystemTime, UNIX_EPOCH};

/// A moment on both the TSC and the wall clock, and the TSC's rate.
///
/// The wall clock is read once: a capture's times advance with the TSC and do not jump when somebody
/// sets the time of day. They drift from it as far as the TSC's rate is off.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    tsc: u64,
    nanoseconds: i128,
    hz: u64,
}

impl Clock {
    /// The TSC stood at `tsc` when the wall clock showed `wall`; `hz` are cycles in a second.
    #[must_use]
    pub fn new(tsc: u64, wall: SystemTime, hz: u64) -> Self {
        let nanoseconds = match wall.duration_since(UNIX_EPOCH) {
            Ok(since) => i128::try_from(since.as_nanos()).unwrap_or(i128::MAX),
            Err(_) => 0,
        };
        Clock { tsc, nanoseconds, hz: hz.max(1) }
    }

    /// Nanoseconds since the epoch, rounded down, at a TSC before or after the clock's moment.
    #[must_use]
    pub fn nanoseconds(&self, tsc: u64) -> u64 {
        let cycles = i128::from(tsc) - i128::from(self.tsc);
        let since = (cycles * 1_000_000_000).div_euclid(i128::from(self.hz));
        u64::try_from((self.nanoseconds + since).max(0)).unwrap_or(u64::MAX)
    }

    /// Cycles in so many milliseconds.
    #[must_use]
    pub fn cycles(&self, milliseconds: u64) -> u64 {
        (self.hz / 1000).saturating_mul(milliseconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::time::Duration;

    #[test]
    fn a_second_later_is_a_second_later() {
        let wall = UNIX_EPOCH + Duration::new(1_700_000_000, 5);
        let clock = Clock::new(9_000, wall, 3_000_000_000);
        assert_eq!(clock.nanoseconds(9_000), 1_700_000_000_000_000_005);
        assert_eq!(clock.nanoseconds(3_000_009_000), 1_700_000_001_000_000_005);
        assert_eq!(clock.nanoseconds(9_003), 1_700_000_000_000_000_006);
        assert_eq!(clock.nanoseconds(8_997), 1_700_000_000_000_000_004);
        assert_eq!(Clock::new(u64::MAX, UNIX_EPOCH, 0).nanoseconds(0), 0);
    }

    proptest! {
        #[test]
        fn time_never_runs_backwards(
            tsc in any::<u64>(), a in any::<u64>(), b in any::<u64>(), hz in any::<u64>(),
        ) {
            let clock = Clock::new(tsc, UNIX_EPOCH + Duration::from_secs(1 << 31), hz);
            prop_assert!(clock.nanoseconds(a.min(b)) <= clock.nanoseconds(a.max(b)));
        }
    }
}
