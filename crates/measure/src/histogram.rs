// SPDX-License-Identifier: BSD-3-Clause
//! A histogram that one thread writes while others read it.
//!
//! Its counters are those of an HDR histogram of two significant digits (hdrhistogram.org), so that a
//! copy of them loses nothing; the `hdrhistogram` crate cannot be read while it is written.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer as _, V2DeflateSerializer};

use crate::Cell;

/// Two significant digits: values up to 2 * 10^2 are exact, hence 256 counters for the first ones and
/// 128 for each doubling.
const DIGITS: u8 = 2;
const HALF: usize = 128;
const HALF_BITS: u32 = HALF.trailing_zeros();
/// Largest value that is told apart; of cycles, some seconds. What is above is counted as this.
pub const LARGEST: u64 = (1 << 34) - 1;
const COUNTERS: usize = index(LARGEST) + 1;

/// The counter of a value.
#[inline(always)]
const fn index(value: u64) -> usize {
    let doublings = (u64::BITS - 1 - (value | 1).leading_zeros()).saturating_sub(HALF_BITS);
    doublings as usize * HALF + (value >> doublings) as usize
}

/// The least value of a counter.
const fn value(index: usize) -> u64 {
    let doublings = (index / HALF).saturating_sub(1);
    ((index - doublings * HALF) as u64) << doublings
}

/// Counts values from 0 to [`LARGEST`]: those below 256 exactly, larger ones to one part in 128. Takes
/// 28 KiB.
#[derive(Debug)]
pub struct Counters(Box<[Cell; COUNTERS]>);

impl Default for Counters {
    fn default() -> Self {
        Self::new()
    }
}

impl Counters {
    /// Counters that have counted nothing.
    #[must_use]
    pub fn new() -> Self {
        Self(Box::new([const { Cell::new(0) }; COUNTERS]))
    }

    /// Counts a value `times`. The writer's only.
    #[inline]
    pub fn add(&self, value: u64, times: u64) {
        if let Some(counter) = self.0.get(index(value.min(LARGEST))) {
            counter.add(times);
        }
    }

    /// Forgets everything. The writer's only.
    pub fn clear(&self) {
        self.0.iter().for_each(|counter| counter.set(0));
    }

    /// Number of values counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.iter().map(Cell::get).sum()
    }

    /// The least value that the share `quantile` (0 to 1) of the values does not exceed: as far as the
    /// counters tell values apart, the largest that counts as the same; for a `quantile` of 0 the
    /// smallest. So do HDR histograms. None while nothing is counted.
    #[must_use]
    pub fn quantile(&self, quantile: f64) -> Option<u64> {
        // One copy, so that the rank is that of the values that are gone through.
        let counts: Vec<u64> = self.0.iter().map(Cell::get).collect();
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

/// The sum of some threads' counters, as base64 of HDR's compressed V2 encoding; none when that fails,
/// which would be a fault of the encoder.
///
/// ```
/// let counters = measure::Counters::new();
/// counters.add(1_200, 3);
/// assert!(measure::histogram::encode([&counters]).is_some_and(|text| text.starts_with("HISTF")));
/// ```
#[must_use]
pub fn encode<'c>(threads: impl IntoIterator<Item = &'c Counters>) -> Option<String> {
    let mut sum = Histogram::<u64>::new_with_bounds(1, LARGEST, DIGITS).ok()?;
    for counters in threads {
        for (index, counter) in counters.0.iter().enumerate() {
            match counter.get() {
                0 => {}
                count => sum.record_n(value(index), count).ok()?,
            }
        }
    }
    let mut bytes = Vec::new();
    V2DeflateSerializer::new().serialize(&sum, &mut bytes).ok()?;
    Some(STANDARD.encode(bytes))
}

/// What a text of [`encode`] says; none if it is no such text.
///
/// ```
/// let counters = measure::Counters::new();
/// counters.add(100, 1);
/// counters.add(200, 3);
/// let read = measure::histogram::encode([&counters]).and_then(|text| measure::histogram::decode(&text));
/// let read = read.ok_or("no histogram")?;
/// assert_eq!((read.count(), read.min(), read.quantile(0.99)), (4, 100, 200));
/// assert_eq!(read.mean(), 175.0);
/// # Ok::<(), &str>(())
/// ```
#[must_use]
pub fn decode(text: &str) -> Option<Summary> {
    let bytes = STANDARD.decode(text).ok()?;
    Deserializer::new().deserialize(&mut bytes.as_slice()).ok().map(Summary)
}

/// A distribution that was counted.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary(Histogram<u64>);

impl Summary {
    /// Number of values.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The least value, as far as values are told apart; 0 while nothing is counted.
    #[must_use]
    pub fn min(&self) -> u64 {
        self.0.min()
    }

    /// The largest value, as far as values are told apart.
    #[must_use]
    pub fn max(&self) -> u64 {
        self.0.max()
    }

    /// The mean; 0 while nothing is counted.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.0.mean()
    }

    /// As [`Counters::quantile`]; 0 while nothing is counted.
    #[must_use]
    pub fn quantile(&self, quantile: f64) -> u64 {
        self.0.value_at_quantile(quantile)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decoded(text: &str) -> Histogram<u64> {
        let bytes = STANDARD.decode(text).unwrap();
        Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap()
    }

    #[test]
    fn every_counter_has_its_values() {
        assert_eq!(COUNTERS, 3584);
        for at in 0..COUNTERS {
            assert_eq!(index(value(at)), at);
            assert!(at == 0 || index(value(at) - 1) == at - 1);
        }
    }

    #[test]
    fn what_is_too_large_counts_as_the_largest() {
        let counters = Counters::new();
        counters.add(u64::MAX, 3);
        let read = decoded(&encode([&counters]).unwrap());
        assert_eq!((read.len(), read.equivalent(read.max(), LARGEST)), (3, true));
        assert_eq!(counters.quantile(1.0), Some(LARGEST));
    }

    #[test]
    fn what_is_forgotten_is_not_counted() {
        let counters = Counters::new();
        counters.add(7, 2);
        assert_eq!((counters.count(), counters.quantile(0.5)), (2, Some(7)));
        counters.clear();
        assert_eq!((counters.count(), counters.quantile(0.5)), (0, None));
    }

    proptest! {
        #[test]
        fn a_copy_is_what_an_hdr_histogram_would_have_counted(
            values in prop::collection::vec((0u64..=LARGEST, 0u32..40), 1..200),
            quantile in 0.0..=1.0f64,
        ) {
            let mut expected = Histogram::<u64>::new_with_bounds(1, LARGEST, DIGITS).unwrap();
            let threads = [Counters::new(), Counters::new()];
            let all = Counters::new();
            for (at, (value, shift)) in values.into_iter().enumerate() {
                let value = value >> shift;
                expected.record(value).unwrap();
                threads[at % 2].add(value, 1);
                all.add(value, 1);
            }
            prop_assert_eq!(all.count(), expected.len());
            for quantile in [quantile, 0.0, 0.5, 1.0] {
                prop_assert_eq!(all.quantile(quantile), Some(expected.value_at_quantile(quantile)));
            }
            prop_assert_eq!(decoded(&encode(&threads).unwrap()), expected);
        }
    }
}
