// SPDX-License-Identifier: BSD-3-Clause
//! Rates of counters, from two samples at least a fifth of a second apart.

use std::time::{Duration, Instant};

/// Samples closer together than this keep the previous rate.
const SPACING: Duration = Duration::from_millis(200);

/// Remembers counters and their rates.
#[derive(Debug)]
pub struct Sampler {
    at: Instant,
    last: Vec<u64>,
    rates: Vec<f64>,
}

impl Default for Sampler {
    /// Counters that are all zero now.
    fn default() -> Self {
        Sampler { at: Instant::now(), last: Vec::new(), rates: Vec::new() }
    }
}

impl Sampler {
    /// Counters with these values now.
    pub fn new(counters: Vec<u64>) -> Self {
        Sampler { at: Instant::now(), last: counters, rates: Vec::new() }
    }

    /// The rates, for another thread; no sample is taken there.
    pub fn rates(&self) -> Self {
        Sampler { at: self.at, last: Vec::new(), rates: self.rates.clone() }
    }

    /// Returns true if a sample is taken now.
    pub fn is_due(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.at) >= SPACING
    }

    /// Takes a sample of the counters, which must always be the same ones in the same order.
    pub fn look(&mut self, now: Instant, counters: Vec<u64>) {
        if !self.is_due(now) {
            return;
        }
        let passed = now.saturating_duration_since(self.at);
        self.last.resize(counters.len(), 0);
        let rate =
            |(now, last): (&u64, &u64)| now.saturating_sub(*last) as f64 / passed.as_secs_f64();
        self.rates = counters.iter().zip(&self.last).map(rate).collect();
        (self.at, self.last) = (now, counters);
    }

    /// The rate of a counter, per second; 0 before the second sample.
    pub fn rate(&self, index: usize) -> f64 {
        self.rates.get(index).copied().unwrap_or(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_differences_over_time() {
        let mut sampler = Sampler::default();
        let start = sampler.at;
        assert_eq!(sampler.rate(0), 0.0);
        sampler.look(start + Duration::from_millis(500), vec![100, 7]);
        assert_eq!((sampler.rate(0), sampler.rate(1), sampler.rate(2)), (200.0, 14.0, 0.0));
        sampler.look(start + Duration::from_millis(600), vec![1_000_000, 7]);
        assert_eq!(sampler.rate(0), 200.0, "too soon");
        sampler.look(start + Duration::from_millis(1500), vec![100, 8]);
        assert_eq!((sampler.rate(0), sampler.rate(1)), (0.0, 1.0));
    }
}
