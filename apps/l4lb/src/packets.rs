// SPDX-License-Identifier: BSD-3-Clause
//! Which packets are balanced, and the flows that they belong to.

use dpdk::Mbuf;
use packet::ethernet::{self, ETHERTYPE_IPV4, ETHERTYPE_IPV6};
use packet::ipv4::{self, PROTOCOL_TCP, PROTOCOL_UDP};
use packet::ipv6;
use zerocopy::{FromZeros, Immutable, IntoBytes};

/// Both ends of a flow, as they are in its packets: `A` is 4 for IPv4 and 16 for IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromZeros, IntoBytes, Immutable)]
#[repr(C)]
pub struct Flow<const A: usize> {
    pub source: [u8; A],
    pub destination: [u8; A],
    pub source_port: [u8; 2],
    pub destination_port: [u8; 2],
    pub protocol: u8,
    pub zero: [u8; 3],
}

/// For lists of rules, which read bytes.
impl<const A: usize> AsRef<[u8]> for Flow<A> {
    #[inline(always)]
    fn as_ref(&self) -> &[u8] {
        self.as_bytes()
    }
}

/// A packet's flow.
pub enum Parsed {
    V4(Flow<4>),
    V6(Flow<16>),
    /// Neither TCP nor UDP, or not over IP, or with options, extension headers, or in fragments.
    Other,
}

const L3: usize = ethernet::LEN;
const PORTS: usize = 4;
/// More fragments, or an offset.
const FRAGMENT: u16 = 0x3fff;

#[inline(always)]
fn u16_at(header: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([header[at], header[at + 1]])
}

/// Finds a packet's flow. Its IP packet is complete: as long as its header says, or padded.
#[inline(always)]
pub fn parse(packet: &Mbuf<'_>) -> Parsed {
    let Some(header) = packet.header::<{ L3 + ipv4::LEN + PORTS }>() else { return Parsed::Other };
    let ip = &header[L3..];
    match u16_at(header, 12) {
        ETHERTYPE_IPV4 if ip[0] == 0x45 && u16_at(ip, 6) & FRAGMENT == 0 => {
            if !is_complete(packet, u16_at(ip, 2).into(), ipv4::LEN, ip[9]) {
                return Parsed::Other;
            }
            Parsed::V4(flow(ip, 12, ip[9]))
        }
        ETHERTYPE_IPV6 => {
            let Some(header) = packet.header::<{ L3 + ipv6::LEN + PORTS }>() else {
                return Parsed::Other;
            };
            let ip = &header[L3..];
            let len = ipv6::LEN + usize::from(u16_at(ip, 4));
            if ip[0] >> 4 != 6 || !is_complete(packet, len, ipv6::LEN, ip[6]) {
                return Parsed::Other;
            }
            Parsed::V6(flow(ip, 8, ip[6]))
        }
        _ => Parsed::Other,
    }
}

/// Returns true for TCP and UDP if the packet of `len` bytes is there, with its transport header.
#[inline(always)]
fn is_complete(packet: &Mbuf<'_>, len: usize, header: usize, protocol: u8) -> bool {
    let least = match protocol {
        PROTOCOL_TCP => header + 20,
        PROTOCOL_UDP => header + 8,
        _ => return false,
    };
    len >= least && L3 + len <= packet.packet_len()
}

/// The flow of an IP header whose addresses are at `at`; ports follow them.
#[inline(always)]
fn flow<const A: usize>(ip: &[u8], at: usize, protocol: u8) -> Flow<A> {
    let mut flow = Flow::new_zeroed();
    let (source, rest) = ip[at..].split_at(A);
    let (destination, ports) = rest.split_at(A);
    flow.source.copy_from_slice(source);
    flow.destination.copy_from_slice(destination);
    flow.source_port.copy_from_slice(&ports[..2]);
    flow.destination_port.copy_from_slice(&ports[2..4]);
    flow.protocol = protocol;
    flow
}
