// SPDX-License-Identifier: BSD-3-Clause
//! The packets of each port, counted by the lcores and read by anybody.

use measure::Cell;

/// Packets of one port. Each field has one writer: the lcore that polls the port counts `received`,
/// the lcore that sends on it the others.
#[derive(Default)]
#[repr(align(64))]
pub struct PortCounters {
    received: Cell,
    sent: Cell,
    dropped: Cell,
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
        self.received.add(counts.received);
    }

    /// Adds what the lcore that sends on this port has sent and dropped.
    pub(super) fn sent(&self, counts: &Counts) {
        self.sent.add(counts.sent);
        self.dropped.add(counts.dropped);
    }

    pub(super) fn read(&self) -> Counts {
        Counts { sent: self.sent.get(), received: self.received.get(), dropped: self.dropped.get() }
    }
}

impl Counts {
    pub(super) fn add(&mut self, other: Self) {
        self.sent += other.sent;
        self.received += other.received;
        self.dropped += other.dropped;
    }
}
