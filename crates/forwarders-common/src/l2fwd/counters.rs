// SPDX-License-Identifier: BSD-3-Clause
//! The packets of each port, as l2fwd counts them.

/// One reading of a port's counters, or their sum.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Counts {
    /// Packets sent on the port.
    pub sent: u64,
    /// Packets received on it.
    pub received: u64,
    /// Packets that were to be sent on it and were not, or were received on it truncated.
    pub dropped: u64,
}

impl Counts {
    /// Adds another reading.
    pub fn add(&mut self, other: Self) {
        self.sent += other.sent;
        self.received += other.received;
        self.dropped += other.dropped;
    }
}

/// The counters of the ports, which any thread may read while others write.
pub trait Counted: Sync {
    /// Every port's counts now, by ascending port.
    fn read(&self) -> Vec<(u16, Counts)>;
}
