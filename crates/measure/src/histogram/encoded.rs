// SPDX-License-Identifier: BSD-3-Clause
//! Counters as text that every HDR histogram library reads, and back.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer as _, V2DeflateSerializer};

use super::{Counters, LARGEST, value};

/// Significant digits of a histogram with the values of [`Counters`].
const DIGITS: u8 = 2;

/// The sum of several threads' counters, as base64 of HDR's compressed V2 encoding; none if that
/// fails, which would be a fault of the encoder.
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
        for (index, counter) in counters.cells().iter().enumerate() {
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

/// Decodes a text of [`encode`]; none if it is not such a text.
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

    /// The smallest value, to the precision of the counters; 0 while nothing is counted.
    #[must_use]
    pub fn min(&self) -> u64 {
        self.0.min()
    }

    /// The largest value, to the precision of the counters.
    #[must_use]
    pub fn max(&self) -> u64 {
        self.0.max()
    }

    /// The mean; 0 while nothing is counted.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.0.mean()
    }

    /// As for [`Counters::quantile`]; 0 while nothing is counted.
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
    fn what_is_too_large_counts_as_the_largest() {
        let counters = Counters::new();
        counters.add(u64::MAX, 3);
        let read = decoded(&encode([&counters]).unwrap());
        assert_eq!((read.len(), read.equivalent(read.max(), LARGEST)), (3, true));
        assert_eq!(counters.quantile(1.0), Some(LARGEST));
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
