// SPDX-License-Identifier: BSD-3-Clause
//! How long packets were on their way from reception to sending.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::figures::add;
use crate::histogram::{self, Counters};
use crate::poller::Poller;

/// The spans of packets that one thread sends on one (port, TX queue). The thread writes.
pub struct Spans {
    pub poller: &'static Poller,
    pub port: u16,
    pub queue: u16,
    /// Send calls that had stamped packets.
    sampled: AtomicU64,
    /// Packets with a stamp.
    count: AtomicU64,
    sum_tsc: AtomicU64,
    min_tsc: AtomicU64,
    max_tsc: AtomicU64,
    counters: Counters,
}

/// Spans read at one moment, summed over the threads of a queue.
#[derive(Debug)]
pub struct Reading {
    pub port: u16,
    pub queue: u16,
    pub sampled: u64,
    pub count: u64,
    /// Least, mean and greatest, where any was counted.
    pub tsc: Option<(u64, u64, u64)>,
    /// The HDR histogram, as text.
    pub hdr: Option<String>,
}

impl Spans {
    pub fn new(poller: &'static Poller, port: u16, queue: u16) -> Self {
        Self {
            poller,
            port,
            queue,
            sampled: AtomicU64::new(0),
            count: AtomicU64::new(0),
            sum_tsc: AtomicU64::new(0),
            min_tsc: AtomicU64::new(u64::MAX),
            max_tsc: AtomicU64::new(0),
            counters: Counters::new(),
        }
    }

    /// Counts a call to send that had stamped packets.
    pub fn sampled(&self) {
        add(&self.sampled, 1);
    }

    /// Counts packets that were on their way for `span` cycles.
    pub fn sent(&self, span: u64, packets: u64) {
        self.counters.add(span, packets);
        self.min_tsc.store(self.min_tsc.load(Relaxed).min(span), Relaxed);
        self.max_tsc.store(self.max_tsc.load(Relaxed).max(span), Relaxed);
        add(&self.sum_tsc, span.wrapping_mul(packets));
        // Last, so that whoever reads it first finds all that it counts.
        self.count.store(self.count.load(Relaxed).wrapping_add(packets), Release);
    }

    /// All spans of one queue; none when the list is empty.
    pub fn read(threads: &[&'static Self]) -> Option<Reading> {
        let first = threads.first()?;
        let count = threads.iter().map(|spans| spans.count.load(Acquire)).sum();
        let sum = |of: fn(&Self) -> &AtomicU64| -> u64 {
            threads.iter().map(|spans| of(spans).load(Relaxed)).sum()
        };
        let least = threads.iter().map(|spans| spans.min_tsc.load(Relaxed)).min()?;
        let greatest = threads.iter().map(|spans| spans.max_tsc.load(Relaxed)).max()?;
        let mean = sum(|spans| &spans.sum_tsc).checked_div(count);
        Some(Reading {
            port: first.port,
            queue: first.queue,
            sampled: sum(|spans| &spans.sampled),
            count,
            tsc: mean.map(|mean| (least, mean, greatest)),
            hdr: histogram::encode(threads.iter().map(|spans| &spans.counters)),
        })
    }
}
