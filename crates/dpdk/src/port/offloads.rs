// SPDX-License-Identifier: BSD-3-Clause
//! Work that a device does instead of the program.
//!
//! # What is safe to request
//! With RX offloads a driver may deliver packets of several segments (`SCATTER`, `TCP_LRO`), with
//! four more bytes (`KEEP_CRC`), or with a time in a dynamic field, which DPDK's registry keeps
//! apart from all others (`TIMESTAMP`). [`Mbuf`](crate::Mbuf) handles all of them.
//!
//! With TX offloads a driver works at offsets that the packet's own fields give (`l2_len`,
//! `l3_len`, ...), and drivers that do it in software check little: net_tap and net_vhost write
//! checksums there. `Mbuf` keeps these offsets inside the packet: methods that make such a request
//! check it against the first segment, accept it only for packets whose bytes have one owner, and
//! it is withdrawn when the packet changes its shape. A received packet carries only requests that
//! the program itself has made (net_ring passes packets on unchanged): with `legacy-ol-flags` the
//! vhost library would let its peer write requests, so [`Eal::attach`](crate::Eal::attach) refuses
//! that.
//!
//! # What cannot be requested
//! - `MBUF_FAST_FREE`: the driver would return whole bursts to one pool without checking them. That
//!   is correct only if all packets come from one pool and have one owner. Packets of safe programs
//!   may be cloned, chained and from any pool, and the damage would show only later.
//! - `BUFFER_SPLIT` needs a description of the segments, `SECURITY` and the `MACSEC`s need
//!   sessions, which this crate does not have.
//! - `MT_LOCKFREE`: a `TxQueue` has one owner at a time, so there is no lock to save.

use dpdk_sys::layout;

use super::bits::bit_set;

bit_set! {
    /// Work on received packets (`RTE_ETH_RX_OFFLOAD_*`). Names are those of `rte_eth_dev_rx_offload_name`.
    pub struct RxOffloads {
        /// The outermost VLAN tag is removed from the packet and stored in the mbuf.
        VLAN_STRIP = layout::RX_OFFLOAD_VLAN_STRIP, "VLAN_STRIP";
        /// The device checks the IPv4 header's checksum.
        IPV4_CKSUM = layout::RX_OFFLOAD_IPV4_CKSUM, "IPV4_CKSUM";
        /// The device checks UDP's checksum.
        UDP_CKSUM = layout::RX_OFFLOAD_UDP_CKSUM, "UDP_CKSUM";
        /// The device checks TCP's checksum.
        TCP_CKSUM = layout::RX_OFFLOAD_TCP_CKSUM, "TCP_CKSUM";
        /// Consecutive segments of a TCP connection are merged into one packet of several mbufs.
        TCP_LRO = layout::RX_OFFLOAD_TCP_LRO, "TCP_LRO";
        /// Two VLAN tags are removed from the packet.
        QINQ_STRIP = layout::RX_OFFLOAD_QINQ_STRIP, "QINQ_STRIP";
        /// The device checks a tunnel's outer IPv4 header's checksum.
        OUTER_IPV4_CKSUM = layout::RX_OFFLOAD_OUTER_IPV4_CKSUM, "OUTER_IPV4_CKSUM";
        /// Only frames of VLANs that were added are received; see `PortControl::add_vlan`.
        VLAN_FILTER = layout::RX_OFFLOAD_VLAN_FILTER, "VLAN_FILTER";
        /// Filtering and stripping handle two tags.
        VLAN_EXTEND = layout::RX_OFFLOAD_VLAN_EXTEND, "VLAN_EXTEND";
        /// Frames longer than a buffer are received, as packets of several mbufs.
        SCATTER = layout::RX_OFFLOAD_SCATTER, "SCATTER";
        /// Each packet carries the time of the port's clock, in a dynamic field.
        TIMESTAMP = layout::RX_OFFLOAD_TIMESTAMP, "TIMESTAMP";
        /// The frame check sequence stays: packets are four bytes longer. Drivers refuse to start
        /// with this and [`TCP_LRO`](Self::TCP_LRO) together: one of them that is only wanted, not
        /// required, is left out.
        KEEP_CRC = layout::RX_OFFLOAD_KEEP_CRC, "KEEP_CRC";
        /// The device checks SCTP's checksum.
        SCTP_CKSUM = layout::RX_OFFLOAD_SCTP_CKSUM, "SCTP_CKSUM";
        /// The device checks a tunnel's outer UDP header's checksum.
        OUTER_UDP_CKSUM = layout::RX_OFFLOAD_OUTER_UDP_CKSUM, "OUTER_UDP_CKSUM";
        /// Each packet carries the hash by which its queue was chosen; needs [`Rss`](super::Rss).
        RSS_HASH = layout::RX_OFFLOAD_RSS_HASH, "RSS_HASH";
    }
}

bit_set! {
    /// Work on packets to be sent (`RTE_ETH_TX_OFFLOAD_*`), done for packets that request it. Names
    /// are those of `rte_eth_dev_tx_offload_name`.
    pub struct TxOffloads {
        /// The VLAN tag in the mbuf is inserted into the packet.
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
        /// Two VLAN tags are inserted into the packet.
        QINQ_INSERT = layout::TX_OFFLOAD_QINQ_INSERT, "QINQ_INSERT";
        /// TCP segmentation inside VXLAN.
        VXLAN_TNL_TSO = layout::TX_OFFLOAD_VXLAN_TNL_TSO, "VXLAN_TNL_TSO";
        /// TCP segmentation inside GRE.
        GRE_TNL_TSO = layout::TX_OFFLOAD_GRE_TNL_TSO, "GRE_TNL_TSO";
        /// TCP segmentation inside IP in IP.
        IPIP_TNL_TSO = layout::TX_OFFLOAD_IPIP_TNL_TSO, "IPIP_TNL_TSO";
        /// TCP segmentation inside GENEVE.
        GENEVE_TNL_TSO = layout::TX_OFFLOAD_GENEVE_TNL_TSO, "GENEVE_TNL_TSO";
        /// Packets of several mbufs are sent. Without it a driver may choose a path on which it
        /// sends only the first mbuf, and frees no more.
        MULTI_SEGS = layout::TX_OFFLOAD_MULTI_SEGS, "MULTI_SEGS";
        /// TCP segmentation inside any tunnel over UDP.
        UDP_TNL_TSO = layout::TX_OFFLOAD_UDP_TNL_TSO, "UDP_TNL_TSO";
        /// TCP segmentation inside any tunnel over IP.
        IP_TNL_TSO = layout::TX_OFFLOAD_IP_TNL_TSO, "IP_TNL_TSO";
        /// The checksum of a tunnel's outer UDP header is filled in.
        OUTER_UDP_CKSUM = layout::TX_OFFLOAD_OUTER_UDP_CKSUM, "OUTER_UDP_CKSUM";
        /// Packets are held back until the time in their dynamic field.
        SEND_ON_TIMESTAMP = layout::TX_OFFLOAD_SEND_ON_TIMESTAMP, "SEND_ON_TIMESTAMP";
    }
}

/// A request for offloads: required ones, and ones that are wanted if the driver supports them.
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
    /// Configuring the port fails if one is not supported.
    pub required: S,
    /// One that is not supported becomes a [`Shortfall`](super::Shortfall).
    pub wanted: S,
}

impl<S: Default> Request<S> {
    /// Requires all of `set`.
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
