// SPDX-License-Identifier: BSD-3-Clause
//! Frames that are held back until others have overtaken them.

use std::collections::VecDeque;

use super::every::Every;

/// Holds some frames until a number of later ones have been received.
pub(super) struct Reorder<F> {
    every: Every,
    distance: u64,
    /// Frames received.
    seen: u64,
    /// Held frames, each with the number of the frame at which it leaves, in the order of arrival.
    /// They are among the last `distance` frames, so the queue never grows beyond that.
    held: VecDeque<(u64, F)>,
}

impl<F> Reorder<F> {
    /// Holds the frames that `every` selects until `distance` later frames have been received.
    pub(super) fn new(every: Every, distance: u32) -> Self {
        let held = VecDeque::with_capacity(distance as usize + 1);
        Self { every, distance: distance.into(), seen: 0, held }
    }

    /// Takes a frame, and passes the frames that leave now to `out`. Returns true if the frame is
    /// held back.
    #[inline]
    pub(super) fn pass(&mut self, frame: F, mut out: impl FnMut(F)) -> bool {
        self.seen += 1;
        let hold = self.every.hits();
        if hold {
            self.held.push_back((self.seen + self.distance, frame));
        } else {
            out(frame);
        }
        while self.held.front().is_some_and(|(due, _)| *due <= self.seen) {
            let Some((_, frame)) = self.held.pop_front() else { break };
            out(frame);
        }
        hold
    }

    /// Frames that are held.
    pub(super) fn held(&self) -> usize {
        self.held.len()
    }

    /// Gives up all frames that are held, in the order of arrival.
    pub(super) fn end(&mut self) -> impl Iterator<Item = F> {
        self.held.drain(..).map(|(_, frame)| frame)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::impair::every::Random;

    fn order(every: u64, distance: u32, frames: u32) -> (Vec<u32>, Vec<u32>) {
        let mut reorder = Reorder::new(Every::new(every, None), distance);
        let mut out = Vec::new();
        for frame in 1..=frames {
            reorder.pass(frame, |frame| out.push(frame));
        }
        (out, reorder.end().collect())
    }

    #[test]
    fn a_frame_is_sent_after_as_many_later_ones() {
        assert_eq!(order(3, 1, 7), (vec![1, 2, 4, 3, 5, 7, 6], vec![]));
        assert_eq!(order(4, 3, 8), (vec![1, 2, 3, 5, 6, 7, 4], vec![8]));
        // Held frames count among the later ones.
        assert_eq!(order(2, 3, 8), (vec![1, 3, 5, 2, 7, 4], vec![6, 8]));
        assert_eq!(
            order(1, 2, 4),
            (vec![1, 2], vec![3, 4]),
            "all late by the same is no reordering"
        );
    }

    proptest! {
        #[test]
        fn none_is_lost_and_none_is_held_longer(n in 1u64..5, distance in 1u32..9, seed: u64, frames in 0u32..200) {
            let mut reorder = Reorder::new(Every::new(n, Some(Random::new(seed, 0))), distance);
            let room = reorder.held.capacity();
            let mut left = Vec::new();
            for frame in 0..frames {
                let mut now = Vec::new();
                reorder.pass(frame, |frame| now.push(frame));
                prop_assert!(reorder.held() <= distance as usize);
                prop_assert!(now.iter().all(|left| *left == frame || *left + distance == frame));
                left.extend(now);
            }
            prop_assert_eq!(reorder.held.capacity(), room);
            left.extend(reorder.end());
            left.sort_unstable();
            prop_assert_eq!(left, (0..frames).collect::<Vec<_>>());
        }
    }
}
