// SPDX-License-Identifier: BSD-3-Clause
//! Rewriting: sets the addresses of the output port and decrements the time to live; a checksum of
//! IPv4 that was correct stays correct.

use packet::checksum::checksum;

use super::alone::{Bench, Case, alone, check};
use super::frames::{Ip4, cut, ip6};
use crate::ethernet::{Addresses, addresses};
use crate::l3fwd_graph::nodes::{Ip4Rewrite, Ip6Rewrite, addresses_by_port};

alone!(Alone4<'port>:
    rewrite4_left, rewrite4_right => each rewrite4: Ip4Rewrite => Send, Drop);
alone!(Alone6<'port>:
    rewrite6_left, rewrite6_right => each rewrite6: Ip6Rewrite => Send, Drop);

/// The enabled ports, and the addresses for packets that leave on them.
fn ports() -> [(u16, Addresses); 3] {
    [0, 1, 31].map(|port| (port, addresses([2, 0, 0, 0, 0, port as u8], [6, 5, 4, 3, 2, 1])))
}

/// A frame that leaves on an enabled port: `change` makes the rest of the expected frame.
fn sent<'eal>(what: &'static str, frame: Vec<u8>, port: u16, change: fn(&mut [u8])) -> Case<'eal> {
    let mut after = frame.clone();
    let (_, written) = ports().into_iter().find(|(enabled, _)| *enabled == port).unwrap();
    after[..12].copy_from_slice(&written);
    change(&mut after);
    let packet = frame.clone();
    Case::new(what, frame, "Send")
        .packet(move |bench| bench.packet(&packet, port))
        .port(Some(port))
        .bytes(after)
}

/// Frames that no port can send, and that do not change.
fn unsent<'eal>(frame: &[u8]) -> Vec<Case<'eal>> {
    let with = |what, frame: &[u8], port: u16, number| {
        let packet = frame.to_vec();
        let made = move |bench: Bench<'eal>| bench.packet(&packet, port);
        Case::new(what, frame.to_vec(), "Drop").packet(made).port(number)
    };
    let (runt, shared) = (&frame[..frame.len() - 1], frame.to_vec());
    vec![
        with("a port that is not enabled", frame, 2, Some(2)),
        with("a port that cannot be", frame, 32, Some(32)),
        with("no port", frame, u16::MAX, None),
        with("a runt", runt, 1, Some(1)),
        with("nothing", &[], 1, Some(1)),
        Case::new("somebody else's bytes", shared.clone(), "Drop")
            .packet(move |bench| {
                let owner = bench.packet(&shared, 0).share();
                let mut clone = owner.clone_into(&bench.pool).unwrap();
                clone.set_port(1);
                clone
            })
            .port(Some(1)),
    ]
}

pub fn of_ipv4(bench: Bench<'_>) {
    let one_hop = |after: &mut [u8]| {
        after[22] -= 1;
        after[24..26].fill(0);
        let header = usize::from(after[14] & 0xf) * 4;
        let sum = checksum(&after[14..14 + header]);
        after[24..26].copy_from_slice(&sum.to_be_bytes());
    };
    let to = |host| Ip4::to([198, 18, 0, host]);
    let mut cases = vec![
        sent("by the first port", to(1).frame(), 0, one_hop),
        sent("by the last port", to(2).frame(), 31, one_hop),
        sent("the least time to live", to(3).ttl(2).frame(), 1, one_hop),
        sent("the longest time to live", to(4).ttl(255).frame(), 1, one_hop),
        sent("options", to(5).options(&[[7, 7, 4, 0], [0; 4]]).frame(), 1, one_hop),
        sent("the longest header", to(6).options(&[[1; 4]; 10]).frame(), 1, one_hop),
        sent("a header and no more", cut(to(7).frame(), 34), 1, one_hop),
        sent("another version", to(8).version(6).frame(), 1, one_hop),
        sent("a wrong checksum, as wrong as before", wrong(to(9).frame()), 1, |after| {
            after[22] -= 1;
            after[24..26].copy_from_slice(&[0x13, 0x34]);
        }),
    ];
    cases.extend(unsent(&cut(to(1).frame(), 34)));
    let table = addresses_by_port(&ports().into());
    check(bench, &cases, |feeds, seen| Alone4::of(Ip4Rewrite(table), feeds, seen));
}

fn wrong(mut frame: Vec<u8>) -> Vec<u8> {
    frame[24..26].copy_from_slice(&[0x12, 0x34]);
    frame
}

pub fn of_ipv6(bench: Bench<'_>) {
    let one_hop = |after: &mut [u8]| after[21] -= 1;
    let mut cases = vec![
        sent("by the first port", ip6("2001:db8::1", 64), 0, one_hop),
        sent("by the last port", ip6("2001:db8::2", 64), 31, one_hop),
        sent("the least limit", ip6("2001:db8::3", 2), 1, one_hop),
        sent("the highest limit", ip6("2001:db8::4", 255), 1, one_hop),
        sent("a header and no more", cut(ip6("2001:db8::5", 64), 54), 1, one_hop),
    ];
    cases.extend(unsent(&cut(ip6("2001:db8::6", 64), 54)));
    let table = addresses_by_port(&ports().into());
    check(bench, &cases, |feeds, seen| Alone6::of(Ip6Rewrite(table), feeds, seen));
}
