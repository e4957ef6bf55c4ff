// SPDX-License-Identifier: BSD-3-Clause
//! The same work with each library, as its documentation shows it, and with the libraries'
//! accessors and RFC 1624 by hand.
//!
//! All of them check the EtherType, that the headers are complete, and what the library checks
//! itself.

use etherparse::{Ethernet2Header, Ipv4Header, UdpHeader};
use packet::MacAddr;
use packet::ethernet::{ETHERTYPE_IPV4, Ethernet};
use packet::ipv4::Ipv4;
use packet::udp::Udp;
use pnet_packet::MutablePacket;
use pnet_packet::ethernet::{EtherTypes, MutableEthernetPacket};
use pnet_packet::ipv4::{self as pnet_ipv4, MutableIpv4Packet};
use pnet_packet::udp::{self as pnet_udp, MutableUdpPacket};
use smoltcp::wire::{EthernetAddress, EthernetFrame, EthernetProtocol, Ipv4Packet, UdpPacket};

use crate::by_hand::{updated, updated_udp, words};
use crate::frames::Nat;

/// Translates all frames and returns how many it could.
pub type Sweep = fn(&mut [&mut [u8]], &Nat) -> usize;

/// An arm: one way to translate frames.
pub struct Arm {
    /// Its name in the output.
    pub name: &'static str,
    /// Ethernet addresses and the IPv4 destination.
    pub address: Sweep,
    /// Those, the destination port, and the checksum of UDP.
    pub ports: Sweep,
}

/// Makes a function with the loop for each arm and cell, so that each has its own copy of the code.
macro_rules! arm {
    ($name:literal, $address:path, $ports:path) => {{
        #[inline(never)]
        fn address(frames: &mut [&mut [u8]], nat: &Nat) -> usize {
            frames.iter_mut().map(|frame| usize::from($address(frame, nat).is_some())).sum()
        }
        #[inline(never)]
        fn ports(frames: &mut [&mut [u8]], nat: &Nat) -> usize {
            frames.iter_mut().map(|frame| usize::from($ports(frame, nat).is_some())).sum()
        }
        Arm { name: $name, address, ports }
    }};
}

/// All arms; ours first.
pub const ARMS: &[Arm] = &[
    arm!("linerate", linerate_address, linerate_ports),
    arm!("smoltcp", smoltcp_address, smoltcp_ports),
    arm!("pnet", pnet_address, pnet_ports),
    arm!("etherparse", etherparse_address, etherparse_ports),
    arm!("smoltcp, RFC 1624 by hand", smoltcp_address_by_hand, smoltcp_ports_by_hand),
    arm!("pnet, RFC 1624 by hand", pnet_address_by_hand, pnet_ports_by_hand),
];

#[inline(always)]
fn linerate_address(frame: &mut [u8], nat: &Nat) -> Option<()> {
    let (ethernet, packet) = Ethernet::split_mut(frame).ok()?;
    if ethernet.ether_type() != ETHERTYPE_IPV4 {
        return None;
    }
    ethernet.set_addresses(MacAddr(nat.next_hop), MacAddr(nat.own));
    let (ip, rest) = Ipv4::split_mut(packet).ok()?;
    ip.payload(rest).ok()?;
    // UDP has no checksum in this cell.
    let _ = ip.update_destination(nat.address.into());
    Some(())
}

#[inline(always)]
fn linerate_ports(frame: &mut [u8], nat: &Nat) -> Option<()> {
    let (ethernet, packet) = Ethernet::split_mut(frame).ok()?;
    if ethernet.ether_type() != ETHERTYPE_IPV4 {
        return None;
    }
    ethernet.set_addresses(MacAddr(nat.next_hop), MacAddr(nat.own));
    let (ip, rest) = Ipv4::split_mut(packet).ok()?;
    let (udp, payload) = Udp::split_mut(ip.payload_mut(rest).ok()?).ok()?;
    udp.payload(payload).ok()?;
    udp.translate_destination(ip.update_destination(nat.address.into()), nat.port);
    Some(())
}

#[inline(always)]
fn smoltcp_address(frame: &mut [u8], nat: &Nat) -> Option<()> {
    let mut ethernet = EthernetFrame::new_checked(frame).ok()?;
    if ethernet.ethertype() != EthernetProtocol::Ipv4 {
        return None;
    }
    ethernet.set_dst_addr(EthernetAddress(nat.next_hop));
    ethernet.set_src_addr(EthernetAddress(nat.own));
    let mut ip = Ipv4Packet::new_checked(ethernet.payload_mut()).ok()?;
    ip.set_dst_addr(nat.address.into());
    ip.fill_checksum();
    Some(())
}

#[inline(always)]
fn smoltcp_ports(frame: &mut [u8], nat: &Nat) -> Option<()> {
    let mut ethernet = EthernetFrame::new_checked(frame).ok()?;
    if ethernet.ethertype() != EthernetProtocol::Ipv4 {
        return None;
    }
    ethernet.set_dst_addr(EthernetAddress(nat.next_hop));
    ethernet.set_src_addr(EthernetAddress(nat.own));
    let mut ip = Ipv4Packet::new_checked(ethernet.payload_mut()).ok()?;
    ip.set_dst_addr(nat.address.into());
    ip.fill_checksum();
    let (source, destination) = (ip.src_addr(), ip.dst_addr());
    let mut udp = UdpPacket::new_checked(ip.payload_mut()).ok()?;
    udp.set_dst_port(nat.port);
    udp.fill_checksum(&source.into(), &destination.into());
    Some(())
}

#[inline(always)]
fn smoltcp_address_by_hand(frame: &mut [u8], nat: &Nat) -> Option<()> {
    let mut ethernet = EthernetFrame::new_checked(frame).ok()?;
    if ethernet.ethertype() != EthernetProtocol::Ipv4 {
        return None;
    }
    ethernet.set_dst_addr(EthernetAddress(nat.next_hop));
    ethernet.set_src_addr(EthernetAddress(nat.own));
    let mut ip = Ipv4Packet::new_checked(ethernet.payload_mut()).ok()?;
    let sum = updated(ip.checksum(), words(ip.dst_addr().octets()), words(nat.address));
    ip.set_dst_addr(nat.address.into());
    ip.set_checksum(sum);
    Some(())
}

#[inline(always)]
fn smoltcp_ports_by_hand(frame: &mut [u8], nat: &Nat) -> Option<()> {
    let mut ethernet = EthernetFrame::new_checked(frame).ok()?;
    if ethernet.ethertype() != EthernetProtocol::Ipv4 {
        return None;
    }
    ethernet.set_dst_addr(EthernetAddress(nat.next_hop));
    ethernet.set_src_addr(EthernetAddress(nat.own));
    let mut ip = Ipv4Packet::new_checked(ethernet.payload_mut()).ok()?;
    let old = ip.dst_addr().octets();
    let sum = updated(ip.checksum(), words(old), words(nat.address));
    ip.set_dst_addr(nat.address.into());
    ip.set_checksum(sum);
    let mut udp = UdpPacket::new_checked(ip.payload_mut()).ok()?;
    let sum = updated_udp(udp.checksum(), (old, udp.dst_port()), (nat.address, nat.port));
    udp.set_dst_port(nat.port);
    udp.set_checksum(sum);
    Some(())
}

#[inline(always)]
fn pnet_address(frame: &mut [u8], nat: &Nat) -> Option<()> {
    let mut ethernet = MutableEthernetPacket::new(frame)?;
    if ethernet.get_ethertype() != EtherTypes::Ipv4 {
        return None;
    }
    ethernet.set_destination(nat.next_hop.into());
    ethernet.set_source(nat.own.into());
    let mut ip = MutableIpv4Packet::new(ethernet.payload_mut())?;
    ip.set_destination(nat.address.into());
    ip.set_checksum(pnet_ipv4::checksum(&ip.to_immutable()));
    Some(())
}

#[inline(always)]
fn pnet_ports(frame: &mut [u8], nat: &Nat) -> Option<()> {
    let mut ethernet = MutableEthernetPacket::new(frame)?;
    if ethernet.get_ethertype() != EtherTypes::Ipv4 {
        return None;
    }
    ethernet.set_destination(nat.next_hop.into());
    ethernet.set_source(nat.own.into());
    let mut ip = MutableIpv4Packet::new(ethernet.payload_mut())?;
    ip.set_destination(nat.address.into());
    ip.set_checksum(pnet_ipv4::checksum(&ip.to_immutable()));
    let (source, destination) = (ip.get_source(), ip.get_destination());
    let mut udp = MutableUdpPacket::new(ip.payload_mut())?;
    udp.set_destination(nat.port);
    // It returns 0, which in RFC 768 means no checksum.
    let sum = pnet_udp::ipv4_checksum(&udp.to_immutable(), &source, &destination);
    udp.set_checksum(if sum == 0 { 0xffff } else { sum });
    Some(())
}

#[inline(always)]
fn pnet_address_by_hand(frame: &mut [u8], nat: &Nat) -> Option<()> {
    let mut ethernet = MutableEthernetPacket::new(frame)?;
    if ethernet.get_ethertype() != EtherTypes::Ipv4 {
        return None;
    }
    ethernet.set_destination(nat.next_hop.into());
    ethernet.set_source(nat.own.into());
    let mut ip = MutableIpv4Packet::new(ethernet.payload_mut())?;
    let old = ip.get_destination().octets();
    let sum = updated(ip.get_checksum(), words(old), words(nat.address));
    ip.set_destination(nat.address.into());
    ip.set_checksum(sum);
    Some(())
}

#[inline(always)]
fn pnet_ports_by_hand(frame: &mut [u8], nat: &Nat) -> Option<()> {
    let mut ethernet = MutableEthernetPacket::new(frame)?;
    if ethernet.get_ethertype() != EtherTypes::Ipv4 {
        return None;
    }
    ethernet.set_destination(nat.next_hop.into());
    ethernet.set_source(nat.own.into());
    let mut ip = MutableIpv4Packet::new(ethernet.payload_mut())?;
    let old = ip.get_destination().octets();
    let sum = updated(ip.get_checksum(), words(old), words(nat.address));
    ip.set_destination(nat.address.into());
    ip.set_checksum(sum);
    let mut udp = MutableUdpPacket::new(ip.payload_mut())?;
    let before = (old, udp.get_destination());
    let sum = updated_udp(udp.get_checksum(), before, (nat.address, nat.port));
    udp.set_destination(nat.port);
    udp.set_checksum(sum);
    Some(())
}

/// etherparse's headers are copies: they are changed and then written back.
#[inline(always)]
fn etherparse_address(frame: &mut [u8], nat: &Nat) -> Option<()> {
    etherparse_ip(frame, nat).map(|_| ())
}

/// Returns the header, and the length of all headers so far.
#[inline(always)]
fn etherparse_ip(frame: &mut [u8], nat: &Nat) -> Option<(Ipv4Header, usize)> {
    let (mut ethernet, rest) = Ethernet2Header::from_slice(frame).ok()?;
    if ethernet.ether_type != etherparse::EtherType::IPV4 {
        return None;
    }
    let (mut ip, _) = Ipv4Header::from_slice(rest).ok()?;
    ethernet.destination = nat.next_hop;
    ethernet.source = nat.own;
    ip.destination = nat.address;
    ip.header_checksum = ip.calc_header_checksum();
    let end = Ethernet2Header::LEN + ip.header_len();
    frame.get_mut(..Ethernet2Header::LEN)?.copy_from_slice(&ethernet.to_bytes());
    frame.get_mut(Ethernet2Header::LEN..end)?.copy_from_slice(&ip.to_bytes());
    Some((ip, end))
}

#[inline(always)]
fn etherparse_ports(frame: &mut [u8], nat: &Nat) -> Option<()> {
    let (ip, start) = etherparse_ip(frame, nat)?;
    let end = Ethernet2Header::LEN + usize::from(ip.total_len);
    let datagram = frame.get_mut(start..end)?;
    let (mut udp, payload) = UdpHeader::from_slice(datagram).ok()?;
    udp.destination_port = nat.port;
    udp.checksum = udp.calc_checksum_ipv4(&ip, payload).ok()?;
    datagram.get_mut(..UdpHeader::LEN)?.copy_from_slice(&udp.to_bytes());
    Some(())
}
