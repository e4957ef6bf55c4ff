// SPDX-License-Identifier: BSD-3-Clause
//! Checksums of transport headers, wherever they are in a frame.

use crate::icmp::{Icmp, Icmpv6, NEXT_HEADER_ICMPV6};
use crate::ipv4::{Ipv4, PROTOCOL_ICMP, PROTOCOL_TCP, PROTOCOL_UDP};
use crate::ipv6::Ipv6;
use crate::pseudo::PseudoHeader;
use crate::tcp::Tcp;
use crate::udp::Udp;

use super::{Layers, Tunnel};

impl Layers {
    /// Whether the checksum of UDP, TCP, ICMP or ICMPv6 is right, by the length that IP says (`rte_ipv4_udptcp_cksum_mbuf_verify`); of UDP by its own.
    /// None counts as right for UDP over IPv4. Over IPv6 it does so for VXLAN alone: receivers discard it (RFC 8200) but at
    /// ports of tunnels that they were told of (RFC 6935), which a program that knows others tells by [`Udp::checksum`].
    ///
    /// `None` when there is no such header, or when the checksum cannot be told from these bytes: of a fragment, of a packet
    /// that goes on behind the bytes or has stops of a source route or of a routing header before it.
    pub fn checksum_is_right(&self, bytes: &[u8]) -> Option<bool> {
        let pseudo = self.pseudo_header(bytes)?;
        let message = bytes.get(self.l4()..self.end)?;
        match self.protocol? {
            PROTOCOL_UDP => {
                let (udp, payload) = Udp::split(message).ok()?;
                let none = udp.checksum() == 0 && self.is_ipv6();
                let may_be_none = || self.tunnel(bytes) == Some(Tunnel::Vxlan);
                Some((!none || may_be_none()) && udp.checksum_is_right(pseudo, payload))
            }
            PROTOCOL_TCP => {
                let (tcp, payload) = Tcp::split(message).ok()?;
                Some(tcp.checksum_is_right(pseudo, payload))
            }
            PROTOCOL_ICMP if self.is_ipv4() => {
                let (icmp, payload) = Icmp::split(message).ok()?;
                Some(icmp.checksum_is_right(payload))
            }
            NEXT_HEADER_ICMPV6 if self.is_ipv6() => {
                let (icmp, payload) = Icmpv6::split(message).ok()?;
                Some(icmp.checksum_is_right(pseudo, payload))
            }
            _ => None,
        }
    }

    /// Makes that checksum anew, UDP's also where there was none; `None`, and nothing done, where
    /// [`Layers::checksum_is_right`] is `None`.
    pub fn fill_checksum(&self, bytes: &mut [u8]) -> Option<()> {
        let pseudo = self.pseudo_header(bytes)?;
        let message = bytes.get_mut(self.l4()..self.end)?;
        match self.protocol? {
            PROTOCOL_UDP => {
                let (udp, payload) = Udp::split_mut(message).ok()?;
                udp.fill_checksum(pseudo, payload);
            }
            PROTOCOL_TCP => {
                let (tcp, payload) = Tcp::split_mut(message).ok()?;
                tcp.fill_checksum(pseudo, payload);
            }
            PROTOCOL_ICMP if self.is_ipv4() => {
                let (icmp, payload) = Icmp::split_mut(message).ok()?;
                icmp.fill_checksum(payload);
            }
            NEXT_HEADER_ICMPV6 if self.is_ipv6() => {
                let (icmp, payload) = Icmpv6::split_mut(message).ok()?;
                icmp.fill_checksum(pseudo, payload);
            }
            _ => return None,
        }
        Some(())
    }

    /// Of the packet's transport header, if its checksum can be told.
    fn pseudo_header(&self, bytes: &[u8]) -> Option<PseudoHeader> {
        if !self.has_pseudo_header() {
            return None;
        }
        let packet = bytes.get(self.l3()..)?;
        let len = self.end.checked_sub(self.l4())?;
        if self.is_ipv4() {
            Ipv4::split(packet).ok().map(|(ip, _)| ip.pseudo_header(len))
        } else {
            let protocol = self.protocol?;
            Ipv6::split(packet).ok().map(|(ip, _)| ip.pseudo_header(protocol, len))
        }
    }
}
