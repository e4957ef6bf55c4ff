// SPDX-License-Identifier: BSD-3-Clause
//! net_af_xdp: a kernel interface by AF_XDP sockets.

use std::path::Path;

use dpdk_sys::{layout, rte_eth_dev_info};

use super::{Driver, Restrictions, refuse_key};
use crate::port::arguments::{Arguments, vdev};
use crate::port::config::PortConfig;
use crate::port::tx_guard::TxGuard;

pub(super) const DRIVER: Driver = Driver {
    name: "net_af_xdp",
    // Also where its queues could not be set up.
    check_arguments: |arguments| {
        let why = "with shared_umem its driver looks at what it has freed of other ports";
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

/// Queues that `struct rte_eth_stats` has room for: `RTE_ETHDEV_QUEUE_STAT_CNTRS` as DPDK and distributions have it.
/// (Releases from 25.11 on keep them elsewhere.) The driver writes statistics for every configured queue, from the 33rd on
/// past the end of the struct, which callers have on their stacks.
const QUEUES_WITH_STATISTICS: u16 = 16;

/// It copies all bytes of a packet out of the first segment into one buffer of the pool that its queue receives into,
/// and checks neither length. Mbufs of that pool it sends in place, even if their bytes belong to another mbuf.
fn tx_guard<'eal>(info: &rte_eth_dev_info, config: &PortConfig<'eal>) -> Option<TxGuard<'eal>> {
    let rooms = config.rx.iter().map(|queue| queue.pool.data_room());
    let room = rooms.min().unwrap_or(0).saturating_sub(layout::PKTMBUF_HEADROOM);
    let max_len = usize::from(room).min(info.max_rx_pktlen as usize);
    // The driver takes no queue that sends without one that receives.
    config.rx.first().map(|queue| TxGuard::OneSegment { pool: queue.pool, max_len })
}

/// It keeps the queues that it has set up until the port is closed, and cannot set them up again. When a queue cannot be set
/// up it frees what it has made so far, and frees it again when the port is closed; setting up the first queue
/// successfully makes up for that.
fn after_rx_setup(queue: u16, code: i32) -> Restrictions {
    match code {
        0 => Restrictions { no_configure: true, no_close: false },
        _ => Restrictions { no_configure: queue > 0, no_close: true },
    }
}

/// A kernel interface. Needs `CAP_NET_ADMIN`, `CAP_NET_RAW` and `CAP_BPF`.
///
/// The driver takes 2048 buffers out of a receive queue's pool each time that the queue is set up, for the kernel to
/// receive into, and gives none of them back, not even when the device is removed: the pool has to have more. On huge pages a few
/// buffers at a pool's end lie outside of the memory that the driver shares with the kernel: what is sent from them is lost, and nobody
/// counts it. In a new pool they are the last to be taken. It is configured once; for another configuration it is detached and attached again.
///
/// ```
/// use dpdk::vdev::AfXdp;
/// let device = AfXdp::new("net_af_xdp0", "veth0").first_queue(1).queue_count(2);
/// assert_eq!(device.to_string(), "net_af_xdp0,iface=veth0,start_queue=1,queue_count=2");
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AfXdp(Arguments);

vdev!(AfXdp, |arguments| {
    arguments.check_range("queue_count", 1..=u16::MAX.into(), "it has a queue at least")?;
    arguments.check_range("busy_budget", 0..=u16::MAX.into(), "the kernel counts it in 16 bits")
});

impl AfXdp {
    /// A device of that name, which begins with `net_af_xdp`, on a kernel interface.
    #[must_use]
    pub fn new(name: impl Into<String>, interface: impl AsRef<str>) -> Self {
        let mut arguments = Arguments::new(name);
        arguments.set("iface", interface.as_ref());
        Self(arguments)
    }

    /// The first of the interface's queues that it takes, 0 by default.
    #[must_use]
    pub fn first_queue(mut self, queue: u16) -> Self {
        self.0.set("start_queue", queue);
        self
    }

    /// How many of the interface's queues it takes, 1 by default. Of more than 16 only 16 can receive: see
    /// [`PortInfo::max_rx_queues`](crate::PortInfo::max_rx_queues).
    #[must_use]
    pub fn queue_count(mut self, count: u16) -> Self {
        self.0.set("queue_count", count);
        self
    }

    /// An XDP program's object file, loaded in place of the one that gives all frames to the sockets; it has a map
    /// `xsks_map`.
    #[must_use]
    pub fn xdp_program(mut self, path: impl AsRef<Path>) -> Self {
        self.0.set_path("xdp_prog", path);
        self
    }

    /// Packets per busy poll of the kernel's, 64 by default; 0 switches busy polling off.
    #[must_use]
    pub fn busy_budget(mut self, packets: u16) -> Self {
        self.0.set("busy_budget", packets);
        self
    }

    /// Whether frames are copied also where the interface's driver could do without; off by default.
    #[must_use]
    pub fn force_copy(mut self, on: bool) -> Self {
        self.0.set_flag("force_copy", on);
        self
    }
}
