// SPDX-License-Identifier: BSD-3-Clause
//! Detects when the kernel or a hypervisor took an lcore's CPU away.

use std::cell::Cell;

/// Is given each reading of an lcore's clock. There is a *pause* between two readings that are
/// further apart than the limit: frames that arrived in it waited for the lcore.
#[derive(Debug)]
pub(super) struct Watch {
    limit: u64,
    last: Cell<u64>,
    pauses: Cell<u64>,
}

impl Watch {
    /// A watch without readings. `limit` is in cycles.
    pub fn new(limit: u64) -> Self {
        Watch { limit, last: Cell::new(u64::MAX), pauses: Cell::new(0) }
    }

    /// Pauses so far.
    #[inline]
    pub fn pauses(&self) -> u64 {
        self.pauses.get()
    }

    /// Takes a reading of the clock and returns it.
    #[inline]
    pub fn see(&self, now: u64) -> u64 {
        let passed = now.saturating_sub(self.last.replace(now));
        if passed > self.limit {
            self.pauses.set(self.pauses.get() + 1);
        }
        now
    }

    /// Says that the lcore rests until the next reading, which is then no pause.
    pub fn rest(&self) {
        self.last.set(u64::MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_that_lie_far_apart_are_a_pause() {
        let watch = Watch::new(100);
        for now in [5000, 5100, 5100, 5201, 5202] {
            assert_eq!(watch.see(now), now);
        }
        assert_eq!(watch.pauses(), 1);
        watch.rest();
        watch.see(9000);
        assert_eq!(watch.pauses(), 1, "a rest is none");
    }
}
