// SPDX-License-Identifier: BSD-3-Clause
//! The packets of each port, counted by the lcores and read by anybody.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Packets of one port. Each field has one writer: the lcore that polls the port counts `received`,
/// the lcore that sends on it the others.
#[derive(Default)]
#[repr(align(64))]
pub struct PortCounters {
    received: AtomicU64,
    sent: AtomicU64,
    dropped: AtomicU64,
}

/// One reading of a port's counters, or their sum.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(super) struct Counts {
    pub(super) sent: u64,
    pub(super) received: u64,
    pub(super) dropped: u64,
}

/// Every port's counters, by ascending port.
pub(super) type Counters = Vec<(u16, PortCounters)>;

impl PortCounters {
    /// Adds what the lcore that polls this port has received.
    pub(super) fn received(&self, counts: &Counts) {
        add(&self.received, counts.received);
    }

    /// Adds what the lcore that sends on this port has sent and dropped.
    pub(super) fn sent(&self, counts: &Counts) {
        add(&self.sent, counts.sent);
        add(&self.dropped, counts.dropped);
    }

    pub(super) fn read(&self) -> Counts {
        Counts {
            sent: self.sent.load(Relaxed),
            received: self.received.load(Relaxed),
            dropped: self.dropped.load(Relaxed),
        }
    }
}

/// There is one writer: no atomic addition is needed.
fn add(counter: &AtomicU64, n: u64) {
    counter.store(counter.load(Relaxed) + n, Relaxed);
}

impl Counts {
    pub(super) fn add(&mut self, other: Self) {
        self.sent += other.sent;
        self.received += other.received;
        self.dropped += other.dropped;
    }
}
