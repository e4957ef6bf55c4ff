// SPDX-License-Identifier: BSD-3-Clause
//! net_af_packet: a kernel interface, through packet sockets and memory shared with the kernel.

use super::Driver;
use crate::port::arguments::{Arguments, vdev};
use crate::port::tx_guard::TxGuard;

/// The driver checks that a packet fits into a slot of its ring, and only then inserts the VLAN
/// tag. So tags are inserted before.
pub(super) const DRIVER: Driver = Driver {
    name: "net_af_packet",
    tx_guard: |_, _| Some(TxGuard::InsertVlan),
    sets_promiscuous_flag: true,
    needs_guard: || true,
    ..Driver::PLAIN
};

/// A kernel interface. Needs `CAP_NET_RAW`.
///
/// ```
/// use dpdk::vdev::AfPacket;
/// let device = AfPacket::new("net_af_packet0", "veth0").queue_pairs(2);
/// assert_eq!(device.to_string(), "net_af_packet0,iface=veth0,qpairs=2");
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AfPacket(Arguments);

vdev!(AfPacket, |arguments| {
    let positive = "it must be positive and fit a C int";
    for key in ["qpairs", "blocksz", "framesz", "framecnt"] {
        arguments.check_range(key, 1..=i32::MAX as u64, positive)?;
    }
    Ok(())
});

impl AfPacket {
    /// A device with that name, which begins with `net_af_packet`, on a kernel interface.
    #[must_use]
    pub fn new(name: impl Into<String>, interface: impl AsRef<str>) -> Self {
        let mut arguments = Arguments::new(name);
        arguments.set("iface", interface.as_ref());
        Self(arguments)
    }

    /// The number of receive and of transmit queues, 1 by default. The kernel spreads connections
    /// over receive queues.
    #[must_use]
    pub fn queue_pairs(mut self, count: u16) -> Self {
        self.0.set("qpairs", count);
        self
    }

    /// Bytes of a block of the rings, a multiple of the page size; 4096 by default.
    #[must_use]
    pub fn block_size(mut self, bytes: u32) -> Self {
        self.0.set("blocksz", bytes);
        self
    }

    /// Bytes of a frame's slot, including 32 of the kernel's; 2048 by default. Blocks consist of
    /// whole slots, and a frame must fit into a buffer of the queue's pool: otherwise the setup of
    /// the queue fails with `ENOMEM`.
    #[must_use]
    pub fn frame_size(mut self, bytes: u32) -> Self {
        self.0.set("framesz", bytes);
        self
    }

    /// Slots of each ring, 512 by default.
    #[must_use]
    pub fn frame_count(mut self, count: u32) -> Self {
        self.0.set("framecnt", count);
        self
    }

    /// Bypasses the interface's queueing discipline; off by default.
    #[must_use]
    pub fn qdisc_bypass(mut self, on: bool) -> Self {
        self.0.set_flag("qdisc_bypass", on);
        self
    }
}
