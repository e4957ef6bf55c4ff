// SPDX-License-Identifier: BSD-3-Clause
//! Classify: the EtherType says what a packet is, and its header must be complete.

use dpdk::Mbuf;

use super::alone::{Bench, CAME, Case, alone, check};
use super::frames::{Ip4, cut, ethernet, ip6};
use crate::l3fwd_graph::nodes::Classify;

alone!(Alone<'port>:
    classify_left, classify_right => each classify: Classify => Ipv4, Ipv6, Other);

pub fn alone(bench: Bench<'_>) {
    let (ip4, ip6) = (Ip4::to([198, 18, 0, 1]), ip6("2001:db8::1", 64));
    let mut cases = vec![
        Case::new("IPv4", ip4.frame(), "Ipv4"),
        Case::new("a header of IPv4 and no more", cut(ip4.frame(), 34), "Ipv4"),
        Case::new("options", ip4.clone().options(&[[1; 4], [1; 4]]).frame(), "Ipv4"),
        // What lookups do not need is not checked, as in C.
        Case::new("time to live of 0", ip4.clone().ttl(0).frame(), "Ipv4"),
        Case::new("version 6 in IPv4", ip4.clone().version(6).frame(), "Ipv4"),
        Case::new("version 0 in IPv4", ip4.clone().version(0).frame(), "Ipv4"),
        Case::new("IPv6", ip6.clone(), "Ipv6"),
        Case::new("a header of IPv6 and no more", cut(ip6.clone(), 54), "Ipv6"),
        Case::new("version 4 in IPv6", ethernet(0x86dd, &[0x45; 40]), "Ipv6"),
        Case::new("ARP", ethernet(0x0806, &[0; 46]), "Other"),
        Case::new("a VLAN tag", ethernet(0x8100, &[0; 46]), "Other"),
        Case::new("a length in the type's place", ethernet(0x0026, &[0xaa; 46]), "Other"),
        Case::new("IPv6 in two segments", ip6.clone(), "Other").packet({
            let ip6 = ip6.clone();
            move |bench| segmented(bench, &ip6, 40)
        }),
        Case::new("IPv4 with a header in one segment", ip4.frame(), "Ipv4").packet({
            let ip4 = ip4.frame();
            move |bench| segmented(bench, &ip4, 34)
        }),
    ];
    // All frames that end within a header.
    cases.extend(
        [0, 1, 12, 13, 14, 33].map(|len| Case::new("runt", cut(ip4.frame(), len), "Other")),
    );
    cases.extend([14, 33, 34, 53].map(|len| Case::new("runt", cut(ip6.clone(), len), "Other")));
    check(bench, &cases, |feeds, seen| Alone::of(Classify, feeds, seen));
}

/// A packet whose first segment has the first `len` bytes.
fn segmented<'eal>(bench: Bench<'eal>, frame: &[u8], len: usize) -> Mbuf<'eal> {
    let mut packet = bench.packet(&frame[..len], CAME);
    assert!(packet.chain(bench.packet(&frame[len..], CAME)).is_ok());
    packet
}
