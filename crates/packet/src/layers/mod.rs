// SPDX-License-Identifier: BSD-3-Clause
//! From an Ethernet frame to the payload: what headers it has, and where.
//!
//! [`Layers::of`] walks over VLAN tags, IPv4 or IPv6 with extension headers, and the transport header, and keeps
//! offsets. Every step takes bytes, so that the frame's length bounds the work. Tunnels are walked
//! into one at a time ([`Layers::inner`]). `rte_net_get_ptype` does this in C.

mod checksums;
#[cfg(test)]
mod tests;

use std::ops::Range;

use crate::ethernet::{self, ETHERTYPE_BRIDGING, ETHERTYPE_IPV4, ETHERTYPE_IPV6, Ethernet};
use crate::extension::{Extensions, ROUTING};
use crate::gre::Gre;
use crate::icmp::{self, Icmp, Icmpv6, NEXT_HEADER_ICMPV6};
use crate::ipv4::{Ipv4, PROTOCOL_GRE, PROTOCOL_ICMP, PROTOCOL_TCP, PROTOCOL_UDP};
use crate::ipv6::{self, Ipv6};
use crate::tcp::Tcp;
use crate::udp::{self, Udp};
use crate::view::{Layer, Malformed};
use crate::vlan::{self, Vlan};
use crate::vxlan::{self, Vxlan};

/// Kind of IPv4's option for a loose source route (LSRR, RFC 791).
const LOOSE_ROUTE: u8 = 131;
/// Kind of IPv4's option for a strict one (SSRR).
const STRICT_ROUTE: u8 = 137;

/// Whether a packet is all there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fragment {
    /// It is whole.
    Whole,
    /// It is the first fragment of one: its transport header is there, its payload goes on elsewhere.
    First,
    /// It is another fragment, without a transport header.
    Later,
}

/// What a packet is carried in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tunnel {
    /// UDP to the port 4789.
    Vxlan,
    /// The IP protocol 47.
    Gre,
}

/// The headers of a frame. All offsets are in bytes from the start of the bytes that were walked over; all lengths
/// lie within what is behind them.
///
/// ```
/// use packet::layers::{Fragment, Layers};
/// # use packet::{field::Pattern, frame::{FrameSpec, Header}, headers, payload::Payload, size::Sizes, writer::FrameWriter};
/// # let headers = ["ethernet", "vlan", "ipv4", "udp"].map(|n| Header::new(headers::kind(n).unwrap()));
/// # let spec = FrameSpec { headers: headers.into(), sizes: Sizes::Fixed(64), payload: Payload::default(), signature: None };
/// # let mut frames = [Vec::new()];
/// # FrameWriter::new(&spec, 0).unwrap().write(&mut frames, 0, false);
/// # let frame = &frames[0];
/// let layers = Layers::of(frame)?;
/// assert_eq!((layers.l2_len, layers.l3_len, layers.l4_len), (18, 20, 8));
/// assert_eq!((layers.protocol, layers.fragment), (Some(17), Fragment::Whole));
/// assert_eq!(layers.payload(), 46..60);
/// assert_eq!(layers.checksum_is_right(frame), Some(true));
/// # Ok::<(), packet::Malformed>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layers {
    /// Where the frame begins; not 0 in a tunnel.
    pub start: usize,
    /// Length of the Ethernet header and all VLAN tags (`l2_len` of an mbuf); 0 where IP begins at once.
    pub l2_len: usize,
    /// How many VLAN tags there are.
    pub vlan_tags: usize,
    /// EtherType behind the tags.
    pub ether_type: u16,
    /// Length of the IP header with options or extension headers (`l3_len`); 0 when it is not IP.
    pub l3_len: usize,
    /// Protocol behind them; `None` when it is not IP. For IPv6 also 59, nothing, and 50, ESP.
    pub protocol: Option<u8>,
    /// Whether it is a fragment.
    pub fragment: Fragment,
    /// Length of the header of UDP, TCP, ICMP or ICMPv6 (`l4_len`); 0 where there is none of these.
    pub l4_len: usize,
    /// Where the payload ends, by the lengths in the headers; behind it is padding.
    pub end: usize,
    /// An IPv4 source route or an IPv6 routing header has stops left, so that the destination is not yet the one of the checksums.
    on_its_way: bool,
}

impl Layers {
    /// The headers of an Ethernet frame: of what a port receives.
    ///
    /// # Errors
    /// [`Malformed`] says which header is cut short or lies.
    pub fn of(frame: &[u8]) -> Result<Self, Malformed> {
        Self::of_frame(frame, 0, frame.len())
    }

    /// The headers of an Ethernet frame of `frame_len` bytes, of which only the first are at hand, as in the first
    /// of several segments. Headers have to be among these; what they say is held against the whole length.
    ///
    /// # Errors
    /// As [`Layers::of`].
    pub fn of_first(bytes: &[u8], frame_len: usize) -> Result<Self, Malformed> {
        Self::of_frame(bytes, 0, frame_len)
    }

    /// The headers of an IP packet without Ethernet, such as a tun interface gives. A frame that is taken for one is
    /// [`Malformed`], or nonsense where its first address begins with a 4 or a 6: it goes to [`Layers::of`].
    ///
    /// # Errors
    /// As [`Layers::of`]; [`Malformed::Kind`] when its version is neither 4 nor 6.
    pub fn of_packet(packet: &[u8]) -> Result<Self, Malformed> {
        let ether_type = match packet.first().map(|first| first >> 4) {
            Some(6) => ETHERTYPE_IPV6,
            // What is neither is no IPv4.
            _ => ETHERTYPE_IPV4,
        };
        Self::without_network(0, 0, ether_type, packet.len()).of_network(packet)
    }

    /// Where the IP header begins, or what is in its place.
    #[inline]
    pub fn l3(&self) -> usize {
        self.start + self.l2_len
    }

    /// Where the transport header begins, or what is in its place.
    #[inline]
    pub fn l4(&self) -> usize {
        self.l3() + self.l3_len
    }

    /// Where the payload is: what is behind all headers that were walked over.
    #[inline]
    pub fn payload(&self) -> Range<usize> {
        self.l4() + self.l4_len..self.end
    }

    /// Whether the packet is IPv4.
    #[inline]
    pub fn is_ipv4(&self) -> bool {
        self.ether_type == ETHERTYPE_IPV4
    }

    /// Whether the packet is IPv6.
    #[inline]
    pub fn is_ipv6(&self) -> bool {
        self.ether_type == ETHERTYPE_IPV6
    }

    /// Whether the packet has all that the checksum of UDP and TCP is of: it is no fragment, and no IPv4 source route or IPv6 routing header
    /// has stops left, whose last is the checksum's destination.
    #[inline]
    pub fn has_pseudo_header(&self) -> bool {
        self.fragment == Fragment::Whole && !self.on_its_way
    }

    /// Which tunnel's header is in the payload, if the packet is whole: by protocol and port, not by what stands
    /// there. `bytes` are those that were walked over.
    pub fn tunnel(&self, bytes: &[u8]) -> Option<Tunnel> {
        let l4 = bytes.get(self.l4()..)?;
        match self.protocol {
            _ if self.fragment != Fragment::Whole => None,
            Some(PROTOCOL_GRE) => Some(Tunnel::Gre),
            Some(PROTOCOL_UDP) => {
                let (udp, _) = Udp::split(l4).ok()?;
                (udp.destination() == vxlan::PORT).then_some(Tunnel::Vxlan)
            }
            _ => None,
        }
    }

    /// The headers of what is in a tunnel, one level down, and which tunnel; `None` when there is none.
    ///
    /// # Errors
    /// As [`Layers::of`], and [`Malformed::Kind`] of a tunnel header that says that nothing known follows.
    pub fn inner(&self, bytes: &[u8]) -> Option<Result<(Tunnel, Self), Malformed>> {
        let tunnel = self.tunnel(bytes)?;
        let inner = match tunnel {
            Tunnel::Vxlan => self.in_vxlan(bytes),
            Tunnel::Gre => self.in_gre(bytes),
        };
        Some(inner.map(|layers| (tunnel, layers)))
    }

    fn in_vxlan(&self, bytes: &[u8]) -> Result<Self, Malformed> {
        let start = self.payload().start;
        let (vxlan, _) = Vxlan::split(part(bytes, start, self.end))?;
        if !vxlan.has_vni() {
            return Err(Malformed::Kind(Layer::Vxlan));
        }
        Self::of_frame(bytes, start + vxlan::LEN, self.end)
    }

    fn in_gre(&self, bytes: &[u8]) -> Result<Self, Malformed> {
        let start = self.payload().start;
        let (gre, _) = Gre::split(part(bytes, start, self.end))?;
        let start = start + gre.header_len();
        match gre.protocol() {
            ETHERTYPE_BRIDGING => Self::of_frame(bytes, start, self.end),
            other => Self::without_network(start, 0, other, self.end).of_network(bytes),
        }
    }

    fn of_frame(bytes: &[u8], start: usize, end: usize) -> Result<Self, Malformed> {
        let (ethernet, mut rest) = Ethernet::split(part(bytes, start, end))?;
        let mut ether_type = ethernet.ether_type();
        let mut tags = 0;
        while vlan::is_tag(ether_type) {
            let (tag, behind) = Vlan::split(rest)?;
            (ether_type, rest) = (tag.ether_type(), behind);
            tags += 1;
        }
        let l2_len = ethernet::LEN + tags * vlan::LEN;
        let layers = Self::without_network(start, l2_len, ether_type, end);
        Layers { vlan_tags: tags, ..layers }.of_network(bytes)
    }

    fn without_network(start: usize, l2_len: usize, ether_type: u16, end: usize) -> Self {
        Layers {
            start,
            l2_len,
            vlan_tags: 0,
            ether_type,
            l3_len: 0,
            protocol: None,
            fragment: Fragment::Whole,
            l4_len: 0,
            end,
            on_its_way: false,
        }
    }

    /// Goes on behind Ethernet.
    fn of_network(mut self, bytes: &[u8]) -> Result<Self, Malformed> {
        let packet = part(bytes, self.l3(), self.end);
        match self.ether_type {
            ETHERTYPE_IPV4 => {
                let (ip, _) = Ipv4::split(packet)?;
                let lies = Malformed::Len(Layer::Ipv4);
                self.cut(ip.payload_len().map(|len| ip.header_len() + len), lies)?;
                self.l3_len = ip.header_len();
                self.on_its_way = has_stops(ip);
                self.fragment = fragment(ip.fragment_offset(), ip.more_fragments());
                self.of_transport(bytes, ip.protocol())
            }
            ETHERTYPE_IPV6 => {
                let (ip, rest) = Ipv6::split(packet)?;
                let len = usize::from(ip.payload_len());
                self.cut(Some(ipv6::LEN + len), Malformed::Len(Layer::Ipv6))?;
                self.l3_len = ipv6::LEN;
                let mut chain = Extensions::new(ip.next_header(), part(rest, 0, len));
                for extension in chain.by_ref() {
                    let (number, header) = extension?;
                    self.l3_len += header.header_len();
                    self.on_its_way |=
                        number == ROUTING && header.body().get(1).is_some_and(|left| *left > 0);
                }
                if let Some(header) = chain.fragment() {
                    self.fragment = fragment(header.offset(), header.more_fragments());
                }
                self.of_transport(bytes, chain.next_header())
            }
            _ => Ok(self),
        }
    }

    /// Ends the packet where its header says.
    fn cut(&mut self, len: Option<usize>, lies: Malformed) -> Result<(), Malformed> {
        let end = self.l3() + len.ok_or(lies)?;
        if end > self.end {
            return Err(lies);
        }
        self.end = end;
        Ok(())
    }

    /// Goes on behind IP.
    fn of_transport(mut self, bytes: &[u8], protocol: u8) -> Result<Self, Malformed> {
        self.protocol = Some(protocol);
        if self.fragment == Fragment::Later {
            return Ok(self);
        }
        let message = part(bytes, self.l4(), self.end);
        match protocol {
            PROTOCOL_UDP => {
                let (udp, _) = Udp::split(message)?;
                self.l4_len = udp::LEN;
                let end = self.l4() + usize::from(udp.length());
                let lies = Malformed::Len(Layer::Udp);
                udp.payload_len().ok_or(lies)?;
                // A first fragment has the length of all.
                if self.fragment == Fragment::Whole {
                    self.end = Some(end).filter(|end| *end <= self.end).ok_or(lies)?;
                }
            }
            PROTOCOL_TCP => self.l4_len = Tcp::split(message)?.0.header_len(),
            PROTOCOL_ICMP if self.is_ipv4() => {
                Icmp::split(message)?;
                self.l4_len = icmp::LEN;
            }
            NEXT_HEADER_ICMPV6 if self.is_ipv6() => {
                Icmpv6::split(message)?;
                self.l4_len = icmp::LEN;
            }
            _ => {}
        }
        Ok(self)
    }
}

/// Whether the packet of this header has stops before its destination: a source route, loose or strict, whose pointer,
/// which counts from 1 at the option's kind, is not behind the route's end (RFC 791).
fn has_stops(ip: &Ipv4) -> bool {
    ip.options().map_while(Result::ok).any(|option| {
        let next =
            option.data.first().filter(|_| [LOOSE_ROUTE, STRICT_ROUTE].contains(&option.kind));
        next.is_some_and(|next| usize::from(*next) <= option.data.len() + 2)
    })
}

fn fragment(offset: usize, more_follow: bool) -> Fragment {
    match (offset, more_follow) {
        (0, false) => Fragment::Whole,
        (0, true) => Fragment::First,
        _ => Fragment::Later,
    }
}

/// The bytes from `start` to `end`, as far as they are there.
fn part(bytes: &[u8], start: usize, end: usize) -> &[u8] {
    let end = end.min(bytes.len());
    bytes.get(start.min(end)..end).unwrap_or_default()
}
