// SPDX-License-Identifier: BSD-3-Clause
//! A latency histogram that one thread writes while others read it.
//!
//! Its counters are those of an HDR histogram of two significant digits (hdrhistogram.org), so that a
//! copy of them loses nothing; the `hdrhistogram` crate cannot be read while it is written.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer as _, V2DeflateSerializer};

/// Two significant digits: values up to 2 * 10^2 are exact, hence 256 counters for the first ones and
/// 128 for each doubling.
const DIGITS: u8 = 2;
const HALF: usize = 128;
const HALF_BITS: u32 = HALF.trailing_zeros();
/// Largest value that is told apart, in cycles: some seconds. What is above is counted as this.
pub const LARGEST: u64 = (1 << 34) - 1;
const COUNTERS: usize = index(LARGEST) + 1;

/// The counter of a value.
const fn index(value: u64) -> usize {
    let doublings = (u64::BITS - 1 - (value | 1).leading_zeros()).saturating_sub(HALF_BITS);
    doublings as usize * HALF + (value >> doublings) as usize
}

/// The least value of a counter.
const fn value(index: usize) -> u64 {
    let doublings = (index / HALF).saturating_sub(1);
    ((index - doublings * HALF) as u64) << doublings
}

/// Counts values; one thread writes.
pub struct Counters(Box<[AtomicU64; COUNTERS]>);

impl Counters {
    pub fn new() -> Self {
        Self(Box::new([const { AtomicU64::new(0) }; COUNTERS]))
    }

    /// Counts a value `times`. By one thread alone.
    pub fn add(&self, value: u64, times: u64) {
        if let Some(counter) = self.0.get(index(value.min(LARGEST))) {
            counter.store(counter.load(Relaxed).wrapping_add(times), Relaxed);
        }
    }
}

/// The sum of some threads' counters, as base64 of HDR's compressed V2 encoding; none when that fails,
/// which would be a fault of the encoder.
pub fn encode<'c>(threads: impl IntoIterator<Item = &'c Counters>) -> Option<String> {
    let mut sum = Histogram::<u64>::new_with_bounds(1, LARGEST, DIGITS).ok()?;
    for counters in threads {
        for (index, counter) in counters.0.iter().enumerate() {
            match counter.load(Relaxed) {
                0 => {}
                count => sum.record_n(value(index), count).ok()?,
            }
        }
    }
    let mut bytes = Vec::new();
    V2DeflateSerializer::new().serialize(&sum, &mut bytes).ok()?;
    Some(STANDARD.encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::serialization::Deserializer;
    use proptest::prelude::*;

    fn decode(text: &str) -> Histogram<u64> {
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
        let read = decode(&encode([&counters]).unwrap());
        assert_eq!((read.len(), read.equivalent(read.max(), LARGEST)), (3, true));
    }

    proptest! {
        #[test]
        fn a_copy_is_what_an_hdr_histogram_would_have_counted(
            values in prop::collection::vec((0u64..=LARGEST, 0u32..40), 1..200),
        ) {
            let mut expected = Histogram::<u64>::new_with_bounds(1, LARGEST, DIGITS).unwrap();
            let threads = [Counters::new(), Counters::new()];
            for (at, (value, shift)) in values.into_iter().enumerate() {
                let value = value >> shift;
                expected.record(value).unwrap();
                threads[at % 2].add(value, 1);
            }
            prop_assert_eq!(decode(&encode(&threads).unwrap()), expected);
        }
    }
}
