// SPDX-License-Identifier: BSD-3-Clause
//! Determines the protocol of packets.

use dpdk::Mbuf;
use graph::EachNode;

use super::header::{IPV4, IPV6, TYPE_IPV4, TYPE_IPV6, ether_type};

graph::edges! {
    /// Protocols of layer 3.
    pub enum Family {
        /// IPv4.
        Ipv4,
        /// IPv6.
        Ipv6,
        /// Another protocol, or a truncated header.
        Other,
    }
}

/// Classifies packets by their EtherType.
pub struct Classify;

impl<'m> EachNode<Mbuf<'m>> for Classify {
    type Next = Family;

    #[inline]
    fn each(&mut self, packet: &mut Mbuf<'m>) -> Family {
        let Some(header) = packet.header::<IPV4>() else { return Family::Other };
        match ether_type(header) {
            TYPE_IPV4 => Family::Ipv4,
            TYPE_IPV6 if packet.header::<IPV6>().is_some() => Family::Ipv6,
            _ => Family::Other,
        }
    }
}
