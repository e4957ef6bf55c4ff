// SPDX-License-Identifier: BSD-3-Clause
//! A histogram that one thread writes while others read it.
//!
//! Its counters are those of an HDR histogram of two significant digits (hdrhistogram.org), so a
//! copy of them loses nothing. The `hdrhistogram` crate's own cannot be read while it is written.

#[cfg(feature = "hdr")]
mod encoded;

#[cfg(feature = "hdr")]
pub use encoded::{Summary, decode, encode};

use crate::Cell;

/// Counters for each doubling of the value. With two significant digits, values up to 2 * 10^2 are
/// exact, hence 256 counters for the first ones and 128 for each doubling.
const HALF: usize = 128;
const HALF_BITS: u32 = HALF.trailing_zeros();
/// Largest value with its own counter; some seconds, in cycles. Larger values are counted as this.
pub const LARGEST: u64 = (1 << 34) - 1;
const COUNTERS: usize = index(LARGEST) + 1;

/// The index of the counter of a value.
#[inline(always)]
const fn index(value: u64) -> usize {
    let doublings = (u64::BITS - 1 - (value | 1).leading_zeros()).saturating_sub(HALF_BITS);
    doublings as usize * HALF + (value >> doublings) as usize
}

/// The smallest value of a counter.
const fn value(index: usize) -> u64 {
    let doublings = (index / HALF).saturating_sub(1);
    ((index - doublings * HALF) as u64) << doublings
}

/// Counts values from 0 to [`LARGEST`]: those below 256 exactly, larger ones to one part in 128.
/// Takes 28 KiB, or nothing if it counts nothing ([`Counters::none`]).
#[derive(Debug)]
pub struct Counters(Option<Box<[Cell; COUNTERS]>>);

impl Default for Counters {
    fn default() -> Self {
        Self::new()
    }
}

impl Counters {
    /// Makes counters that have counted nothing.
    #[must_use]
    pub fn new() -> Self {
        Self(Some(Box::new([const { Cell::new(0) }; COUNTERS])))
    }

    /// Makes counters that never count anything and take no memory.
    ///
    /// ```
    /// let counters = measure::Counters::none();
    /// counters.add(7, 1);
    /// assert_eq!((counters.count(), counters.quantile(0.5)), (0, None));
    /// ```
    #[must_use]
    pub const fn none() -> Self {
        Self(None)
    }

    /// The counters; none if nothing is counted.
    fn cells(&self) -> &[Cell] {
        self.0.as_ref().map_or(&[], |cells| cells.as_slice())
    }

    /// Counts a value `times` times. Only the writer may call this.
    #[inline]
    pub fn add(&self, value: u64, times: u64) {
        let Some(cells) = &self.0 else { return };
        if let Some(counter) = cells.get(index(value.min(LARGEST))) {
            counter.add(times);
        }
    }

    /// Clears everything. Only the writer may call this.
    pub fn clear(&self) {
        self.cells().iter().for_each(|counter| counter.set(0));
    }

    /// Number of values counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.cells().iter().map(Cell::get).sum()
    }

    /// The value that the share `quantile` (0 to 1) of the values does not exceed, rounded up to
    /// the largest value of its counter; for a `quantile` of 0 the smallest value. HDR histograms
    /// do the same. None while nothing is counted.
    #[must_use]
    pub fn quantile(&self, quantile: f64) -> Option<u64> {
        // One copy, so that the rank belongs to the values that are summed.
        let counts: Vec<u64> = self.cells().iter().map(Cell::get).collect();
        let total: u64 = counts.iter().sum();
        let rank = ((quantile.clamp(0.0, 1.0) * total as f64).ceil() as u64).clamp(1, total.max(1));
        let mut passed = 0u64;
        let at = counts.iter().position(|count| {
            passed += count;
            passed >= rank
        })?;
        Some(if quantile > 0.0 { value(at + 1) - 1 } else { value(at) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_counter_has_its_values() {
        assert_eq!(COUNTERS, 3584);
        for at in 0..COUNTERS {
            assert_eq!(index(value(at)), at);
            assert!(at == 0 || index(value(at) - 1) == at - 1);
        }
    }

    #[test]
    fn what_is_forgotten_is_not_counted() {
        let counters = Counters::new();
        counters.add(7, 2);
        assert_eq!((counters.count(), counters.quantile(0.5)), (2, Some(7)));
        counters.clear();
        assert_eq!((counters.count(), counters.quantile(0.5)), (0, None));
    }
}
