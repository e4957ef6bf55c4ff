// SPDX-License-Identifier: BSD-3-Clause
//! The time of packets between reception and sending.

use measure::{Cell, Distribution, histogram};

use crate::poller::Poller;

/// The spans of packets that one thread sends on one (port, TX queue). The thread writes.
pub struct Spans {
    pub poller: &'static Poller,
    pub port: u16,
    pub queue: u16,
    /// Send calls that had stamped packets.
    sampled: Cell,
    /// The spans of packets with a stamp, in cycles.
    spans: Distribution,
}

/// Spans read at one moment, summed over the threads of a queue.
#[derive(Debug)]
pub struct Reading {
    pub port: u16,
    pub queue: u16,
    pub sampled: u64,
    pub count: u64,
    /// Minimum, mean and maximum, if any was counted.
    pub tsc: Option<(u64, u64, u64)>,
    /// The HDR histogram, as text.
    pub hdr: Option<String>,
}

impl Spans {
    pub fn new(poller: &'static Poller, port: u16, queue: u16) -> Self {
        Self { poller, port, queue, sampled: Cell::new(0), spans: Distribution::new() }
    }

    /// Counts a send call that had stamped packets.
    pub fn sampled(&self) {
        self.sampled.add(1);
    }

    /// Counts packets with a span of `span` cycles.
    pub fn sent(&self, span: u64, packets: u64) {
        self.spans.add(span, packets);
    }

    /// All spans of one queue; none if the list is empty.
    pub fn read(threads: &[&'static Self]) -> Option<Reading> {
        let first = threads.first()?;
        let spans = || threads.iter().map(|thread| &thread.spans);
        // First, so that the others hold all that it counts.
        let count = spans().map(Distribution::count).sum();
        let mean = spans().map(Distribution::sum).sum::<u64>().checked_div(count);
        let least = spans().filter_map(Distribution::min).min();
        let greatest = spans().filter_map(Distribution::max).max();
        Some(Reading {
            port: first.port,
            queue: first.queue,
            sampled: threads.iter().map(|thread| thread.sampled.get()).sum(),
            count,
            tsc: least
                .zip(mean)
                .zip(greatest)
                .map(|((least, mean), greatest)| (least, mean, greatest)),
            hdr: histogram::encode(spans().map(Distribution::counters)),
        })
    }
}
