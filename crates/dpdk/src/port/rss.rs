// SPDX-License-Identifier: BSD-3-Clause
//! Receive side scaling: how a device spreads frames over receive queues.
//!
//! A device hashes fields of a frame with a key (see [`toeplitz`](super::toeplitz())), takes the low bits of the
//! hash as an index into a redirection table (RETA), and finds the queue there.

use dpdk_sys::layout;

use super::bits::bit_set;

bit_set! {
    /// The packet fields that are hashed (`RTE_ETH_RSS_*`).
    pub struct RssHashTypes {
        /// Addresses of IPv4.
        IPV4 = layout::RSS_TYPE_IPV4, "ipv4";
        /// Addresses of fragments of IPv4.
        FRAG_IPV4 = layout::RSS_TYPE_FRAG_IPV4, "ipv4-frag";
        /// Addresses and ports of TCP over IPv4.
        IPV4_TCP = layout::RSS_TYPE_NONFRAG_IPV4_TCP, "ipv4-tcp";
        /// Addresses and ports of UDP over IPv4.
        IPV4_UDP = layout::RSS_TYPE_NONFRAG_IPV4_UDP, "ipv4-udp";
        /// Addresses and ports of SCTP over IPv4.
        IPV4_SCTP = layout::RSS_TYPE_NONFRAG_IPV4_SCTP, "ipv4-sctp";
        /// Addresses of everything else over IPv4.
        IPV4_OTHER = layout::RSS_TYPE_NONFRAG_IPV4_OTHER, "ipv4-other";
        /// Addresses of IPv6.
        IPV6 = layout::RSS_TYPE_IPV6, "ipv6";
        /// Addresses of fragments of IPv6.
        FRAG_IPV6 = layout::RSS_TYPE_FRAG_IPV6, "ipv6-frag";
        /// Addresses and ports of TCP over IPv6.
        IPV6_TCP = layout::RSS_TYPE_NONFRAG_IPV6_TCP, "ipv6-tcp";
        /// Addresses and ports of UDP over IPv6.
        IPV6_UDP = layout::RSS_TYPE_NONFRAG_IPV6_UDP, "ipv6-udp";
        /// Addresses and ports of SCTP over IPv6.
        IPV6_SCTP = layout::RSS_TYPE_NONFRAG_IPV6_SCTP, "ipv6-sctp";
        /// Addresses of everything else over IPv6.
        IPV6_OTHER = layout::RSS_TYPE_NONFRAG_IPV6_OTHER, "ipv6-other";
        /// The type of frames that are not IP.
        L2_PAYLOAD = layout::RSS_TYPE_L2_PAYLOAD, "l2-payload";
        /// IPv6 addresses, taken from the extension headers if they are there.
        IPV6_EX = layout::RSS_TYPE_IPV6_EX, "ipv6-ex";
        /// Like `IPV6_EX`, and the ports of TCP.
        IPV6_TCP_EX = layout::RSS_TYPE_IPV6_TCP_EX, "ipv6-tcp-ex";
        /// Like `IPV6_EX`, and the ports of UDP.
        IPV6_UDP_EX = layout::RSS_TYPE_IPV6_UDP_EX, "ipv6-udp-ex";
        /// Ports.
        PORT = layout::RSS_TYPE_PORT, "port";
        /// VXLAN's network identifier.
        VXLAN = layout::RSS_TYPE_VXLAN, "vxlan";
        /// GENEVE's network identifier.
        GENEVE = layout::RSS_TYPE_GENEVE, "geneve";
        /// NVGRE's network identifier.
        NVGRE = layout::RSS_TYPE_NVGRE, "nvgre";
        /// GTP-U's tunnel.
        GTPU = layout::RSS_TYPE_GTPU, "gtpu";
        /// Addresses of Ethernet.
        ETH = layout::RSS_TYPE_ETH, "eth";
        /// The outer VLAN.
        S_VLAN = layout::RSS_TYPE_S_VLAN, "s-vlan";
        /// The inner VLAN.
        C_VLAN = layout::RSS_TYPE_C_VLAN, "c-vlan";
        /// The SPI of IPsec ESP.
        ESP = layout::RSS_TYPE_ESP, "esp";
        /// The SPI of IPsec AH.
        AH = layout::RSS_TYPE_AH, "ah";
        /// L2TPv3's session.
        L2TPV3 = layout::RSS_TYPE_L2TPV3, "l2tpv3";
        /// PFCP's session.
        PFCP = layout::RSS_TYPE_PFCP, "pfcp";
        /// PPPoE's session.
        PPPOE = layout::RSS_TYPE_PPPOE, "pppoe";
        /// eCPRI.
        ECPRI = layout::RSS_TYPE_ECPRI, "ecpri";
        /// MPLS labels.
        MPLS = layout::RSS_TYPE_MPLS, "mpls";
        /// The checksum of an IPv4 header.
        IPV4_CHKSUM = layout::RSS_TYPE_IPV4_CHKSUM, "ipv4-chksum";
        /// The checksum of TCP, UDP or SCTP.
        L4_CHKSUM = layout::RSS_TYPE_L4_CHKSUM, "l4-chksum";
        /// L2TPv2's session.
        L2TPV2 = layout::RSS_TYPE_L2TPV2, "l2tpv2";
        /// Only the destination Ethernet address.
        L2_DST_ONLY = layout::RSS_TYPE_L2_DST_ONLY, "l2-dst-only";
        /// Only the source Ethernet address.
        L2_SRC_ONLY = layout::RSS_TYPE_L2_SRC_ONLY, "l2-src-only";
        /// Only the destination port.
        L4_DST_ONLY = layout::RSS_TYPE_L4_DST_ONLY, "l4-dst-only";
        /// Only the source port.
        L4_SRC_ONLY = layout::RSS_TYPE_L4_SRC_ONLY, "l4-src-only";
        /// Only the destination IP address.
        L3_DST_ONLY = layout::RSS_TYPE_L3_DST_ONLY, "l3-dst-only";
        /// Only the source IP address.
        L3_SRC_ONLY = layout::RSS_TYPE_L3_SRC_ONLY, "l3-src-only";
    }
}

impl RssHashTypes {
    /// Addresses of any IP packet (`RTE_ETH_RSS_IP`).
    pub const IP: Self = Self::IPV4
        .union(Self::FRAG_IPV4)
        .union(Self::IPV4_OTHER)
        .union(Self::IPV6)
        .union(Self::FRAG_IPV6)
        .union(Self::IPV6_OTHER)
        .union(Self::IPV6_EX);
    /// Addresses and ports of TCP (`RTE_ETH_RSS_TCP`).
    pub const TCP: Self = Self::IPV4_TCP.union(Self::IPV6_TCP).union(Self::IPV6_TCP_EX);
    /// Addresses and ports of UDP (`RTE_ETH_RSS_UDP`).
    pub const UDP: Self = Self::IPV4_UDP.union(Self::IPV6_UDP).union(Self::IPV6_UDP_EX);
}

/// How the receive queues of a port share its frames.
///
/// The default requests nothing: frames are spread over several queues by all hash types that the
/// device has and by its own key and table. It is no [`Shortfall`](super::Shortfall) if the device
/// has no RSS. An unsupported request becomes a shortfall; the port is configured all the same.
/// none. An unsupported request becomes a shortfall; the port is configured all the same.
///
/// ```
/// use dpdk::{Reta, Rss, RssHashTypes};
/// // Both directions of a connection to one queue, and queue 0 for other things.
/// let rss = Rss {
///     key: Some(Rss::SYMMETRIC_KEY.to_vec()),
///     hash_types: Some(RssHashTypes::IP | RssHashTypes::TCP | RssHashTypes::UDP),
///     reta: Reta::RoundRobin(vec![1, 2, 3]),
/// };
/// assert_eq!(rss.reta.entries(4), [1, 2, 3, 1]);
/// ```
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Rss {
    /// The key, as many bytes as [`PortInfo::rss_key_len`](super::PortInfo::rss_key_len) says (40 for most
    /// devices); `None` for the driver's own.
    pub key: Option<Vec<u8>>,
    /// The packet fields that are hashed; `None` for all that the device supports.
    pub hash_types: Option<RssHashTypes>,
    /// The queues that share the frames.
    pub reta: Reta,
}

impl Rss {
    /// The key of Microsoft's specification, which tests and documentation of devices use.
    pub const MICROSOFT_KEY: [u8; 40] = [
        0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f,
        0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30,
        0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
    ];
    /// A key that repeats one 16-bit word: both directions of a connection get the same hash (Woo
    /// and Park, "Scalable TCP Session Monitoring with Symmetric Receive-side Scaling", 2012).
    pub const SYMMETRIC_KEY: [u8; 40] = {
        let mut key = [0x6d; 40];
        let mut at = 1;
        while at < key.len() {
            key[at] = 0x5a;
            at += 2;
        }
        key
    };
}

/// A redirection table, before it is known how many entries the device has.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub enum Reta {
    /// The driver's own table.
    #[default]
    Driver,
    /// These queues in turn.
    RoundRobin(Vec<u16>),
    /// These entries. If the device's table has another size, they are repeated or cut, which is a
    /// [`Shortfall`](super::Shortfall).
    Table(Vec<u16>),
}

impl Reta {
    /// The queues in the table; empty for the driver's own.
    #[must_use]
    pub fn queues(&self) -> &[u16] {
        match self {
            Self::Driver => &[],
            Self::RoundRobin(queues) | Self::Table(queues) => queues,
        }
    }

    /// The table for a device with `size` entries; empty for the driver's own.
    #[must_use]
    pub fn entries(&self, size: u16) -> Vec<u16> {
        self.queues().iter().copied().cycle().take(size.into()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_repeated_or_cut() {
        assert!(Reta::Driver.entries(4).is_empty());
        assert!(Reta::RoundRobin(vec![]).entries(4).is_empty());
        assert_eq!(Reta::RoundRobin(vec![2, 0]).entries(5), [2, 0, 2, 0, 2]);
        assert_eq!(Reta::Table(vec![3, 2, 1]).entries(2), [3, 2]);
    }

    #[test]
    fn the_keys_are_what_they_are_called() {
        assert_eq!(Rss::SYMMETRIC_KEY[..4], [0x6d, 0x5a, 0x6d, 0x5a]);
        assert_eq!(Rss::SYMMETRIC_KEY[38..], [0x6d, 0x5a]);
    }
}
