// SPDX-License-Identifier: BSD-3-Clause
//! Each view over any bytes: what is written is read, and nothing else changes.

use std::net::{Ipv4Addr, Ipv6Addr};

use packet::MacAddr;
use packet::arp::Arp;
use packet::checksum::Change;
use packet::ethernet::Ethernet;
use packet::extension::{Extensions, is_extension};
use packet::gre::Gre;
use packet::icmp::{Icmp, Icmpv6};
use packet::ipv4::Ipv4;
use packet::ipv6::Ipv6;
use packet::tcp::{Flags, Tcp};
use packet::udp::Udp;
use packet::vlan::Vlan;
use packet::vxlan::Vxlan;

/// The first byte chooses the header, the next sixteen are values for its fields, the others are the bytes.
pub fn headers(bytes: &[u8]) {
    let Some((choice, rest)) = bytes.split_first() else { return };
    let Some((values, rest)) = rest.split_first_chunk::<16>() else { return };
    let mut copy = rest.to_vec();
    match choice % 13 {
        0 => link(&mut copy, values),
        1 => arp(&mut copy, values),
        2 => ipv4(&mut copy, values),
        3 => ipv6(&mut copy, values),
        4 => udp(&mut copy, values),
        5 => tcp(&mut copy, values),
        6 => icmp(&mut copy, values),
        7 => icmpv6(&mut copy, values),
        8 => vxlan(&mut copy, values),
        9 => gre(&mut copy, values),
        _ => extensions(rest, *choice),
    }
    assert_eq!(copy.len(), rest.len());
}

fn word(values: &[u8; 16]) -> u16 {
    u16::from_be_bytes([values[0], values[1]])
}

fn long(values: &[u8; 16]) -> u32 {
    u32::from_be_bytes([values[0], values[1], values[2], values[3]])
}

fn mac(values: &[u8; 16]) -> MacAddr {
    let [a, b, c, d, e, f, ..] = *values;
    MacAddr([a, b, c, d, e, f])
}

fn link(bytes: &mut [u8], values: &[u8; 16]) {
    if let Ok((ethernet, _)) = Ethernet::split_mut(bytes) {
        let was = ethernet.source();
        ethernet.set_source(mac(values));
        ethernet.swap_addresses();
        assert_eq!(ethernet.destination(), mac(values));
        ethernet.set_addresses(was, was);
        ethernet.set_ether_type(word(values));
        assert_eq!(ethernet.ether_type(), word(values));
    }
    if let Ok((tag, _)) = Vlan::split_mut(bytes) {
        let before = (tag.priority(), tag.drop_eligible());
        tag.set_id(word(values));
        assert_eq!(
            (tag.id(), tag.priority(), tag.drop_eligible()),
            (word(values) & 0xfff, before.0, before.1)
        );
        tag.set_priority(values[2]);
        tag.set_drop_eligible(!before.1);
        assert_eq!((tag.priority(), tag.drop_eligible()), (values[2] & 7, !before.1));
        tag.set_control(word(values));
        assert_eq!(tag.control(), word(values));
    }
}

fn arp(bytes: &mut [u8], values: &[u8; 16]) {
    if let Ok((arp, _)) = Arp::split_mut(bytes) {
        let (from, asked) = (arp.sender_ip(), arp.target_ip());
        arp.make_reply(mac(values));
        assert_eq!(
            (arp.sender_ip(), arp.target_ip(), arp.sender_mac()),
            (asked, from, mac(values))
        );
    }
}

fn ipv4(bytes: &mut [u8], values: &[u8; 16]) {
    let Ok((ip, rest)) = Ipv4::split_mut(bytes) else { return };
    assert!(ip.options().count() <= 40);
    let cut = ip.payload(rest).map(<[u8]>::len);
    assert_eq!(cut.ok(), ip.payload_len().filter(|len| *len <= rest.len()));
    ip.fill_checksum();
    assert!(ip.checksum_is_right());
    let _ = ip.update_source(Ipv4Addr::from(long(values)));
    let _ = ip.update_destination(Ipv4Addr::from(long(values) ^ 1));
    ip.update_tos(values[4]);
    ip.update_total_len(word(values));
    ip.update_identification(word(values));
    ip.update_ttl(values[5]);
    assert_eq!(ip.decrement_ttl(), values[5].checked_sub(1).filter(|left| *left > 0));
    let updated = ip.checksum();
    ip.fill_checksum();
    assert_eq!(ip.checksum(), updated);
    let dont_fragment = ip.dont_fragment();
    let offset = usize::from(word(values)) & !7;
    assert!(ip.set_fragment(offset, values[2] & 1 == 1));
    assert_eq!((ip.fragment_offset(), ip.more_fragments()), (offset, values[2] & 1 == 1));
    assert_eq!(ip.dont_fragment(), dont_fragment);
}

fn ipv6(bytes: &mut [u8], values: &[u8; 16]) {
    let Ok((ip, rest)) = Ipv6::split_mut(bytes) else { return };
    if let Ok(payload) = ip.payload(rest) {
        assert_eq!(payload.len(), usize::from(ip.payload_len()));
    }
    let class = ip.traffic_class();
    ip.set_flow_label(long(values));
    assert_eq!((ip.flow_label(), ip.traffic_class()), (long(values) & 0xf_ffff, class));
    let change = ip.update_source(Ipv6Addr::from(*values));
    let Ok((udp, payload)) = Udp::split_mut(rest) else { return };
    let len = 8 + payload.len();
    // The change undone and done again.
    let new = ip.pseudo_header(17, len);
    udp.fill_checksum(new, payload);
    let checksum = udp.checksum();
    let back = ip.update_source(Ipv6Addr::UNSPECIFIED);
    udp.update_checksum(back);
    udp.update_checksum(ip.update_source(Ipv6Addr::from(*values)));
    assert_eq!(udp.checksum(), checksum);
    let _ = change.and(Change::NONE);
}

fn udp(bytes: &mut [u8], values: &[u8; 16]) {
    let ip = fixed_ip();
    let Ok((ip, _)) = Ipv4::split(&ip) else { return };
    let Ok((udp, rest)) = Udp::split_mut(bytes) else { return };
    assert_eq!(
        udp.payload(rest).ok().map(<[u8]>::len),
        udp.payload_len().filter(|len| *len <= rest.len())
    );
    let pseudo = ip.pseudo_header(8 + rest.len());
    udp.fill_checksum(pseudo, rest);
    assert!(udp.checksum() != 0 && udp.checksum_is_right(pseudo, rest));
    udp.update_source(word(values));
    udp.update_destination(word(values) ^ 3);
    assert_eq!((udp.source(), udp.destination()), (word(values), word(values) ^ 3));
    let updated = udp.checksum();
    udp.fill_checksum(pseudo, rest);
    assert_eq!(udp.checksum(), updated);
}

fn tcp(bytes: &mut [u8], values: &[u8; 16]) {
    let ip = fixed_ip();
    let Ok((ip, _)) = Ipv4::split(&ip) else { return };
    let Ok((tcp, rest)) = Tcp::split_mut(bytes) else { return };
    assert!(tcp.options().count() <= 40);
    let pseudo = ip.pseudo_header(tcp.header_len() + rest.len());
    tcp.fill_checksum(pseudo, rest);
    tcp.update_source(word(values));
    tcp.update_destination(word(values) ^ 3);
    tcp.update_sequence(long(values));
    tcp.update_acknowledgement(long(values) ^ 5);
    tcp.update_flags(Flags(values[6]));
    tcp.update_window(word(values));
    assert!(tcp.checksum_is_right(pseudo, rest));
    let updated = tcp.checksum();
    tcp.fill_checksum(pseudo, rest);
    assert_eq!(tcp.checksum(), updated);
}

fn icmp(bytes: &mut [u8], values: &[u8; 16]) {
    let Ok((icmp, rest)) = Icmp::split_mut(bytes) else { return };
    icmp.fill_checksum(rest);
    icmp.update_kind(values[0], values[1]);
    icmp.update_identifier(word(values));
    assert!(icmp.checksum_is_right(rest));
}

fn icmpv6(bytes: &mut [u8], values: &[u8; 16]) {
    let mut ip = [0; 40];
    ip[0] = 0x60;
    let Ok((ip, _)) = Ipv6::split(&ip) else { return };
    let Ok((icmp, rest)) = Icmpv6::split_mut(bytes) else { return };
    let pseudo = ip.pseudo_header(58, 8 + rest.len());
    icmp.fill_checksum(pseudo, rest);
    icmp.update_kind(values[0], values[1]);
    icmp.update_identifier(word(values));
    assert!(icmp.checksum_is_right(pseudo, rest));
}

fn vxlan(bytes: &mut [u8], values: &[u8; 16]) {
    let Ok((vxlan, _)) = Vxlan::split_mut(bytes) else { return };
    vxlan.set_vni(long(values));
    assert!(vxlan.has_vni() && vxlan.vni() == long(values) & 0xff_ffff);
}

fn gre(bytes: &mut [u8], values: &[u8; 16]) {
    let Ok((gre, rest)) = Gre::split_mut(bytes) else { return };
    assert_eq!(gre.set_key(long(values)), gre.key().is_some());
    assert!(gre.key().is_none_or(|key| key == long(values)));
    assert_eq!(gre.set_sequence(!long(values)), gre.sequence().is_some());
    assert!(gre.sequence().is_none_or(|number| number == !long(values)));
    gre.fill_checksum(rest);
    assert!(gre.checksum_is_right(rest));
}

fn extensions(bytes: &[u8], next: u8) {
    let mut chain = Extensions::new(next, bytes);
    let lens: Vec<usize> =
        chain.by_ref().map_while(|e| e.ok().map(|(_, header)| header.header_len())).collect();
    assert!(lens.iter().all(|len| *len >= 8));
    assert_eq!(lens.iter().sum::<usize>() + chain.rest().len(), bytes.len());
    assert!(lens.is_empty() || is_extension(next));
}

fn fixed_ip() -> [u8; 20] {
    [0x45, 0, 0, 20, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]
}
