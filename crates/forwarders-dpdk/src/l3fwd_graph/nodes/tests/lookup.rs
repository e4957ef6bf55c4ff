// SPDX-License-Identifier: BSD-3-Clause
//! Lookups: the longest matching prefix gives a packet's output port; a packet with no hop left
//! takes another edge, whatever the routes are.

use std::net::Ipv6Addr;

use dpdk::lpm::{Lpm, Lpm6, LpmConfig};

use super::alone::{Bench, Case, alone, check};
use super::frames::{Ip4, cut, ip6};
use crate::l3fwd_graph::nodes::{Ip4Lookup, Ip6Lookup};

alone!(Alone4<'port>:
    lookup4_left, lookup4_right => each lookup4: Ip4Lookup<'port> => Route, NoRoute, Expired);
alone!(Alone6<'port>:
    lookup6_left, lookup6_right => each lookup6: Ip6Lookup<'port> => Route, NoRoute, Expired);

pub fn of_ipv4(bench: Bench<'_>) {
    let mut table = Lpm::new(bench.eal, &LpmConfig::named("alone4")).unwrap();
    for (prefix, len, port) in
        [([198, 18, 0, 0], 15, 0), ([198, 18, 1, 0], 24, 1), ([198, 18, 1, 128], 25, 31)]
    {
        table.add(prefix.into(), len, port).unwrap();
    }
    let to = |destination| Ip4::to(destination);
    let routed = |what, frame: Ip4, port| Case::new(what, frame.frame(), "Route").port(Some(port));
    let kept = |what, frame: Ip4, edge| Case::new(what, frame.frame(), edge);
    let cases = [
        routed("a short prefix", to([198, 19, 255, 255]), 0),
        routed("a longer one", to([198, 18, 1, 127]), 1),
        routed("the longest", to([198, 18, 1, 128]), 31),
        routed("the last hop but one", to([198, 18, 0, 1]).ttl(2), 0),
        routed("the longest time to live", to([198, 18, 0, 1]).ttl(255), 0),
        routed("options", to([198, 18, 1, 1]).options(&[[7, 3, 4, 0]]), 1),
        routed("the longest header", to([198, 18, 1, 1]).options(&[[1; 4]; 10]), 1),
        // The version is not checked: the EtherType is sufficient.
        routed("version 6", to([198, 18, 1, 1]).version(6), 1),
        kept("no time to live", to([198, 18, 0, 1]).ttl(0), "Expired"),
        kept("the last hop", to([198, 18, 0, 1]).ttl(1), "Expired"),
        kept("the last hop to nowhere", to([198, 20, 0, 0]).ttl(1), "Expired"),
        kept("behind the last route", to([198, 20, 0, 0]), "NoRoute"),
        kept("before the first", to([198, 17, 255, 255]), "NoRoute"),
        kept("address 0", to([0; 4]), "NoRoute"),
        kept("broadcast", to([255; 4]), "NoRoute"),
        Case::new("a runt", cut(to([198, 18, 0, 1]).frame(), 33), "NoRoute"),
        Case::new("nothing", Vec::new(), "NoRoute"),
    ];
    for spread in [false, true] {
        check(bench, &cases, |feeds, seen| {
            Alone4::of(Ip4Lookup::new(table.lookups(), spread), feeds, seen)
        });
    }
}

pub fn of_ipv6(bench: Bench<'_>) {
    let mut table = Lpm6::new(bench.eal, &LpmConfig::named("alone6")).unwrap();
    for (prefix, len, port) in
        [("2001:db8::", 32, 0), ("2001:db8:0:1::", 64, 1), ("2001:db8:0:1::7", 128, 31)]
    {
        table.add(prefix.parse::<Ipv6Addr>().unwrap(), len, port).unwrap();
    }
    let routed = |what, frame, port| Case::new(what, frame, "Route").port(Some(port));
    let cases = [
        routed("a short prefix", ip6("2001:db8:ffff::1", 64), 0),
        routed("a longer one", ip6("2001:db8:0:1::8", 64), 1),
        routed("the longest", ip6("2001:db8:0:1::7", 64), 31),
        routed("the last hop but one", ip6("2001:db8::1", 2), 0),
        routed("the highest limit", ip6("2001:db8::1", 255), 0),
        routed("version 4", with_version(ip6("2001:db8::1", 64), 0x45), 0),
        routed("a header and no more", cut(ip6("2001:db8::1", 64), 54), 0),
        Case::new("no hop", ip6("2001:db8::1", 0), "Expired"),
        Case::new("the last hop", ip6("2001:db8::1", 1), "Expired"),
        Case::new("the last hop to nowhere", ip6("2001:db9::", 1), "Expired"),
        Case::new("behind the last route", ip6("2001:db9::", 64), "NoRoute"),
        Case::new("address 0", ip6("::", 64), "NoRoute"),
        Case::new("multicast", ip6("ff02::1", 64), "NoRoute"),
        Case::new("a runt", cut(ip6("2001:db8::1", 64), 53), "NoRoute"),
        Case::new("nothing", Vec::new(), "NoRoute"),
    ];
    check(bench, &cases, |feeds, seen| Alone6::of(Ip6Lookup(&table), feeds, seen));
}

fn with_version(mut frame: Vec<u8>, first: u8) -> Vec<u8> {
    frame[14] = first;
    frame
}
