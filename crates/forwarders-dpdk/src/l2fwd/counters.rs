// SPDX-License-Identifier: BSD-3-Clause
//! The packets of each port, counted by the lcores; any thread may read the counts.

use forwarders_common::l2fwd::{Counted, Counts};
use measure::Cell;

/// Packets of one port. Each field has one writer: the lcore that polls the port counts `received`,
/// the lcore that sends on it the others.
#[derive(Default)]
#[repr(align(64))]
pub(super) struct PortCounters {
    received: Cell,
    sent: Cell,
    dropped: Cell,
}

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

    fn read(&self) -> Counts {
        Counts { sent: self.sent.get(), received: self.received.get(), dropped: self.dropped.get() }
    }
}

/// Every port's counters, by ascending port.
pub(super) struct Counters(Vec<(u16, PortCounters)>);

impl Counters {
    /// Counters for these ports.
    pub(super) fn new(ports: impl IntoIterator<Item = u16>) -> Self {
        Self(ports.into_iter().map(|port| (port, PortCounters::default())).collect())
    }

    /// The counters of one port.
    pub(super) fn of(&self, port: u16) -> Option<&PortCounters> {
        self.0.iter().find(|(id, _)| *id == port).map(|(_, own)| own)
    }
}

impl Counted for Counters {
    fn read(&self) -> Vec<(u16, Counts)> {
        self.0.iter().map(|(port, counters)| (*port, counters.read())).collect()
    }
}
