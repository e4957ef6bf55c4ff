// SPDX-License-Identifier: BSD-3-Clause
//! The configuration of a port.

use super::offloads::{Request, RxOffloads, TxOffloads};
use super::rss::Rss;
use crate::mempool::Mempool;

/// The default number of a queue's descriptors, as in DPDK's examples.
const DESCRIPTORS: u16 = 1024;

/// A receive queue (`rte_eth_rx_queue_setup`).
#[derive(Clone, Debug)]
pub struct RxConfig<'eal> {
    /// The number of descriptors in the ring, one for each packet or segment; rounded to what
    /// [`PortInfo::rx_descriptors`](super::PortInfo::rx_descriptors) allows.
    pub descriptors: u16,
    /// The pool of the buffers for received packets.
    pub pool: Mempool<'eal>,
}

impl<'eal> RxConfig<'eal> {
    /// 1024 descriptors, filled from `pool`.
    #[must_use]
    pub fn new(pool: &Mempool<'eal>) -> Self {
        Self { descriptors: DESCRIPTORS, pool: *pool }
    }
}

/// A transmit queue (`rte_eth_tx_queue_setup`).
#[derive(Clone, Debug)]
pub struct TxConfig {
    /// The number of descriptors in the ring, one for each packet or segment; rounded to what
    /// [`PortInfo::tx_descriptors`](super::PortInfo::tx_descriptors) allows.
    pub descriptors: u16,
}

impl Default for TxConfig {
    fn default() -> Self {
        Self { descriptors: DESCRIPTORS }
    }
}

/// A port's configuration, with a queue for each entry (`rte_eth_conf`).
#[derive(Clone, Default, Debug)]
pub struct PortConfig<'eal> {
    /// Receive queues.
    pub rx: Vec<RxConfig<'eal>>,
    /// Transmit queues.
    pub tx: Vec<TxConfig>,
    /// Tells the driver that packet types are not read, which saves it the work
    /// (`rte_eth_dev_set_ptypes` with `RTE_PTYPE_UNKNOWN`). Drivers without that option are left
    /// unchanged.
    pub no_packet_types: bool,
    /// Bytes of the largest frame's payload, without the 14 bytes of the Ethernet header and the
    /// FCS; `None` for the driver's default, usually 1500. The port is configured for it
    /// (`rxmode.mtu`); a kernel interface behind the port (net_tap, net_af_packet, net_af_xdp)
    /// keeps its own MTU until [`PortControl::set_mtu`](super::PortControl::set_mtu).
    pub mtu: Option<u16>,
    /// Makes the driver report when the link goes up or down (`intr_conf.lsc`), for
    /// [`PortControl::watch`]; [`PortControl::link`] then returns the last reported state and does
    /// not ask the device. A [`Shortfall`] if the driver does not support it.
    ///
    /// [`PortControl::link`]: super::PortControl::link
    /// [`PortControl::watch`]: super::PortControl::watch
    /// [`Shortfall`]: super::Shortfall
    pub link_events: bool,
    /// How receive queues share frames.
    pub rss: Rss,
    /// Offloads of received packets.
    pub rx_offloads: Request<RxOffloads>,
    /// Offloads of packets to be sent.
    pub tx_offloads: Request<TxOffloads>,
}
