// SPDX-License-Identifier: BSD-3-Clause
//! Finds the times in which the kernel or a hypervisor took an lcore's CPU away.

use std::cell::Cell;

/// Sees each reading of an lcore's clock. Two that lie further apart than the limit have a *pause* between them: what arrived
/// meanwhile waited for the lcore.
#[derive(Debug)]
pub(super) struct Watch {
    limit: u64,
    last: Cell<u64>,
    pauses: Cell<u64>,
}

impl Watch {
    /// A watch that has seen nothing. `limit` is in cycles.
    pub fn new(limit: u64) -> Self {
        Watch { limit, last: Cell::new(u64::MAX), pauses: Cell::new(0) }
    }

    /// Pauses so far.
    #[inline]
    pub fn pauses(&self) -> u64 {
        self.pauses.get()
    }

    /// The clock was read. Gives the reading back.
    #[inline]
    pub fn see(&self, now: u64) -> u64 {
        let passed = now.saturating_sub(self.last.replace(now));
        if passed > self.limit {
            self.pauses.set(self.pauses.get() + 1);
        }
        now
    }

    /// The lcore does not look at its queues until the next reading, which is no pause.
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
