// SPDX-License-Identifier: BSD-3-Clause
//! Whether an lcore looks at its queues all the time: the kernel and a hypervisor give its CPU to others.

use std::cell::Cell;

use measure::Distribution;

/// Sees each reading of an lcore's clock. Two that lie further apart than the limit have a *pause* between them: what arrived
/// meanwhile waited for the lcore.
#[derive(Debug)]
pub(super) struct Watch<'a> {
    limit: u64,
    last: Cell<u64>,
    pauses: Cell<u64>,
    books: Option<&'a Distribution>,
}

impl<'a> Watch<'a> {
    /// A watch that has seen nothing. `limit` is in cycles; `books` get the lengths of pauses.
    pub fn new(limit: u64, books: Option<&'a Distribution>) -> Self {
        Watch { limit, last: Cell::new(u64::MAX), pauses: Cell::new(0), books }
    }

    /// Pauses so far.
    #[inline]
    pub fn pauses(&self) -> u64 {
        self.pauses.get()
    }

    /// The clock was read. Gives the reading back.
    #[inline]
    pub fn see(&self, now: u64) -> u64 {
        let passed = now.saturating_sub(self.last.replace(now));
        if passed > self.limit {
            self.enter(passed);
        }
        now
    }

    /// The lcore does not look at its queues until the next reading, which is no pause.
    pub fn rest(&self) {
        self.last.set(u64::MAX);
    }

    #[cold]
    fn enter(&self, pause: u64) {
        self.pauses.set(self.pauses.get() + 1);
        if let Some(books) = self.books {
            books.add(pause, 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_that_lie_far_apart_are_a_pause() {
        let books = Distribution::new();
        let watch = Watch::new(100, Some(&books));
        for now in [5000, 5100, 5100, 5201, 5202] {
            assert_eq!(watch.see(now), now);
        }
        assert_eq!((watch.pauses(), books.count(), books.max()), (1, 1, Some(101)));
        watch.rest();
        watch.see(9000);
        assert_eq!(watch.pauses(), 1, "a rest is none");
    }
}
