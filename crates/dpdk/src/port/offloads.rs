// SPDX-License-Identifier: BSD-3-Clause
//! Work that a port may do in place of the program.
//!
//! # What is safe to ask for
//! On reception a driver may then hand out packets of several segments (`SCATTER`, `TCP_LRO`), with four
//! more bytes (`KEEP_CRC`), or with a time in a dynamic field, which DPDK's register keeps apart from all
//! others (`TIMESTAMP`). [`Mbuf`](crate::Mbuf) takes each of them for what it is.
//!
//! On transmission a driver works where a packet's own fields say (`l2_len`, `l3_len`, ...), and there are
//! drivers that do it in software and look at little: net_tap and net_vhost write checksums at these places.
//! The rule that keeps them inside the packet is `Mbuf`'s: such a request is made by calls that hold it
//! against the first segment, only for packets whose bytes have one owner, and is gone when the packet changes
//! its shape. A received packet carries none but what the program itself asked for (net_ring passes packets on as
//! they are): the vhost library would let its peer write requests with `legacy-ol-flags`, which
//! [`Eal::attach`](crate::Eal::attach) refuses.
//!
//! # What cannot be asked for
//! - `MBUF_FAST_FREE`: the driver would put whole bursts back into one pool without a look at them. It holds
//!   only when all packets come from one pool and have one owner, and packets of safe programs may be cloned,
//!   chained and of any pool. What the driver would do wrong nobody would notice until later.
//! - `BUFFER_SPLIT` needs a description of the segments, `SECURITY` and the `MACSEC`s need sessions, which
//!   this crate has not.
//! - `MT_LOCKFREE`: a `TxQueue` has one owner at a time, so there is no lock to save.

use dpdk_sys::layout;

use super::bits::bit_set;

bit_set! {
    /// Work on received packets (`RTE_ETH_RX_OFFLOAD_*`). Names are those of `rte_eth_dev_rx_offload_name`.
    pub struct RxOffloads {
        /// The outermost VLAN tag is taken out of the packet and put beside it.
        VLAN_STRIP = layout::RX_OFFLOAD_VLAN_STRIP, "VLAN_STRIP";
        /// Says whether the IPv4 header's checksum is right.
        IPV4_CKSUM = layout::RX_OFFLOAD_IPV4_CKSUM, "IPV4_CKSUM";
        /// Says whether UDP's checksum is right.
        UDP_CKSUM = layout::RX_OFFLOAD_UDP_CKSUM, "UDP_CKSUM";
        /// Says whether TCP's checksum is right.
        TCP_CKSUM = layout::RX_OFFLOAD_TCP_CKSUM, "TCP_CKSUM";
        /// Consecutive segments of a TCP connection come as one packet of several mbufs.
        TCP_LRO = layout::RX_OFFLOAD_TCP_LRO, "TCP_LRO";
        /// Two VLAN tags are taken out of the packet.
        QINQ_STRIP = layout::RX_OFFLOAD_QINQ_STRIP, "QINQ_STRIP";
        /// Says whether the checksum of a tunnel's outer IPv4 header is right.
        OUTER_IPV4_CKSUM = layout::RX_OFFLOAD_OUTER_IPV4_CKSUM, "OUTER_IPV4_CKSUM";
        /// Only frames of VLANs that were added are received; see `PortControl::add_vlan`.
        VLAN_FILTER = layout::RX_OFFLOAD_VLAN_FILTER, "VLAN_FILTER";
        /// Filtering and stripping know two tags.
        VLAN_EXTEND = layout::RX_OFFLOAD_VLAN_EXTEND, "VLAN_EXTEND";
        /// Frames longer than a buffer are received, as packets of several mbufs.
        SCATTER = layout::RX_OFFLOAD_SCATTER, "SCATTER";
        /// Each packet carries the port's clock, in a dynamic field.
        TIMESTAMP = layout::RX_OFFLOAD_TIMESTAMP, "TIMESTAMP";
        /// The frame check sequence stays: packets are four bytes longer. Not beside [`TCP_LRO`](Self::TCP_LRO), with which
        /// drivers refuse to start: of the two the one that is only wanted is left out.
        KEEP_CRC = layout::RX_OFFLOAD_KEEP_CRC, "KEEP_CRC";
        /// Says whether SCTP's checksum is right.
        SCTP_CKSUM = layout::RX_OFFLOAD_SCTP_CKSUM, "SCTP_CKSUM";
        /// Says whether the checksum of a tunnel's outer UDP header is right.
        OUTER_UDP_CKSUM = layout::RX_OFFLOAD_OUTER_UDP_CKSUM, "OUTER_UDP_CKSUM";
        /// Each packet carries the hash by which its queue was chosen; needs [`Rss`](super::Rss).
        RSS_HASH = layout::RX_OFFLOAD_RSS_HASH, "RSS_HASH";
    }
}

bit_set! {
    /// Work on packets to be sent (`RTE_ETH_TX_OFFLOAD_*`), done for those that ask for it. Names are those of
    /// `rte_eth_dev_tx_offload_name`.
    pub struct TxOffloads {
        /// A VLAN tag beside the packet is put into it.
        VLAN_INSERT = layout::TX_OFFLOAD_VLAN_INSERT, "VLAN_INSERT";
        /// The IPv4 header's checksum is filled in.
        IPV4_CKSUM = layout::TX_OFFLOAD_IPV4_CKSUM, "IPV4_CKSUM";
        /// UDP's checksum is filled in.
        UDP_CKSUM = layout::TX_OFFLOAD_UDP_CKSUM, "UDP_CKSUM";
        /// TCP's checksum is filled in.
        TCP_CKSUM = layout::TX_OFFLOAD_TCP_CKSUM, "TCP_CKSUM";
        /// SCTP's checksum is filled in.
        SCTP_CKSUM = layout::TX_OFFLOAD_SCTP_CKSUM, "SCTP_CKSUM";
        /// A large TCP packet is cut into segments.
        TCP_TSO = layout::TX_OFFLOAD_TCP_TSO, "TCP_TSO";
        /// A large UDP packet is cut into fragments.
        UDP_TSO = layout::TX_OFFLOAD_UDP_TSO, "UDP_TSO";
        /// The checksum of a tunnel's outer IPv4 header is filled in.
        OUTER_IPV4_CKSUM = layout::TX_OFFLOAD_OUTER_IPV4_CKSUM, "OUTER_IPV4_CKSUM";
        /// Two VLAN tags are put into the packet.
        QINQ_INSERT = layout::TX_OFFLOAD_QINQ_INSERT, "QINQ_INSERT";
        /// TCP segmentation inside VXLAN.
        VXLAN_TNL_TSO = layout::TX_OFFLOAD_VXLAN_TNL_TSO, "VXLAN_TNL_TSO";
        /// TCP segmentation inside GRE.
        GRE_TNL_TSO = layout::TX_OFFLOAD_GRE_TNL_TSO, "GRE_TNL_TSO";
        /// TCP segmentation inside IP in IP.
        IPIP_TNL_TSO = layout::TX_OFFLOAD_IPIP_TNL_TSO, "IPIP_TNL_TSO";
        /// TCP segmentation inside GENEVE.
        GENEVE_TNL_TSO = layout::TX_OFFLOAD_GENEVE_TNL_TSO, "GENEVE_TNL_TSO";
        /// Packets of several mbufs are sent. Without it a driver may take a way on which it sends no more than
        /// the first of them, and frees no more.
        MULTI_SEGS = layout::TX_OFFLOAD_MULTI_SEGS, "MULTI_SEGS";
        /// TCP segmentation inside any tunnel over UDP.
        UDP_TNL_TSO = layout::TX_OFFLOAD_UDP_TNL_TSO, "UDP_TNL_TSO";
        /// TCP segmentation inside any tunnel over IP.
        IP_TNL_TSO = layout::TX_OFFLOAD_IP_TNL_TSO, "IP_TNL_TSO";
        /// The checksum of a tunnel's outer UDP header is filled in.
        OUTER_UDP_CKSUM = layout::TX_OFFLOAD_OUTER_UDP_CKSUM, "OUTER_UDP_CKSUM";
        /// Packets wait for the time in their dynamic field.
        SEND_ON_TIMESTAMP = layout::TX_OFFLOAD_SEND_ON_TIMESTAMP, "SEND_ON_TIMESTAMP";
    }
}

/// A request for offloads: required ones, and those wanted if the driver supports them.
///
/// ```
/// use dpdk::{Request, RxOffloads};
/// let request = Request {
///     required: RxOffloads::SCATTER,
///     wanted: RxOffloads::IPV4_CKSUM | RxOffloads::TCP_CKSUM,
/// };
/// assert_eq!(Request::wanted(RxOffloads::SCATTER).required, RxOffloads::EMPTY);
/// # drop(request);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Request<S> {
    /// Configuring the port fails when one is missing.
    pub required: S,
    /// A missing one is a [`Shortfall`](super::Shortfall).
    pub wanted: S,
}

impl<S: Default> Request<S> {
    /// All of `set`, or the port is not configured.
    #[must_use]
    pub fn required(set: S) -> Self {
        Self { required: set, wanted: S::default() }
    }

    /// Returns the part of `set` that the driver supports.
    #[must_use]
    pub fn wanted(set: S) -> Self {
        Self { required: S::default(), wanted: set }
    }
}
