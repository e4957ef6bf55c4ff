// SPDX-License-Identifier: BSD-3-Clause
//! When a link last went up or down, as the control plane has seen it.
//!
//! Most of DPDK's virtual drivers do not report changes. So the time of a change is that of the next look at the link.

use std::cell::Cell;
use std::time::{SystemTime, UNIX_EPOCH};

/// Whether a link is up, and since when.
#[derive(Clone, Debug)]
pub struct LinkState(Cell<(bool, u64)>);

impl LinkState {
    /// A link that was seen for the first time at `now`.
    pub fn new(up: bool, now: SystemTime) -> Self {
        LinkState(Cell::new((up, nanoseconds(now))))
    }

    /// Records the state that was found at `now`, and returns it.
    pub fn note(&self, up: bool, now: SystemTime) -> bool {
        if self.0.get().0 != up {
            self.0.set((up, nanoseconds(now)));
        }
        up
    }

    /// When its latest change was seen, or else the link itself for the first time, in nanoseconds since the epoch.
    pub fn last_change(&self) -> u64 {
        self.0.get().1
    }
}

fn nanoseconds(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn only_changes_have_a_new_time() {
        let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
        let link = LinkState::new(false, at(1));
        let mut seen = Vec::new();
        for (up, seconds) in [(false, 2), (true, 3), (true, 4), (false, 5)] {
            assert_eq!(link.note(up, at(seconds)), up);
            seen.push(link.last_change() / 1_000_000_000);
        }
        assert_eq!(seen, [1, 3, 3, 5]);
    }
}
