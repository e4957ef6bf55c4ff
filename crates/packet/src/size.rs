// SPDX-License-Identifier: BSD-3-Clause
//! The sizes of a flow's frames, in bytes with FCS.
//!
//! A mix of sizes is a repeating sequence, always the same, with each size spread as evenly as its
//! weight allows, so that a count of frames has exact shares. RFC 6985 ("IMIX Genome") asks for
//! such a sequence, because shares alone do not say what a device was given.

mod walk;

pub(crate) use walk::Walk;

use crate::random::Random;

/// Shortest frame in bytes, FCS included.
pub const MIN_LEN_WITH_FCS: usize = 64;
/// Longest frame in bytes, FCS included.
pub const MAX_LEN_WITH_FCS: usize = 9216;
/// Longest sequence of a mix in frames.
pub const MAX_SEQUENCE: usize = 65_536;

/// The seed of random sizes where nothing else is asked for.
pub const DEFAULT_SEED: u64 = 1;

/// The sizes of successive frames.
#[derive(Clone, Debug, PartialEq)]
pub enum Sizes {
    /// All frames have this size.
    Fixed(usize),
    /// `start`, `start + step`, ... as long as it is not above `end`, then from the start again.
    Increment {
        /// First size.
        start: usize,
        /// Largest size.
        end: usize,
        /// Difference from frame to frame; 0 means that all frames have the first size.
        step: usize,
    },
    /// Pseudo-random sizes, each equally likely; the same seed gives the same sizes.
    Random {
        /// Smallest size.
        min: usize,
        /// Largest size.
        max: usize,
        /// Where the sequence starts.
        seed: u64,
    },
    /// Sizes with their weights, by number of frames. Weights that are whole after four decimal
    /// places have exact shares in a sequence of at most [`MAX_SEQUENCE`] frames; others are
    /// rounded to that length.
    Weighted(Vec<(usize, f64)>),
}

/// Why sizes cannot be used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SizeError {
    /// A size is outside what Ethernet, or this program, has.
    #[error(
        "a frame size of {0} bytes (FCS included): choose {MIN_LEN_WITH_FCS} to {MAX_LEN_WITH_FCS}"
    )]
    Range(usize),
    /// The first size is above the last.
    #[error("frame sizes from {0} to {1} bytes: the first must not be above the last")]
    Order(usize, usize),
    /// A weight is negative or no number, or there is none above zero.
    #[error("the weights of frame sizes must be numbers of at least 0, and one of them above 0")]
    Weights,
}

/// The mixes that OTG names, with the sizes and weights of its model's description of
/// `Flow.Size.WeightPairs.predefined`. Three of these give sizes below Ethernet's shortest frame;
/// those (58, 60 and 62 bytes) are 64 bytes here.
const PRESETS: [(&str, &[(usize, f64)]); 5] = [
    ("imix", &[(64, 7.0), (570, 4.0), (1518, 1.0)]),
    ("ipsec_imix", &[(90, 58.67), (92, 2.0), (594, 23.66), (1418, 15.67)]),
    ("ipv6_imix", &[(64, 58.67), (496, 2.0), (594, 23.66), (1518, 15.67)]),
    ("standard_imix", &[(64, 60.67), (594, 23.66), (1518, 15.67)]),
    ("tcp_imix", &[(90, 58.67), (92, 2.0), (594, 23.66), (1518, 15.67)]),
];

impl Sizes {
    /// The mix of a name: `imix`, `ipsec_imix`, `ipv6_imix`, `standard_imix` or `tcp_imix`.
    ///
    /// ```
    /// let imix = packet::size::Sizes::preset("imix").ok_or("unknown")?;
    /// // (7 * 64 + 4 * 570 + 1518) / 12 bytes
    /// assert_eq!(imix.mean_with_fcs(), 353.8333333333333);
    /// # Ok::<(), &str>(())
    /// ```
    pub fn preset(name: &str) -> Option<Self> {
        let (_, pairs) = PRESETS.iter().find(|(known, _)| *known == name)?;
        Some(Sizes::Weighted(pairs.to_vec()))
    }

    /// Whether the sizes can be sent.
    ///
    /// # Errors
    /// [`SizeError`] when a size is outside 64 to 9216 bytes, a range is upside down, or weights
    /// make no sense.
    pub fn check(&self) -> Result<(), SizeError> {
        let (min, max) = (self.min_with_fcs(), self.max_with_fcs());
        if let Sizes::Increment { start: min, end: max, .. } | Sizes::Random { min, max, .. } = self
        {
            if min > max {
                return Err(SizeError::Order(*min, *max));
            }
        }
        if let Sizes::Weighted(pairs) = self {
            let sound = pairs.iter().all(|(_, weight)| weight.is_finite() && *weight >= 0.0);
            if !sound || !pairs.iter().any(|(_, weight)| *weight > 0.0) {
                return Err(SizeError::Weights);
            }
        }
        match [min, max].iter().find(|n| !(MIN_LEN_WITH_FCS..=MAX_LEN_WITH_FCS).contains(n)) {
            Some(outside) => Err(SizeError::Range(*outside)),
            None => Ok(()),
        }
    }

    /// The smallest size, in bytes with FCS.
    pub fn min_with_fcs(&self) -> usize {
        match self {
            Sizes::Fixed(size) => *size,
            Sizes::Increment { start, .. } => *start,
            Sizes::Random { min, .. } => *min,
            Sizes::Weighted(pairs) => weighty(pairs).min().unwrap_or(0),
        }
    }

    /// The largest size, in bytes with FCS.
    pub fn max_with_fcs(&self) -> usize {
        match self {
            Sizes::Fixed(size) => *size,
            Sizes::Increment { start, end, step } => match end.saturating_sub(*start) {
                span if *step > 0 => start + span / step * step,
                _ => *start,
            },
            Sizes::Random { max, .. } => *max,
            Sizes::Weighted(pairs) => weighty(pairs).max().unwrap_or(0),
        }
    }

    /// The mean size of many frames, in bytes with FCS: exact for sequences, expected for random
    /// sizes.
    pub fn mean_with_fcs(&self) -> f64 {
        match self {
            Sizes::Weighted(pairs) => {
                let shares = shares(pairs);
                let total: u64 = shares.iter().map(|(_, n)| n).sum();
                let bytes: u64 = shares.iter().map(|(size, n)| *size as u64 * n).sum();
                bytes as f64 / total.max(1) as f64
            }
            // Evenly spread sizes: the mean is half-way.
            _ => (self.min_with_fcs() as f64 + self.max_with_fcs() as f64) / 2.0,
        }
    }

    /// How many sizes a writer keeps at hand: a whole round of a sequence.
    pub(crate) fn kept(&self) -> usize {
        match self {
            _ if self.is_constant() => 0,
            Sizes::Weighted(pairs) => shares(pairs).iter().map(|(_, n)| *n as usize).sum(),
            Sizes::Increment { start, end, step } => {
                end.saturating_sub(*start) / (*step).max(1) + 1
            }
            Sizes::Fixed(_) | Sizes::Random { .. } => 0,
        }
    }

    /// Whether all frames have one size.
    pub fn is_constant(&self) -> bool {
        self.min_with_fcs() == self.max_with_fcs()
    }

    /// The sizes of a whole round of a sequence; of random sizes there is none.
    fn sequence(&self) -> Option<Vec<usize>> {
        match self {
            Sizes::Fixed(size) => Some(vec![*size]),
            Sizes::Increment { start, end, step } => Some(
                (*start..=(*end).max(*start))
                    .step_by(if *step == 0 { usize::MAX } else { *step })
                    .collect(),
            ),
            Sizes::Random { .. } => None,
            Sizes::Weighted(pairs) => Some(interleave(&shares(pairs))),
        }
    }
}

fn weighty(pairs: &[(usize, f64)]) -> impl Iterator<Item = usize> + '_ {
    pairs.iter().filter(|(_, weight)| *weight > 0.0).map(|(size, _)| *size)
}

/// Weights as whole numbers of frames, as small as possible.
fn shares(pairs: &[(usize, f64)]) -> Vec<(usize, u64)> {
    let total: f64 = pairs.iter().map(|(_, weight)| weight).sum();
    // Weights come as 32-bit floats, which hold seven digits.
    let whole = |scale: f64| {
        let close = |w: f64| (w * scale - (w * scale).round()).abs() <= w * scale * 1e-6 + 1e-9;
        pairs.iter().all(|(_, weight)| close(*weight))
    };
    let scale = [1.0, 10.0, 100.0, 1000.0, 10_000.0].into_iter().find(|scale| whole(*scale));
    let at_most = MAX_SEQUENCE as f64 / total.max(f64::MIN_POSITIVE);
    let numbers = |scale: f64| -> Vec<(usize, u64)> {
        let number = |weight: f64| match weight > 0.0 {
            true => ((weight * scale).round() as u64).max(1),
            false => 0,
        };
        pairs.iter().map(|(size, weight)| (*size, number(*weight))).collect()
    };
    let mut shares = numbers(scale.unwrap_or(at_most));
    let divisor = shares.iter().fold(0, |a, (_, b)| gcd(a, *b)).max(1);
    shares.iter_mut().for_each(|(_, n)| *n /= divisor);
    if shares.iter().map(|(_, n)| n).sum::<u64>() > MAX_SEQUENCE as u64 {
        shares = numbers(at_most);
    }
    shares
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// A sequence with each size as often as its share, spread evenly: the size whose turn is most
/// overdue comes next (smooth weighted round robin).
fn interleave(shares: &[(usize, u64)]) -> Vec<usize> {
    let total: u64 = shares.iter().map(|(_, n)| n).sum();
    let mut due = vec![0i64; shares.len()];
    let mut next = || {
        let mut best = 0;
        for (i, (_, n)) in shares.iter().enumerate() {
            due[i] += *n as i64;
            if due[i] > due[best] {
                best = i;
            }
        }
        due[best] -= total as i64;
        shares[best].0
    };
    (0..total).map(|_| next()).collect()
}

#[cfg(test)]
mod tests;
