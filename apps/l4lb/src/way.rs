// SPDX-License-Identifier: BSD-3-Clause
//! How a packet gets to its backend, and an answer to its client.

use std::net::IpAddr;

use dpdk::Mbuf;
use packet::MacAddr;
use packet::ethernet::{self, ETHERTYPE_IPV4, ETHERTYPE_IPV6, Ethernet};
use packet::ipv4::{Ipv4, PROTOCOL_IPIP, PROTOCOL_IPV6};
use packet::ipv6::{self, Ipv6};
use packet::nat::{Endpoint, Endpoint6, Translation, Translation6};
use packet::tunnel::{
    GRE4_LEN, GRE6_LEN, Gre4, Gre6, IPIP4_LEN, IPIP6_LEN, Ipip4, Ipip6, Link, UDP4_LEN, UDP6_LEN,
    Udp4, Udp6,
};

use crate::config::{Config, Mode};

const L3: usize = ethernet::LEN;

/// What is done to a packet.
#[derive(Debug)]
pub enum Way {
    Ipip4(Ipip4),
    Ipip6(Ipip6),
    Gre4(Gre4),
    Gre6(Gre6),
    Vxlan4(Udp4),
    Vxlan6(Udp6),
    Nat4(Link, Translation),
    Nat6(Link, Translation6),
}

/// Why a packet does not go its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// It would be longer than the MTU.
    TooBig,
    /// Its time to live is over, it has no room for headers, or others share it.
    Other,
}

impl Way {
    /// The way from a VIP of this version to a backend.
    pub fn to(
        mode: Mode,
        vip: IpAddr,
        backend: IpAddr,
        port: Option<u16>,
        mac: MacAddr,
        own: MacAddr,
        config: &Config,
    ) -> Self {
        let link = Link { destination: mac, source: own };
        let (protocol, ether_type) = if vip.is_ipv4() {
            (PROTOCOL_IPIP, ETHERTYPE_IPV4)
        } else {
            (PROTOCOL_IPV6, ETHERTYPE_IPV6)
        };
        let (local4, local6) = (config.local4, config.local6);
        match (mode, backend) {
            (Mode::Ipip, IpAddr::V4(to)) => Self::Ipip4(Ipip4::ip(link, local4, to, protocol)),
            (Mode::Ipip, IpAddr::V6(to)) => Self::Ipip6(Ipip6::ip(link, local6, to, protocol)),
            (Mode::Gre, IpAddr::V4(to)) => Self::Gre4(Gre4::gre(link, local4, to, ether_type)),
            (Mode::Gre, IpAddr::V6(to)) => Self::Gre6(Gre6::gre(link, local6, to, ether_type)),
            (Mode::Vxlan { vni }, IpAddr::V4(to)) => {
                Self::Vxlan4(Udp4::vxlan(link, local4, to, vni))
            }
            (Mode::Vxlan { vni }, IpAddr::V6(to)) => {
                Self::Vxlan6(Udp6::vxlan(link, local6, to, vni))
            }
            (Mode::Nat, IpAddr::V4(address)) => {
                let destination = Some(Endpoint { address, port });
                Self::Nat4(link, Translation { source: None, destination })
            }
            (Mode::Nat, IpAddr::V6(address)) => {
                let destination = Some(Endpoint6 { address, port });
                Self::Nat6(link, Translation6 { source: None, destination })
            }
        }
    }

    /// The way of answers, which come from a backend of NAT and seem to come from its VIP.
    pub fn back(vip: IpAddr, port: u16, gateway: MacAddr, own: MacAddr) -> Self {
        let (link, port) = (Link { destination: gateway, source: own }, Some(port));
        match vip {
            IpAddr::V4(address) => {
                let source = Some(Endpoint { address, port });
                Self::Nat4(link, Translation { source, destination: None })
            }
            IpAddr::V6(address) => {
                let source = Some(Endpoint6 { address, port });
                Self::Nat6(link, Translation6 { source, destination: None })
            }
        }
    }

    /// Changes a packet that was [parsed](crate::packets::parse). `entropy`: a hash of its flow. The packet is to be dropped if there
    /// is an error.
    #[inline(always)]
    pub fn apply(&self, packet: &mut Mbuf<'_>, mtu: u16, entropy: u16) -> Result<(), Failure> {
        match self {
            Self::Ipip4(outer) => {
                let inner = without_padding(packet, mtu, IPIP4_LEN - L3)?;
                in_front::<L3, IPIP4_LEN>(packet, |to| outer.write(to, inner, entropy))
            }
            Self::Ipip6(outer) => {
                let inner = without_padding(packet, mtu, IPIP6_LEN - L3)?;
                in_front::<L3, IPIP6_LEN>(packet, |to| outer.write(to, inner, entropy))
            }
            Self::Gre4(outer) => {
                let inner = without_padding(packet, mtu, GRE4_LEN - L3)?;
                in_front::<L3, GRE4_LEN>(packet, |to| outer.write(to, inner, entropy))
            }
            Self::Gre6(outer) => {
                let inner = without_padding(packet, mtu, GRE6_LEN - L3)?;
                in_front::<L3, GRE6_LEN>(packet, |to| outer.write(to, inner, entropy))
            }
            Self::Vxlan4(outer) => {
                let inner = fitting(packet.packet_len(), mtu, UDP4_LEN - L3)?;
                in_front::<0, UDP4_LEN>(packet, |to| outer.write(to, inner, entropy))
            }
            Self::Vxlan6(outer) => {
                let inner = fitting(packet.packet_len(), mtu, UDP6_LEN - L3)?;
                in_front::<0, UDP6_LEN>(packet, |to| outer.write(to, inner, entropy))
            }
            Self::Nat4(link, translation) => {
                let data = packet.data_mut().ok_or(Failure::Other)?;
                let (ethernet, rest) = Ethernet::split_mut(data).map_err(|_| Failure::Other)?;
                let (ip, _) = Ipv4::split_mut(rest).map_err(|_| Failure::Other)?;
                ip.decrement_ttl().ok_or(Failure::Other)?;
                ethernet.set_addresses(link.destination, link.source);
                translation.apply(rest).map_err(|_| Failure::Other)
            }
            Self::Nat6(link, translation) => {
                let data = packet.data_mut().ok_or(Failure::Other)?;
                let (ethernet, rest) = Ethernet::split_mut(data).map_err(|_| Failure::Other)?;
                let (ip, _) = Ipv6::split_mut(rest).map_err(|_| Failure::Other)?;
                ip.decrement_hop_limit().ok_or(Failure::Other)?;
                ethernet.set_addresses(link.destination, link.source);
                translation.apply(rest).map_err(|_| Failure::Other)
            }
        }
    }
}

/// Puts `NEW` bytes of headers in the place of the first `OLD`; `write` returns false if the packet would be too long.
#[inline(always)]
fn in_front<const OLD: usize, const NEW: usize>(
    packet: &mut Mbuf<'_>,
    write: impl FnOnce(&mut [u8; NEW]) -> bool,
) -> Result<(), Failure> {
    let headers = packet.replace_front::<OLD, NEW>().ok_or(Failure::Other)?;
    if write(headers) { Ok(()) } else { Err(Failure::TooBig) }
}

/// The length, if the packet with its outer headers is no longer than the MTU.
#[inline(always)]
fn fitting(len: usize, mtu: u16, outer: usize) -> Result<usize, Failure> {
    if len + outer <= usize::from(mtu) { Ok(len) } else { Err(Failure::TooBig) }
}

/// Removes Ethernet's padding, which must not get into a tunnel; returns the length of the IP packet.
#[inline(always)]
fn without_padding(packet: &mut Mbuf<'_>, mtu: u16, outer: usize) -> Result<usize, Failure> {
    // Where IPv4's total and IPv6's payload length end.
    let header = packet.header::<{ L3 + 6 }>().ok_or(Failure::Other)?;
    let len = if header[L3] >> 4 == 4 {
        usize::from(u16::from_be_bytes([header[L3 + 2], header[L3 + 3]]))
    } else {
        ipv6::LEN + usize::from(u16::from_be_bytes([header[L3 + 4], header[L3 + 5]]))
    };
    let len = fitting(len, mtu, outer)?;
    match packet.packet_len().checked_sub(L3 + len) {
        Some(0) => Ok(len),
        Some(padding) if packet.trim(padding) => Ok(len),
        _ => Err(Failure::Other),
    }
}
