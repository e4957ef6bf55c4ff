// SPDX-License-Identifier: BSD-3-Clause
//! Figures of a polling core: how its polls went and how long it was busy.
//!
//! A [`QueueFigures`] belongs to one (lcore, port, RX queue). The lcore writes it through a
//! [`Meter`], everybody may read it; it has one writer, so plain loads and stores of atomics suffice.
//! Units are packets and TSC cycles, counted since the first poll.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use dpdk::telemetry::{RegisterError, Value};
use dpdk::{Eal, tsc};

/// Most packets that a poll asks for.
pub const BURST: usize = 32;

/// What became of the polls of one receive queue.
#[repr(align(64))]
pub struct QueueFigures {
    /// The lcore that polls.
    pub lcore: u32,
    /// The port polled.
    pub port: u16,
    /// Its queue.
    pub queue: u16,
    /// Polls that returned 0, 1, .. `BURST` packets. The other counts follow from it, so that they
    /// can never disagree.
    bursts: [AtomicU64; BURST + 1],
    /// From the return of a poll with packets to the return of the lcore's next poll.
    busy_tsc: AtomicU64,
    /// The TSC at the first poll; 0 before it.
    first_tsc: AtomicU64,
}

impl QueueFigures {
    fn new(lcore: u32, port: u16, queue: u16) -> Self {
        Self {
            lcore,
            port,
            queue,
            bursts: [const { AtomicU64::new(0) }; BURST + 1],
            busy_tsc: AtomicU64::new(0),
            first_tsc: AtomicU64::new(0),
        }
    }

    /// The entry of `/linerate/polling`, at TSC `now`.
    fn entry(&self, now: u64) -> Value {
        let bursts: Vec<u64> = self.bursts.iter().map(|count| count.load(Relaxed)).collect();
        let packets = (0u64..).zip(&bursts).map(|(size, polls)| size * polls).sum::<u64>();
        let total = match self.first_tsc.load(Relaxed) {
            0 => 0,
            first => now.saturating_sub(first),
        };
        Value::dict([
            ("lcore", u64::from(self.lcore).into()),
            ("port", u64::from(self.port).into()),
            ("queue", u64::from(self.queue).into()),
            ("polls", bursts.iter().sum::<u64>().into()),
            ("empty_polls", bursts[0].into()),
            ("packets", packets.into()),
            ("burst_limit", (BURST as u64).into()),
            ("burst_histogram", Value::Numbers(bursts)),
            ("busy_tsc", self.busy_tsc.load(Relaxed).into()),
            ("total_tsc", total.into()),
        ])
    }
}

#[inline(always)]
fn add(counter: &AtomicU64, n: u64) {
    counter.store(counter.load(Relaxed).wrapping_add(n), Relaxed);
}

/// Counts one lcore's polls.
pub struct Meter {
    queues: Vec<Arc<QueueFigures>>,
    /// The queue whose packets the lcore is busy with, and since when.
    busy: Option<(usize, u64)>,
}

impl Meter {
    /// A meter of `lcore` for these (port, queue) pairs, in the order in which they are counted.
    #[must_use]
    pub fn new(lcore: u32, queues: &[(u16, u16)]) -> Self {
        let queues = queues
            .iter()
            .map(|&(port, queue)| Arc::new(QueueFigures::new(lcore, port, queue)))
            .collect();
        Self { queues, busy: None }
    }

    /// The figures, for others to read.
    #[must_use]
    pub fn figures(&self) -> &[Arc<QueueFigures>] {
        &self.queues
    }

    /// Notes that a poll of the `index`th queue returned `packets` (at most `BURST`) at TSC `now`.
    #[inline(always)]
    pub fn polled(&mut self, index: usize, packets: usize, now: u64) {
        if let Some((queue, since)) = self.busy {
            add(&self.queues[queue].busy_tsc, now.wrapping_sub(since));
        }
        self.busy = (packets > 0).then_some((index, now));
        let figures = &self.queues[index];
        if let Some(polls) = figures.bursts.get(packets) {
            add(polls, 1);
        }
        if figures.first_tsc.load(Relaxed) == 0 {
            figures.first_tsc.store(now, Relaxed);
        }
    }
}

/// The answer to `/linerate/polling`: an entry for each receive queue.
#[must_use]
pub fn entries(figures: &[Arc<QueueFigures>]) -> Value {
    let now = tsc::now();
    Value::List(figures.iter().map(|figures| figures.entry(now)).collect())
}

/// Answers `/linerate/polling` with these figures, and `/linerate/clock`.
///
/// # Errors
/// See [`RegisterError`].
pub fn register(eal: &Eal, figures: Vec<Arc<QueueFigures>>) -> Result<(), RegisterError> {
    let telemetry = eal.telemetry();
    telemetry.register_clock()?;
    telemetry.register("/linerate/polling", "Polls of each receive queue", move |_| {
        Some(entries(&figures))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(entry: &Value, name: &str) -> u64 {
        match entry {
            Value::Dict(entries) => match entries.iter().find(|(key, _)| key == name) {
                Some((_, Value::U64(number))) => *number,
                other => panic!("{name}: {other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn busy_runs_from_a_poll_with_packets_to_the_return_of_the_next_poll() {
        let mut meter = Meter::new(1, &[(0, 0), (1, 0)]);
        meter.polled(0, 0, 100); // idle until here
        meter.polled(1, 32, 150); // idle before it: nothing to count
        meter.polled(0, 1, 250); // 100 for port 1
        meter.polled(1, 0, 270); // 20 for port 0
        meter.polled(0, 0, 900); // idle before it
        let [first, second] = [meter.figures()[0].entry(1000), meter.figures()[1].entry(1000)];
        assert_eq!(number(&first, "busy_tsc"), 20);
        assert_eq!(number(&first, "total_tsc"), 900);
        assert_eq!(number(&first, "polls"), 3);
        assert_eq!(number(&first, "empty_polls"), 2);
        assert_eq!(number(&first, "packets"), 1);
        assert_eq!(number(&second, "busy_tsc"), 100);
        assert_eq!(number(&second, "total_tsc"), 850);
        assert_eq!(number(&second, "packets"), 32);
    }
}
