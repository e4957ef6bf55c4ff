// SPDX-License-Identifier: BSD-3-Clause
//! net_af_xdp: a kernel interface, through AF_XDP sockets.

use std::path::Path;

use dpdk_sys::{layout, rte_eth_dev_info};

use super::{Driver, Restrictions, refuse_key};
use crate::port::arguments::{Arguments, vdev};
use crate::port::config::PortConfig;
use crate::port::tx_guard::TxGuard;

pub(super) const DRIVER: Driver = Driver {
    name: "net_af_xdp",
    // Also if its queues could not be set up.
    check_arguments: |arguments| {
        let why = "with shared_umem its driver reads freed memory of other ports";
        refuse_key(arguments, "shared_umem", why)
    },
    max_rx_queues: QUEUES_WITH_STATISTICS,
    tx_guard,
    needs_guard: || true,
    after_rx_setup,
    leaves_sockets: true,
    sets_promiscuous_flag: true,
    ..Driver::PLAIN
};

/// The queues that `struct rte_eth_stats` has room for: `RTE_ETHDEV_QUEUE_STAT_CNTRS` in DPDK and
/// in distributions. (Releases from 25.11 on store them elsewhere.) The driver writes statistics
/// for every configured queue. From the 33rd on it writes past the end of the struct, which callers
/// have on their stacks.
const QUEUES_WITH_STATISTICS: u16 = 16;

/// The driver copies all bytes of a packet from the first segment into one buffer of the pool that
/// its queue receives into, and checks neither length. It sends mbufs of that pool without a copy,
/// even if their bytes belong to another mbuf.
fn tx_guard<'eal>(info: &rte_eth_dev_info, config: &PortConfig<'eal>) -> Option<TxGuard<'eal>> {
    let rooms = config.rx.iter().map(|queue| queue.pool.data_room());
    let room = rooms.min().unwrap_or(0).saturating_sub(layout::PKTMBUF_HEADROOM);
    let max_len = usize::from(room).min(info.max_rx_pktlen as usize);
    // The driver needs a receive queue for each transmit queue.
    config.rx.first().map(|queue| TxGuard::OneSegment { pool: queue.pool, max_len })
}

/// The driver keeps a queue that was set up until the port is closed, and cannot set it up again.
/// If the setup of a queue fails, the driver frees its memory, and frees it again when the port is
/// closed; a successful setup of the first queue repairs that.
fn after_rx_setup(queue: u16, code: i32) -> Restrictions {
    match code {
        0 => Restrictions { no_configure: true, no_close: false },
        _ => Restrictions { no_configure: queue > 0, no_close: true },
    }
}

/// A kernel interface. Needs `CAP_NET_ADMIN`, `CAP_NET_RAW` and `CAP_BPF`.
///
/// Each time a receive queue is set up, the driver takes 2048 buffers out of its pool for the
/// kernel, and never returns them, not even when the device is removed: the pool must have more. On
/// huge pages a few buffers at the end of a pool lie outside of the memory that the driver shares
/// with the kernel: packets sent from them are lost without being counted. In a new pool they are
/// used last. The device can be configured once; for another configuration detach it and attach it
/// again.
///
/// ```
/// use dpdk::vdev::AfXdp;
/// let device = AfXdp::new("net_af_xdp0", "veth0").first_queue(1).queue_count(2);
/// assert_eq!(device.to_string(), "net_af_xdp0,iface=veth0,start_queue=1,queue_count=2");
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AfXdp(Arguments);

vdev!(AfXdp, |arguments| {
    arguments.check_range("queue_count", 1..=u16::MAX.into(), "must be 1 to 65535")?;
    arguments.check_range("busy_budget", 0..=u16::MAX.into(), "must be 0 to 65535")
});

impl AfXdp {
    /// A device with that name, which begins with `net_af_xdp`, on a kernel interface.
    #[must_use]
    pub fn new(name: impl Into<String>, interface: impl AsRef<str>) -> Self {
        let mut arguments = Arguments::new(name);
        arguments.set("iface", interface.as_ref());
        Self(arguments)
    }

    /// The number of the interface's first queue that the device uses, 0 by default.
    #[must_use]
    pub fn first_queue(mut self, queue: u16) -> Self {
        self.0.set("start_queue", queue);
        self
    }

    /// The number of the interface's queues that the device uses, 1 by default. At most 16 of them
    /// can receive: see [`PortInfo::max_rx_queues`](crate::PortInfo::max_rx_queues).
    #[must_use]
    pub fn queue_count(mut self, count: u16) -> Self {
        self.0.set("queue_count", count);
        self
    }

    /// The object file of an XDP program, loaded in place of the default one, which gives all
    /// frames to the sockets. It must have a map `xsks_map`.
    #[must_use]
    pub fn xdp_program(mut self, path: impl AsRef<Path>) -> Self {
        self.0.set_path("xdp_prog", path);
        self
    }

    /// Packets per busy poll by the kernel, 64 by default; 0 switches busy polling off.
    #[must_use]
    pub fn busy_budget(mut self, packets: u16) -> Self {
        self.0.set("busy_budget", packets);
        self
    }

    /// Forces copies of frames, even if the interface's driver supports zero-copy; off by default.
    #[must_use]
    pub fn force_copy(mut self, on: bool) -> Self {
        self.0.set_flag("force_copy", on);
        self
    }
}
