// SPDX-License-Identifier: BSD-3-Clause
//! From TSC cycles to time of day.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::tsc;

/// A moment on both the TSC and the system's clock, and the TSC's rate.
#[derive(Clone, Copy)]
pub(super) struct Clock {
    tsc: u64,
    nanoseconds: i128,
    hz: u64,
}

impl Clock {
    /// Now.
    pub(super) fn now() -> Self {
        let before = tsc::now();
        let wall = SystemTime::now();
        let after = tsc::now();
        Self::new(before + after.wrapping_sub(before) / 2, wall, tsc::hz())
    }

    /// The TSC stood at `tsc` when the system's clock showed `wall`; `hz` are cycles in a second.
    fn new(tsc: u64, wall: SystemTime, hz: u64) -> Self {
        let since = wall.duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { tsc, nanoseconds: since.as_nanos() as i128, hz: hz.max(1) }
    }

    /// Nanoseconds since the epoch, rounded down, at a TSC before or after the clock's moment.
    pub(super) fn nanoseconds(&self, tsc: u64) -> u64 {
        let cycles = i128::from(tsc) - i128::from(self.tsc);
        let since = (cycles * 1_000_000_000).div_euclid(i128::from(self.hz));
        u64::try_from((self.nanoseconds + since).max(0)).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_second_later_is_a_second_later() {
        let clock = Clock::new(9_000, UNIX_EPOCH + Duration::new(1_700_000_000, 5), 3_000_000_000);
        assert_eq!(clock.nanoseconds(9_000), 1_700_000_000_000_000_005);
        assert_eq!(clock.nanoseconds(3_000_009_000), 1_700_000_001_000_000_005);
        assert_eq!(clock.nanoseconds(8_997), 1_700_000_000_000_000_004);
        assert_eq!(Clock::new(u64::MAX, UNIX_EPOCH, 0).nanoseconds(0), 0);
    }
}
