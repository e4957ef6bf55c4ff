// SPDX-License-Identifier: BSD-3-Clause
//! Messages of ARP (RFC 826) and IPv6 neighbor discovery (RFC 4861), as frames.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use packet::MacAddr;
use packet::arp::{self, Arp};
use packet::ethernet::{ETHERTYPE_ARP, ETHERTYPE_IPV6};
use packet::icmp::{
    Icmpv6, NEXT_HEADER_ICMPV6, V6_NEIGHBOR_ADVERTISEMENT, V6_NEIGHBOR_SOLICITATION,
};
use packet::ipv6::{self, Ipv6};
use packet::vlan;

use super::{Interface, MAX_TAGS};

/// Bytes of the shortest frame, without FCS.
const MIN_LEN: usize = 60;
/// Kinds of the two options that say an Ethernet address: the sender's and the target's.
const SOURCE_ADDRESS: u8 = 1;
const TARGET_ADDRESS: u8 = 2;
/// Flags of an advertisement: it answers a question; it replaces what was known.
const SOLICITED: u8 = 0x40;
const OVERRIDE: u8 = 0x20;
/// Neighbor discovery does not cross routers: they would have lowered this hop limit.
const HOP_LIMIT: u8 = 255;
const BROADCAST: MacAddr = MacAddr([0xff; 6]);
/// All nodes of a link, to which answers go if the asker has no address yet.
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

/// What a message says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// Who has `target`?
    Question {
        /// The address.
        target: IpAddr,
        /// Who asks; unspecified if the asker has no address yet.
        from: IpAddr,
        /// The asker's Ethernet address.
        mac: MacAddr,
    },
    /// `mac` has `address`.
    Answer {
        /// The address.
        address: IpAddr,
        /// Its Ethernet address.
        mac: MacAddr,
    },
}

/// A message, and the VLANs in which it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heard {
    /// VLAN IDs of the tags, the outer one first.
    pub ids: Vec<u16>,
    /// The message.
    pub message: Message,
}

fn is_tag(ether_type: u16) -> bool {
    vlan::is_tag(ether_type) || ether_type == 0x9300
}

/// The EtherType behind a frame's VLAN tags, and all that follows it; `id` is given each tag's ID.
#[inline]
fn untagged(frame: &[u8], mut id: impl FnMut(u16)) -> Option<(u16, &[u8])> {
    let mut rest = frame.get(12..)?;
    for _ in 0..=MAX_TAGS {
        let (ether_type, behind) = rest.split_first_chunk::<2>()?;
        let ether_type = u16::from_be_bytes(*ether_type);
        if !is_tag(ether_type) {
            return Some((ether_type, behind));
        }
        let (control, behind) = behind.split_first_chunk::<2>()?;
        id(u16::from_be_bytes(*control) & vlan::MAX_ID);
        rest = behind;
    }
    None
}

/// Whether a frame is of ARP or neighbor discovery, by its types alone.
#[inline]
pub fn is_neighbor(frame: &[u8]) -> bool {
    match untagged(frame, |_| ()) {
        Some((ETHERTYPE_ARP, _)) => true,
        Some((ETHERTYPE_IPV6, packet)) => {
            packet.get(6) == Some(&NEXT_HEADER_ICMPV6)
                && matches!(
                    packet.get(ipv6::LEN),
                    Some(&V6_NEIGHBOR_SOLICITATION | &V6_NEIGHBOR_ADVERTISEMENT)
                )
        }
        _ => false,
    }
}

/// Reads a frame; `None` if it is no question or answer, or not a valid one.
pub fn read(frame: &[u8]) -> Option<Heard> {
    let mut ids = Vec::new();
    let (ether_type, body) = untagged(frame, |id| ids.push(id))?;
    let message = match ether_type {
        ETHERTYPE_ARP => read_arp(body),
        ETHERTYPE_IPV6 => {
            let source = frame.get(6..12).and_then(|bytes| <[u8; 6]>::try_from(bytes).ok())?;
            read_discovery(body, MacAddr(source))
        }
        _ => None,
    }?;
    let (Message::Question { mac, .. } | Message::Answer { mac, .. }) = message;
    is_unicast(mac).then_some(Heard { ids, message })
}

/// Whether an interface can have an Ethernet address.
pub fn is_unicast(mac: MacAddr) -> bool {
    mac.0[0] & 1 == 0 && mac != MacAddr::default()
}

fn read_arp(body: &[u8]) -> Option<Message> {
    let (arp, _) = Arp::split(body).ok()?;
    let (from, mac) = (arp.sender_ip().into(), arp.sender_mac());
    match arp.operation() {
        arp::REQUEST => Some(Message::Question { target: arp.target_ip().into(), from, mac }),
        arp::REPLY => Some(Message::Answer { address: from, mac }),
        _ => None,
    }
}

/// With the checks of RFC 4861, sections 7.1.1 and 7.1.2. `source` is the frame's source address, which counts if
/// the message has none.
fn read_discovery(body: &[u8], source: MacAddr) -> Option<Message> {
    let (ip, rest) = Ipv6::split(body).ok()?;
    let payload = ip.payload(rest).ok()?;
    let (icmp, rest) = Icmpv6::split(payload).ok()?;
    let pseudo = ip.pseudo_header(NEXT_HEADER_ICMPV6, payload.len());
    let valid = ip.next_header() == NEXT_HEADER_ICMPV6
        && ip.hop_limit() == HOP_LIMIT
        && icmp.code() == 0
        && icmp.checksum_is_right(pseudo, rest);
    let (target, options) = rest.split_first_chunk::<16>().filter(|_| valid)?;
    let target = Ipv6Addr::from(*target);
    if target.is_multicast() || ip.source().is_multicast() {
        return None;
    }
    match icmp.kind() {
        V6_NEIGHBOR_SOLICITATION => {
            let given = option(options, SOURCE_ADDRESS)?;
            // Who asks without an address asks the group of the address that it wants.
            if ip.source().is_unspecified()
                && (given.is_some() || ip.destination() != solicited_node(target))
            {
                return None;
            }
            let (from, mac) = (ip.source().into(), given.unwrap_or(source));
            Some(Message::Question { target: target.into(), from, mac })
        }
        V6_NEIGHBOR_ADVERTISEMENT => {
            if ip.destination().is_multicast() && icmp.data()[0] & SOLICITED != 0 {
                return None;
            }
            let mac = option(options, TARGET_ADDRESS)?.unwrap_or(source);
            Some(Message::Answer { address: target.into(), mac })
        }
        _ => None,
    }
}

/// The Ethernet address in an option of this kind, if there is one. `None` if an option has no length.
fn option(mut options: &[u8], wanted: u8) -> Option<Option<MacAddr>> {
    let mut found = None;
    while let [kind, words, ..] = *options {
        let option = options.get(..usize::from(words) * 8).filter(|option| !option.is_empty())?;
        if let (true, &[_, _, a, b, c, d, e, f]) = (kind == wanted, option) {
            found = Some(MacAddr([a, b, c, d, e, f]));
        }
        options = &options[option.len()..];
    }
    Some(found)
}

/// The multicast group that every node with such an address joins (RFC 4291, section 2.7.1).
fn solicited_node(address: Ipv6Addr) -> Ipv6Addr {
    let [.., a, b, c] = address.octets();
    Ipv6Addr::from([0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, a, b, c])
}

/// The frame by which an interface asks who has `target`; `from` is its own address, of the same kind.
pub fn question(interface: &Interface, from: IpAddr, target: IpAddr) -> Option<Vec<u8>> {
    match (from, target) {
        (IpAddr::V4(from), IpAddr::V4(target)) => {
            let to = (MacAddr::default(), target);
            Some(arp_frame(interface, BROADCAST, arp::REQUEST, from, to))
        }
        (IpAddr::V6(from), IpAddr::V6(target)) => {
            let group = solicited_node(target);
            let [.., a, b, c] = group.octets();
            let kind = (V6_NEIGHBOR_SOLICITATION, 0, SOURCE_ADDRESS);
            let to = (MacAddr([0x33, 0x33, 0xff, a, b, c]), group);
            Some(discovery_frame(interface, to, kind, from, target))
        }
        _ => None,
    }
}

/// The frame by which an interface tells the asker `to`, whose Ethernet address is `mac`, that it has `target`.
pub fn answer(interface: &Interface, target: IpAddr, to: IpAddr, mac: MacAddr) -> Option<Vec<u8>> {
    match (target, to) {
        (IpAddr::V4(target), IpAddr::V4(to)) => {
            Some(arp_frame(interface, mac, arp::REPLY, target, (mac, to)))
        }
        (IpAddr::V6(target), IpAddr::V6(to)) => {
            let (to, flags) = match to.is_unspecified() {
                true => ((MacAddr([0x33, 0x33, 0, 0, 0, 1]), ALL_NODES), OVERRIDE),
                false => ((mac, to), SOLICITED | OVERRIDE),
            };
            let kind = (V6_NEIGHBOR_ADVERTISEMENT, flags, TARGET_ADDRESS);
            Some(discovery_frame(interface, to, kind, target, target))
        }
        _ => None,
    }
}

fn arp_frame(
    interface: &Interface,
    to: MacAddr,
    operation: u16,
    from: Ipv4Addr,
    target: (MacAddr, Ipv4Addr),
) -> Vec<u8> {
    let mut body = [0; arp::LEN];
    // IPv4 on Ethernet.
    body[..6].copy_from_slice(&[0, 1, 8, 0, 6, 4]);
    if let Ok((message, _)) = Arp::split_mut(&mut body) {
        message.set_operation(operation);
        message.set_sender(interface.mac, from);
        message.set_target(target.0, target.1);
    }
    frame(interface, to, ETHERTYPE_ARP, &body)
}

/// A message about `target` with the interface's Ethernet address in an option. `kind`: its type, its flags, and the option's
/// kind.
fn discovery_frame(
    interface: &Interface,
    (mac, to): (MacAddr, Ipv6Addr),
    (kind, flags, option): (u8, u8, u8),
    from: Ipv6Addr,
    target: Ipv6Addr,
) -> Vec<u8> {
    const LEN: usize = 32;
    let mut packet = [0; ipv6::LEN + LEN];
    packet[0] = 0x60;
    packet[ipv6::LEN + 8..ipv6::LEN + 24].copy_from_slice(&target.octets());
    packet[ipv6::LEN + 24..ipv6::LEN + 26].copy_from_slice(&[option, 1]);
    packet[ipv6::LEN + 26..].copy_from_slice(&interface.mac.0);
    if let Ok((ip, rest)) = Ipv6::split_mut(&mut packet) {
        ip.set_payload_len(LEN as u16);
        ip.set_next_header(NEXT_HEADER_ICMPV6);
        ip.set_hop_limit(HOP_LIMIT);
        ip.set_source(from);
        ip.set_destination(to);
        if let Ok((icmp, rest)) = Icmpv6::split_mut(rest) {
            icmp.set_kind(kind, 0);
            icmp.set_data([flags, 0, 0, 0]);
            icmp.fill_checksum(ip.pseudo_header(NEXT_HEADER_ICMPV6, LEN), rest);
        }
    }
    frame(interface, mac, ETHERTYPE_IPV6, &packet)
}

/// A frame of an interface with its tags, padded to the shortest length.
fn frame(interface: &Interface, to: MacAddr, ether_type: u16, body: &[u8]) -> Vec<u8> {
    let mut frame = [to.0, interface.mac.0].concat();
    for tag in &interface.tags {
        frame.extend(tag.tpid.to_be_bytes());
        frame.extend((u16::from(tag.priority) << 13 | tag.id).to_be_bytes());
    }
    frame.extend(ether_type.to_be_bytes());
    frame.extend(body);
    frame.resize(frame.len().max(MIN_LEN), 0);
    frame
}
