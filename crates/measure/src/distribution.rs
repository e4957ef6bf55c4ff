// SPDX-License-Identifier: BSD-3-Clause
//! A histogram with exact count, sum, minimum and maximum.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::{Cell, Counters};

/// Values with their exact number, sum, minimum and maximum. One thread writes.
///
/// ```
/// let spans = measure::Distribution::default();
/// spans.add(1_000, 2);
/// spans.add(1_300, 1);
/// assert_eq!((spans.count(), spans.mean()), (3, Some(1_100)));
/// assert_eq!((spans.min(), spans.max()), (Some(1_000), Some(1_300)));
/// ```
#[derive(Debug)]
pub struct Distribution {
    count: AtomicU64,
    sum: Cell,
    min: Cell,
    max: Cell,
    counters: Counters,
}

impl Default for Distribution {
    fn default() -> Self {
        Self::new()
    }
}

impl Distribution {
    /// No values yet.
    #[must_use]
    pub fn new() -> Self {
        Self::with(Counters::new())
    }

    /// The same without a histogram: only number, sum, minimum and maximum, in 40 bytes instead of 28 KiB.
    ///
    /// ```
    /// let spans = measure::Distribution::without_histogram();
    /// spans.add(1_000, 2);
    /// assert_eq!((spans.count(), spans.max(), spans.quantile(0.5)), (2, Some(1_000), None));
    /// ```
    #[must_use]
    pub fn without_histogram() -> Self {
        Self::with(Counters::none())
    }

    fn with(counters: Counters) -> Self {
        Self {
            count: AtomicU64::new(0),
            sum: Cell::new(0),
            min: Cell::new(u64::MAX),
            max: Cell::new(0),
            counters,
        }
    }

    /// Records a value `times` times. Only the writer may call this.
    #[inline]
    pub fn add(&self, value: u64, times: u64) {
        if times == 0 {
            return;
        }
        self.counters.add(value, times);
        if value < self.min.get() {
            self.min.set(value);
        }
        if value > self.max.get() {
            self.max.set(value);
        }
        self.sum.add(value.wrapping_mul(times));
        // Last, so that a reader that reads it first finds all that it counts.
        let count = self.count.load(Ordering::Relaxed).wrapping_add(times);
        self.count.store(count, Ordering::Release);
    }

    /// Clears everything. Only the writer may call this.
    pub fn clear(&self) {
        self.count.store(0, Ordering::Relaxed);
        self.sum.set(0);
        self.min.set(u64::MAX);
        self.max.set(0);
        self.counters.clear();
    }

    /// Number of values. Read it before the others: they then include at least the values that it
    /// counts.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }

    /// Sum of all values, modulo 2^64.
    #[must_use]
    pub fn sum(&self) -> u64 {
        self.sum.get()
    }

    /// Mean of all values, rounded down; none while there are none.
    #[must_use]
    pub fn mean(&self) -> Option<u64> {
        let count = self.count();
        self.sum().checked_div(count)
    }

    /// Smallest value; none while there are none.
    #[must_use]
    pub fn min(&self) -> Option<u64> {
        (self.count() > 0).then(|| self.min.get())
    }

    /// Largest value; none while there are none.
    #[must_use]
    pub fn max(&self) -> Option<u64> {
        (self.count() > 0).then(|| self.max.get())
    }

    /// The value that the share `quantile` (0 to 1) of all values does not exceed, by
    /// [`Counters::quantile`], limited to the smallest and largest value; none while there are
    /// none.
    #[must_use]
    pub fn quantile(&self, quantile: f64) -> Option<u64> {
        let (min, max) = (self.min()?, self.max()?);
        // No clamp(), which panics if the writer clears everything between two reads.
        self.counters.quantile(quantile).map(|value| value.max(min).min(max))
    }

    /// The histogram itself.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_figures_are_those_of_the_list(
            values in prop::collection::vec((0u64..1 << 34, 0u64..5), 0..40),
        ) {
            let distribution = Distribution::new();
            let mut list = Vec::new();
            for (value, times) in values {
                distribution.add(value, times);
                list.extend(std::iter::repeat_n(value, times as usize));
            }
            prop_assert_eq!(distribution.count(), list.len() as u64);
            prop_assert_eq!(distribution.sum(), list.iter().sum::<u64>());
            prop_assert_eq!(distribution.min(), list.iter().min().copied());
            prop_assert_eq!(distribution.max(), list.iter().max().copied());
            prop_assert_eq!(distribution.quantile(1.0), list.iter().max().copied());
            prop_assert_eq!(distribution.quantile(0.0), list.iter().min().copied());
            prop_assert_eq!(distribution.counters().count(), list.len() as u64);
            distribution.clear();
            prop_assert_eq!((distribution.count(), distribution.sum()), (0, 0));
            prop_assert_eq!((distribution.min(), distribution.mean()), (None, None));
        }
    }
}
