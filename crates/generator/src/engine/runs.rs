// SPDX-License-Identifier: BSD-3-Clause
//! The flows of the queued frames: (flow, count) pairs in the order of the queue.

use super::io::BURST;

/// Stands for frames that belong to no flow. There are never that many flows.
pub const NOBODY: u16 = u16::MAX;

/// The flows of the frames in a port's queue. Holds as many frames as a burst.
#[derive(Debug, Default)]
pub struct Runs {
    pairs: [(u16, u16); BURST],
    len: usize,
    frames: usize,
}

impl Runs {
    /// Number of queued frames.
    #[inline]
    pub fn frames(&self) -> usize {
        self.frames
    }

    /// Appends `count` frames of `flow`; with the queued ones, at most a burst.
    #[inline]
    pub fn push(&mut self, flow: u16, count: usize) {
        debug_assert!(self.frames + count <= BURST);
        self.frames += count;
        if let Some(last) = self.len.checked_sub(1).and_then(|last| self.pairs.get_mut(last)) {
            if last.0 == flow {
                last.1 += count as u16;
                return;
            }
        }
        if let Some(slot) = self.pairs.get_mut(self.len) {
            *slot = (flow, count as u16);
            self.len += 1;
        }
    }

    /// Removes `count` frames from the front and reports their flows.
    #[inline]
    pub fn take_front(&mut self, count: usize, mut tell: impl FnMut(u16, u64)) {
        let mut left = count.min(self.frames);
        self.frames -= left;
        let mut gone = 0;
        while left > 0 {
            let Some((flow, run)) = self.pairs.get_mut(gone) else { break };
            let taken = left.min(usize::from(*run));
            tell(*flow, taken as u64);
            *run -= taken as u16;
            left -= taken;
            if *run == 0 {
                gone += 1;
            }
        }
        if gone > 0 {
            self.pairs.copy_within(gone..self.len, 0);
            self.len -= gone;
        }
    }

    /// Marks the queued frames of `flow` as belonging to no flow.
    pub fn disown(&mut self, flow: u16) {
        for (own, _) in self.pairs.iter_mut().take(self.len).filter(|pair| pair.0 == flow) {
            *own = NOBODY;
        }
    }

    /// The flows of the queued frames.
    #[inline]
    pub fn each(&self, mut tell: impl FnMut(u16, u64)) {
        for (flow, count) in self.pairs.iter().take(self.len) {
            tell(*flow, u64::from(*count));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        #[test]
        fn runs_are_a_queue(steps in prop::collection::vec((0u16..4, 0usize..8, 0usize..12), 0..200)) {
            let (mut runs, mut model) = (Runs::default(), VecDeque::new());
            for (flow, push, take) in steps {
                let push = push.min(BURST - model.len());
                if push > 0 {
                    runs.push(flow, push);
                    model.extend(std::iter::repeat_n(flow, push));
                }
                prop_assert_eq!(runs.frames(), model.len());
                let mut told = Vec::new();
                runs.take_front(take, |flow, count| told.extend(std::iter::repeat_n(flow, count as usize)));
                let wanted: Vec<u16> = (0..take).map_while(|_| model.pop_front()).collect();
                prop_assert_eq!(told, wanted);
                let mut told = Vec::new();
                runs.each(|flow, count| told.extend(std::iter::repeat_n(flow, count as usize)));
                prop_assert_eq!(told, model.iter().copied().collect::<Vec<_>>());
            }
        }
    }
}
