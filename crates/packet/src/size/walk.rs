// SPDX-License-Identifier: BSD-3-Clause
//! Sizes being walked: the state that one writer keeps. Lengths here are without FCS.

use super::{Random, Sizes};
use crate::FCS_LEN;

/// Frames that are sized at once without looking for the end of the sequence.
const AHEAD: usize = 32;

/// The lengths of successive frames, without FCS.
#[derive(Clone, Debug)]
pub(crate) enum Walk {
    /// One length.
    Fixed(u32),
    /// A sequence, over and over; `lens` goes on for [`AHEAD`] frames behind its end.
    List { lens: Box<[u16]>, period: usize, at: usize },
    /// Each length from `min` on equally likely.
    Random { min: u32, span: u64, seed: u64, random: Random },
}

impl Walk {
    /// From the first length on. The sizes must have passed [`Sizes::check`].
    pub fn new(sizes: &Sizes) -> Self {
        let len = |size: usize| size.saturating_sub(FCS_LEN);
        if sizes.is_constant() {
            return Walk::Fixed(len(sizes.min_with_fcs()) as u32);
        }
        match (sizes.sequence(), sizes) {
            (Some(sequence), _) => {
                let period = sequence.len();
                let around = sequence.iter().cycle().take(period + AHEAD);
                Walk::List { lens: around.map(|size| len(*size) as u16).collect(), period, at: 0 }
            }
            (None, Sizes::Random { min, max, seed }) => Walk::Random {
                min: len(*min) as u32,
                span: (max - min) as u64 + 1,
                seed: *seed,
                random: Random::new(*seed),
            },
            (None, _) => Walk::Fixed(len(sizes.min_with_fcs()) as u32),
        }
    }

    /// The next length, which stays the next.
    pub fn peek(&self) -> usize {
        match self {
            Walk::Fixed(len) => *len as usize,
            Walk::List { lens, at, .. } => lens.get(*at).copied().unwrap_or(0).into(),
            Walk::Random { min, span, random, .. } => {
                let mut ahead = *random;
                (*min as usize) + ahead.below(*span) as usize
            }
        }
    }

    /// The next lengths, as many as `out` has places.
    #[inline]
    pub fn fill(&mut self, out: &mut [u32]) {
        match self {
            Walk::Fixed(len) => out.fill(*len),
            Walk::List { lens, period, at } => {
                for out in out.chunks_mut(AHEAD) {
                    let next = lens.get(*at..).unwrap_or_default();
                    out.iter_mut().zip(next).for_each(|(out, len)| *out = (*len).into());
                    *at = (*at + out.len()) % *period;
                }
            }
            Walk::Random { min, span, random, .. } => {
                for out in out {
                    *out = *min + random.below(*span) as u32;
                }
            }
        }
    }

    /// Back to the first length.
    pub fn restart(&mut self) {
        match self {
            Walk::Fixed(_) => {}
            Walk::List { at, .. } => *at = 0,
            Walk::Random { seed, random, .. } => *random = Random::new(*seed),
        }
    }
}
