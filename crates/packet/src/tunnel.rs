// SPDX-License-Identifier: BSD-3-Clause
//! Outer headers, to be put before the packets of a tunnel: IPIP, GRE, VXLAN and Geneve over IPv4 and IPv6.
//!
//! All packets of a tunnel have the same outer headers but for their lengths, the IPv4 checksum and the UDP source port. So the
//! headers are made once; for each packet they are copied, and those fields written.
//!
//! An outer header has a time to live of 64 and a type of service of 0, and forbids fragments (RFC 6864). UDP has no checksum, as
//! tunnels may do over IPv6, too (RFC 6935).
//!
//! ```
//! use packet::tunnel::{Ipip4, Link};
//! # use packet::{MacAddr, ipv4::{Ipv4, PROTOCOL_IPIP}};
//!
//! let link = Link { destination: MacAddr([2, 0, 0, 0, 0, 1]), source: MacAddr([2, 0, 0, 0, 0, 2]) };
//! let tunnel = Ipip4::ip(link, [10, 9, 0, 1].into(), [10, 0, 0, 1].into(), PROTOCOL_IPIP);
//! // Of a packet of 60 bytes after its Ethernet header. On an mbuf: `mbuf.replace_front::<14, 34>()`.
//! let mut headers = [0; 34];
//! assert!(tunnel.write(&mut headers, 60, 0));
//! let (ip, _) = Ipv4::split(&headers[14..])?;
//! assert!(ip.checksum_is_right() && ip.total_len() == 80);
//! # Ok::<(), packet::Malformed>(())
//! ```

use std::marker::PhantomData;
use std::net::{Ipv4Addr, Ipv6Addr};

use crate::ethernet::{self, ETHERTYPE_IPV4, ETHERTYPE_IPV6, Ethernet};
use crate::ipv4::{self, Ipv4Fields, PROTOCOL_GRE, PROTOCOL_UDP};
use crate::ipv6::{self, Ipv6};
use crate::udp::{self, Udp};
use crate::vxlan::{self, Vxlan};
use crate::{MacAddr, checksum};

/// Length of a GRE header without options.
const GRE: usize = 4;
/// Length of UDP's header and VXLAN's or Geneve's.
const UDP_TUNNEL: usize = udp::LEN + vxlan::LEN;
/// Geneve's UDP port (RFC 8926).
pub const GENEVE_PORT: u16 = 6081;

/// Length of Ethernet's and the outer IPv4 header.
pub const IPIP4_LEN: usize = ethernet::LEN + ipv4::LEN;
/// Length of Ethernet's, the outer IPv4 and the GRE header.
pub const GRE4_LEN: usize = IPIP4_LEN + GRE;
/// Length of all headers of a VXLAN or Geneve packet over IPv4 before the inner frame.
pub const UDP4_LEN: usize = IPIP4_LEN + UDP_TUNNEL;
/// Length of Ethernet's and the outer IPv6 header.
pub const IPIP6_LEN: usize = ethernet::LEN + ipv6::LEN;
/// Length of Ethernet's, the outer IPv6 and the GRE header.
pub const GRE6_LEN: usize = IPIP6_LEN + GRE;
/// Length of all headers of a VXLAN or Geneve packet over IPv6 before the inner frame.
pub const UDP6_LEN: usize = IPIP6_LEN + UDP_TUNNEL;

/// IP in IPv4.
pub type Ipip4 = Outer<Ipv4Addr, IPIP4_LEN>;
/// GRE over IPv4.
pub type Gre4 = Outer<Ipv4Addr, GRE4_LEN>;
/// VXLAN or Geneve over IPv4.
pub type Udp4 = Outer<Ipv4Addr, UDP4_LEN>;
/// IP in IPv6.
pub type Ipip6 = Outer<Ipv6Addr, IPIP6_LEN>;
/// GRE over IPv6.
pub type Gre6 = Outer<Ipv6Addr, GRE6_LEN>;
/// VXLAN or Geneve over IPv6.
pub type Udp6 = Outer<Ipv6Addr, UDP6_LEN>;

/// The Ethernet addresses of outer headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Link {
    /// The next hop.
    pub destination: MacAddr,
    /// The sending interface.
    pub source: MacAddr,
}

/// Outer headers of `LEN` bytes, from Ethernet's on, over IPv4 (`A` is [`Ipv4Addr`]) or IPv6. Make them with the types of this module,
/// such as [`Ipip4`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outer<A, const LEN: usize> {
    /// Lengths and the IPv4 checksum are 0.
    bytes: [u8; LEN],
    /// The sum of the IPv4 header's words.
    sum: u64,
    version: PhantomData<A>,
}

/// Where UDP's header is, after the outer IP header; `None` if these headers have none.
const fn udp_at(len: usize, ip_end: usize) -> Option<usize> {
    if len == ip_end + UDP_TUNNEL { Some(ip_end) } else { None }
}

fn set_u16(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

/// Writes UDP's ports, and a header of VXLAN or Geneve.
fn write_udp(bytes: &mut [u8], port: u16, header: [u8; vxlan::LEN]) {
    if let Ok((udp, rest)) = Udp::split_mut(bytes) {
        udp.set_destination(port);
        rest.copy_from_slice(&header);
    }
}

fn vxlan_header(vni: u32) -> [u8; vxlan::LEN] {
    let mut bytes = [0; vxlan::LEN];
    if let Ok((header, _)) = Vxlan::split_mut(&mut bytes) {
        header.reset(vni);
    }
    bytes
}

fn geneve_header(vni: u32, protocol: u16) -> [u8; vxlan::LEN] {
    let ([high, low], [_, a, b, c]) = (protocol.to_be_bytes(), vni.to_be_bytes());
    [0, 0, high, low, a, b, c, 0]
}

/// The UDP source port for a hash of the inner flow, so that the flow keeps to one path: 49,152 to 65,535 (RFC 7348).
#[inline(always)]
fn port_of(entropy: u16) -> u16 {
    0xc000 | entropy
}

impl<const LEN: usize> Outer<Ipv4Addr, LEN> {
    fn over(link: Link, source: Ipv4Addr, destination: Ipv4Addr, protocol: u8) -> Self {
        let mut bytes = [0; LEN];
        if let Ok((ethernet, rest)) = Ethernet::split_mut(&mut bytes) {
            ethernet.set_addresses(link.destination, link.source);
            ethernet.set_ether_type(ETHERTYPE_IPV4);
            if let Some(header) = rest.first_chunk_mut() {
                let fields = Ipv4Fields { protocol, source, destination, ..Ipv4Fields::default() };
                fields.write(header);
            }
        }
        set_u16(&mut bytes, ethernet::LEN + 2, 0);
        set_u16(&mut bytes, ethernet::LEN + 10, 0);
        let sum = checksum::sum(&bytes[ethernet::LEN..IPIP4_LEN]);
        Self { bytes, sum, version: PhantomData }
    }

    /// Writes the headers before `inner` bytes. These are what follows Ethernet's header with IPIP and GRE, and the whole frame with
    /// VXLAN, Geneve and Ethernet in GRE. `entropy`: a hash of the inner flow, of which UDP's source port is made. Returns false, with
    /// arbitrary bytes written, if the packet would be longer than 65,535 bytes.
    #[inline(always)]
    #[must_use = "the packet may be too long"]
    pub fn write(&self, headers: &mut [u8; LEN], inner: usize, entropy: u16) -> bool {
        *headers = self.bytes;
        let Ok(len) = u16::try_from(inner.saturating_add(LEN - ethernet::LEN)) else {
            return false;
        };
        set_u16(headers, ethernet::LEN + 2, len);
        set_u16(headers, ethernet::LEN + 10, !checksum::fold(self.sum + u64::from(len)));
        if let Some(udp) = const { udp_at(LEN, IPIP4_LEN) } {
            set_u16(headers, udp, port_of(entropy));
            set_u16(headers, udp + 4, len - ipv4::LEN as u16);
        }
        true
    }
}

impl<const LEN: usize> Outer<Ipv6Addr, LEN> {
    fn over(link: Link, source: Ipv6Addr, destination: Ipv6Addr, next_header: u8) -> Self {
        let mut bytes = [0; LEN];
        if let Ok((ethernet, rest)) = Ethernet::split_mut(&mut bytes) {
            ethernet.set_addresses(link.destination, link.source);
            ethernet.set_ether_type(ETHERTYPE_IPV6);
            // The version makes it a header.
            rest[0] = 0x60;
            if let Ok((ip, _)) = Ipv6::split_mut(rest) {
                ip.set_next_header(next_header);
                ip.set_hop_limit(64);
                ip.set_source(source);
                ip.set_destination(destination);
            }
        }
        Self { bytes, sum: 0, version: PhantomData }
    }

    /// As `write` over IPv4; the limit is 65,535 bytes after the outer IPv6 header.
    #[inline(always)]
    #[must_use = "the packet may be too long"]
    pub fn write(&self, headers: &mut [u8; LEN], inner: usize, entropy: u16) -> bool {
        *headers = self.bytes;
        let Ok(len) = u16::try_from(inner.saturating_add(LEN - IPIP6_LEN)) else { return false };
        set_u16(headers, ethernet::LEN + 4, len);
        if let Some(udp) = const { udp_at(LEN, IPIP6_LEN) } {
            set_u16(headers, udp, port_of(entropy));
            set_u16(headers, udp + 4, len);
        }
        true
    }
}

/// The constructors, which are the same over both versions.
macro_rules! constructors {
    ($address:ty, $ipip:expr, $gre:expr, $udp:expr) => {
        impl Outer<$address, { $ipip }> {
            /// An IP packet in an IP packet. `protocol`: of the inner packet, [`PROTOCOL_IPIP`](ipv4::PROTOCOL_IPIP) for IPv4 or
            /// [`PROTOCOL_IPV6`](ipv4::PROTOCOL_IPV6).
            #[must_use]
            pub fn ip(link: Link, source: $address, destination: $address, protocol: u8) -> Self {
                Self::over(link, source, destination, protocol)
            }
        }

        impl Outer<$address, { $gre }> {
            /// A packet behind a GRE header without options (RFC 2784). `ether_type`: of the inner packet, or
            /// [`ETHERTYPE_BRIDGING`](ethernet::ETHERTYPE_BRIDGING) for a frame.
            #[must_use]
            pub fn gre(
                link: Link,
                source: $address,
                destination: $address,
                ether_type: u16,
            ) -> Self {
                let mut outer = Self::over(link, source, destination, PROTOCOL_GRE);
                set_u16(&mut outer.bytes, $ipip + 2, ether_type);
                outer
            }
        }

        impl Outer<$address, { $udp }> {
            /// A frame behind a VXLAN header (RFC 7348) with this network identifier, of which the lower 24 bits count.
            #[must_use]
            pub fn vxlan(link: Link, source: $address, destination: $address, vni: u32) -> Self {
                let mut outer = Self::over(link, source, destination, PROTOCOL_UDP);
                write_udp(&mut outer.bytes[$ipip..], vxlan::PORT, vxlan_header(vni));
                outer
            }

            /// A packet behind a Geneve header without options (RFC 8926). `vni`: its lower 24 bits count. `protocol`: its EtherType, [`ETHERTYPE_BRIDGING`](ethernet::ETHERTYPE_BRIDGING) for a
            /// frame.
            #[must_use]
            pub fn geneve(
                link: Link,
                source: $address,
                destination: $address,
                vni: u32,
                protocol: u16,
            ) -> Self {
                let mut outer = Self::over(link, source, destination, PROTOCOL_UDP);
                write_udp(&mut outer.bytes[$ipip..], GENEVE_PORT, geneve_header(vni, protocol));
                outer
            }
        }
    };
}

constructors!(Ipv4Addr, IPIP4_LEN, GRE4_LEN, UDP4_LEN);
constructors!(Ipv6Addr, IPIP6_LEN, GRE6_LEN, UDP6_LEN);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ethernet::ETHERTYPE_BRIDGING;
    use crate::gre::Gre;
    use crate::ipv4::{Ipv4, PROTOCOL_IPIP, PROTOCOL_IPV6};
    use crate::layers::Layers;
    use proptest::prelude::*;

    const LINK: Link =
        Link { destination: MacAddr([2, 0, 0, 0, 0, 1]), source: MacAddr([2, 0, 0, 0, 0, 2]) };

    fn ends4() -> (Ipv4Addr, Ipv4Addr) {
        ([10, 9, 0, 1].into(), [10, 0, 0, 1].into())
    }

    fn ends6() -> (Ipv6Addr, Ipv6Addr) {
        ("2001:db8::1".parse().unwrap(), "2001:db8::2".parse().unwrap())
    }

    /// The UDP header, and what follows it.
    fn udp_of(headers: &[u8], ip_end: usize) -> (&Udp, &[u8]) {
        Udp::split(&headers[ip_end..]).unwrap()
    }

    #[test]
    fn ethernet_and_protocols_are_right() {
        let ((s4, d4), (s6, d6)) = (ends4(), ends6());
        let mut headers = [0xff; IPIP4_LEN];
        assert!(Ipip4::ip(LINK, s4, d4, PROTOCOL_IPV6).write(&mut headers, 0, 0));
        let (ethernet, rest) = Ethernet::split(&headers).unwrap();
        assert_eq!((ethernet.destination(), ethernet.source()), (LINK.destination, LINK.source));
        assert_eq!(ethernet.ether_type(), ETHERTYPE_IPV4);
        let (ip, _) = Ipv4::split(rest).unwrap();
        assert_eq!((ip.source(), ip.destination(), ip.protocol()), (s4, d4, 41));
        assert!(ip.dont_fragment() && ip.ttl() == 64);

        let mut headers = [0xff; GRE6_LEN];
        let outer = Gre6::gre(LINK, s6, d6, ETHERTYPE_IPV4);
        assert!(outer.write(&mut headers, 100, 0));
        let (ethernet, rest) = Ethernet::split(&headers).unwrap();
        assert_eq!(ethernet.ether_type(), ETHERTYPE_IPV6);
        let (ip, rest) = Ipv6::split(rest).unwrap();
        assert_eq!((ip.source(), ip.destination()), (s6, d6));
        assert_eq!((ip.next_header(), ip.payload_len(), ip.hop_limit()), (PROTOCOL_GRE, 104, 64));
        let (gre, rest) = Gre::split(rest).unwrap();
        assert_eq!((gre.protocol(), rest.len()), (ETHERTYPE_IPV4, 0));
    }

    #[test]
    fn tunnels_over_udp_are_right() {
        let ((s4, d4), (s6, d6)) = (ends4(), ends6());
        let mut headers = [0xff; UDP4_LEN];
        assert!(Udp4::vxlan(LINK, s4, d4, 0xab_cdef).write(&mut headers, 60, 0x1234));
        let (udp, rest) = udp_of(&headers, IPIP4_LEN);
        assert_eq!((udp.source(), udp.destination(), udp.length()), (0xd234, vxlan::PORT, 76));
        assert_eq!(udp.checksum(), 0);
        let (vxlan, _) = Vxlan::split(rest).unwrap();
        assert!(vxlan.has_vni() && vxlan.vni() == 0xab_cdef);

        let mut headers = [0xff; UDP6_LEN];
        let outer = Udp6::geneve(LINK, s6, d6, 7, ETHERTYPE_BRIDGING);
        assert!(outer.write(&mut headers, 60, 0xffff));
        let (udp, rest) = udp_of(&headers, IPIP6_LEN);
        assert_eq!((udp.source(), udp.destination(), udp.length()), (0xffff, GENEVE_PORT, 76));
        assert_eq!(rest, [0, 0, 0x65, 0x58, 0, 0, 7, 0]);
        let (ip, _) = Ipv6::split(&headers[14..]).unwrap();
        assert_eq!((ip.next_header(), ip.payload_len()), (PROTOCOL_UDP, 76));
    }

    #[test]
    fn packets_that_are_too_long_are_refused() {
        let ((s4, d4), (s6, d6)) = (ends4(), ends6());
        let outer = Ipip4::ip(LINK, s4, d4, PROTOCOL_IPIP);
        let mut headers = [0; IPIP4_LEN];
        assert!(outer.write(&mut headers, 65_515, 0));
        assert!(!outer.write(&mut headers, 65_516, 0));
        assert!(!outer.write(&mut headers, usize::MAX, 0));
        let outer = Udp6::vxlan(LINK, s6, d6, 1);
        let mut headers = [0; UDP6_LEN];
        assert!(outer.write(&mut headers, 65_519, 0));
        assert!(!outer.write(&mut headers, 65_520, 0));
    }

    proptest! {
        #[test]
        fn headers_are_read_back(source: u32, destination: u32, inner in 0usize..60_000, entropy: u16, vni in 0u32..1 << 24) {
            let outer = Udp4::vxlan(LINK, source.into(), destination.into(), vni);
            let mut headers = [0; UDP4_LEN];
            prop_assert!(outer.write(&mut headers, inner, entropy));
            let (ip, _) = Ipv4::split(&headers[14..]).unwrap();
            prop_assert!(ip.checksum_is_right());
            prop_assert_eq!(ip.total_len() as usize, UDP4_LEN - 14 + inner);
            let frame_len = UDP4_LEN + inner;
            let layers = Layers::of_first(&headers, frame_len).unwrap();
            prop_assert_eq!((layers.l4(), layers.payload()), (34, 42..frame_len));
        }
    }
}
