// SPDX-License-Identifier: BSD-3-Clause
//! Packets as bytes: header views, checksums, signatures, and writers of any stack of headers.
//!
//! Nothing here allocates after construction, calls into C or keeps state between frames except
//! where a type says so, so everything runs unchanged on a DPDK mbuf, an AF_XDP frame or a `Vec`.
//! Multi-byte fields are in network byte order on the wire and in host order in the API. Frame
//! lengths are without the 4-byte FCS unless a name ends in `_with_fcs`.
//!
//! # Views
//! [`view`] says what they have in common, and how they are used.
//!
//! | module | header | C |
//! |---|---|---|
//! | [`ethernet`], [`vlan`], [`arp`] | Ethernet II, tags of 802.1Q and 802.1ad, ARP for IPv4 | `rte_ether_hdr`, `rte_vlan_hdr`, `rte_arp_hdr` |
//! | [`ipv4`], [`options`] | IPv4 with options | `rte_ipv4_hdr` |
//! | [`ipv6`], [`extension`] | IPv6, its extension headers | `rte_ipv6_hdr`, `rte_ipv6_fragment_ext` |
//! | [`udp`], [`tcp`], [`icmp`] | UDP, TCP with options, ICMP and ICMPv6 | `rte_udp_hdr`, `rte_tcp_hdr`, `rte_icmp_hdr` |
//! | [`vxlan`], [`gre`], [`tunnel`] | tunnels; their outer headers, written at once | `rte_vxlan_hdr`, `rte_gre_hdr` |
//! | [`layers`] | from a frame to its payload | `rte_net_get_ptype` |
//! | [`nat`] | addresses and ports translated in place | |
#![forbid(unsafe_code)]
#![warn(missing_debug_implementations)]

pub mod arp;
pub mod checksum;
pub mod classifier;
pub mod ethernet;
pub mod extension;
pub mod field;
pub mod frame;
pub mod gre;
pub mod headers;
pub mod icmp;
pub mod ipv4;
pub mod ipv6;
pub mod layers;
pub mod mac;
pub mod nat;
pub mod options;
pub mod payload;
mod ports;
pub mod pseudo;
pub mod random;
pub mod signature;
pub mod size;
pub mod tcp;
pub mod tunnel;
pub mod udp;
pub mod view;
pub mod vlan;
pub mod vxlan;
pub mod writer;

pub use mac::MacAddr;
pub use view::{Layer, Malformed};

/// Bytes that the frame check sequence adds to a frame on the wire.
pub const FCS_LEN: usize = 4;
/// Bytes that the wire adds to a frame beside its FCS: preamble 7, start delimiter 1, gap 12.
pub const L1_OVERHEAD: usize = 20;

/// The example of the crate's README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
