// SPDX-License-Identifier: BSD-3-Clause
//! The packets of each port, counted by the lcores and read by anybody.

use std::sync::Arc;
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
pub(super) type Counters = Vec<(u16, Arc<PortCounters>)>;

impl PortCounters {
    #[inline(always)]
    pub(super) fn received(&self, n: usize) {
        add(&self.received, n);
    }

    #[inline(always)]
    pub(super) fn sent(&self, n: usize) {
        add(&self.sent, n);
    }

    #[inline(always)]
    pub(super) fn dropped(&self, n: usize) {
        add(&self.dropped, n);
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
#[inline(always)]
fn add(counter: &AtomicU64, n: usize) {
    counter.store(counter.load(Relaxed) + n as u64, Relaxed);
}

impl Counts {
    pub(super) fn add(&mut self, other: Self) {
        self.sent += other.sent;
        self.received += other.received;
        self.dropped += other.dropped;
    }
}
