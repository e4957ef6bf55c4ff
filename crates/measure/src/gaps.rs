// SPDX-License-Identifier: BSD-3-Clause
//! How evenly a sender sends: the times between its frames.

use crate::Distribution;

/// State of a sending thread: its latest burst. The distribution of the gaps, in TSC cycles, is a
/// [`Distribution`] that one thread writes; n frames have n - 1 gaps.
///
/// ```
/// use measure::{Departures, Distribution};
/// let (mut departures, gaps) = (Departures::default(), Distribution::default());
/// departures.see_burst(&gaps, 10_000, 2);
/// departures.see_burst(&gaps, 10_900, 1);
/// assert_eq!((gaps.count(), gaps.min(), gaps.max()), (2, Some(0), Some(900)));
/// ```
#[derive(Debug, Default)]
pub struct Departures {
    last: Option<u64>,
}

impl Departures {
    /// Another stream begins: the time until its first frame is not a gap.
    pub fn restart(&mut self) {
        self.last = None;
    }

    /// Records `count` frames that were offered together at TSC `now`: gaps of 0, and one since the
    /// burst before.
    #[inline]
    pub fn see_burst(&mut self, gaps: &Distribution, now: u64, count: u32) {
        if count == 0 {
            return;
        }
        if let Some(last) = self.last.replace(now) {
            gaps.add(now.saturating_sub(last), 1);
        }
        gaps.add(0, u64::from(count - 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_gaps_are_those_between_neighbours(
            bursts in prop::collection::vec((0u64..1 << 20, 0u32..5), 0..40),
            restarted in prop::option::of(0usize..40),
        ) {
            let (mut departures, gaps) = (Departures::default(), Distribution::new());
            let (mut now, mut times, mut expected) = (1 << 40, Vec::new(), Vec::new());
            for (at, (pause, count)) in bursts.into_iter().enumerate() {
                if restarted == Some(at) {
                    departures.restart();
                    times.clear();
                }
                now += pause;
                departures.see_burst(&gaps, now, count);
                for _ in 0..count {
                    expected.extend(times.last().map(|last| now - last));
                    times.push(now);
                }
            }
            prop_assert_eq!(gaps.count(), expected.len() as u64);
            prop_assert_eq!(gaps.sum(), expected.iter().sum::<u64>());
            prop_assert_eq!(gaps.min(), expected.iter().min().copied());
            prop_assert_eq!(gaps.max(), expected.iter().max().copied());
        }
    }
}
