// SPDX-License-Identifier: BSD-3-Clause
//! Filter: the first matching rule decides; if none matches, the packet is denied; packets to which
//! no list of rules applies pass. Rules count their decisions.

use std::fs;
use std::net::{Ipv4Addr, Ipv6Addr};

use dpdk::qsbr::{Qsbr, Replaceable};
use forwarders_common::rules::Strictness;

use super::alone::{Bench, ByEdge, CAME, EXECUTORS, SIZES, alone, assert_alike, mixed, run};
use super::frames::{Ip4, cut, ethernet, ip6, ip6_behind};
use crate::l3fwd_graph::nodes::{BURST, Filter};
use crate::l3fwd_graph::options::{Executor, Reading};
use crate::l3fwd_graph::rules::{IPV4, IPV6, ReadOptions, Tables, load};

alone!(Alone<'port, 'eal>:
    filter_left, filter_right => node filter: Filter<'port, 'eal> => Pass, Deny);

/// By destination port, and one rule on the bytes that follow 20 bytes of a header with options.
const RULES4: &str = "\
    @0.0.0.0/0 198.18.0.0/16 0 : 65535 7 : 7 17/0xff\n\
    R0.0.0.0/0 198.18.0.0/16 0 : 65535 7 : 9 17/0xff 0\n\
    @0.0.0.0/0 198.18.0.0/16 0x0101 : 0x0101 0x0101 : 0x0101 0/0\n";
const RULES6: &str = "\
    R::/0 2001:db8:1::/48 0 : 65535 0 : 65535 0/0 0\n\
    @::/0 2001:db8:3::/48 0 : 65535 2000 : 2000 17/0xff\n\
    R::/0 2001:db8:3::/48 0 : 65535 0 : 65535 0/0 0\n\
    @::/0 2001:db8::/32 0 : 65535 0 : 65535 0/0\n";

/// As in ClassBench's filter sets: new connections to this network are denied. Its place is after
/// the rules above.
const FLAGS4: &str = "\
    @0.0.0.0/0 198.20.0.0/16 0 : 65535 0 : 65535 6/0xff 0x0200/0x1200\n\
    R0.0.0.0/0 198.20.0.0/16 0 : 65535 0 : 65535 0/0 0 0x0000/0x0000\n";
const FLAGS6: &str = "@::/0 2001:db9::/32 0 : 65535 0 : 65535 6/0xff 0x0200/0x1200\n";

/// What decides on a packet.
#[derive(Clone, Copy, PartialEq, Debug)]
enum By {
    /// The family's rule with this index.
    Ip4(usize),
    Ip6(usize),
    /// No rule matches.
    Nothing4,
    Nothing6,
    /// No list of rules applies to it.
    Nobody,
}

/// The rules in use.
#[derive(Clone, Copy, Debug)]
struct Given {
    ip4: bool,
    ip6: bool,
    reading: Reading,
    /// True if there are rules on flags too.
    flags: bool,
}

impl By {
    /// The decision if only these rules are in use.
    fn given(self, given: Given) -> Self {
        match self {
            Self::Ip4(_) | Self::Nothing4 if !given.ip4 => Self::Nobody,
            Self::Ip6(_) | Self::Nothing6 if !given.ip6 => Self::Nobody,
            by => by,
        }
    }

    fn edge(self) -> &'static str {
        match self {
            Self::Ip4(1 | 4) | Self::Ip6(0 | 2) | Self::Nobody => "Pass",
            _ => "Deny",
        }
    }
}

/// Decisions on frames whose ports do not depend on the options.
fn frames() -> Vec<(Vec<u8>, By)> {
    let to = |port| Ip4::to([198, 18, 0, 1]).ports(1000, port);
    let tcp = Ip4 { protocol: 6, ..to(7) };
    vec![
        (to(6).frame(), By::Nothing4),
        (to(7).frame(), By::Ip4(0)),
        (to(8).frame(), By::Ip4(1)),
        (to(9).frame(), By::Ip4(1)),
        (to(10).frame(), By::Nothing4),
        (tcp.frame(), By::Nothing4),
        (Ip4::to([198, 19, 0, 1]).ports(1000, 8).frame(), By::Nothing4),
        // Time to live and version are not checked.
        (to(8).ttl(0).frame(), By::Ip4(1)),
        (to(8).version(6).frame(), By::Ip4(1)),
        // A first fragment has ports.
        (to(7).fragment(0x2000).frame(), By::Ip4(0)),
        // With the ports, and without any byte of them.
        (cut(to(8).frame(), 38), By::Ip4(1)),
        (cut(to(8).frame(), 37), By::Nothing4),
        (cut(to(8).frame(), 14), By::Nothing4),
        // Too short for any header: left to the next node.
        (cut(to(8).frame(), 13), By::Nobody),
        (Vec::new(), By::Nobody),
        (ethernet(0x0806, &[0; 46]), By::Nobody),
        (ip6("2001:db8:1::1", 64), By::Ip6(0)),
        (ip6("2001:db8:2::1", 0), By::Ip6(3)),
        (ip6("2001:db8:3::1", 64), By::Ip6(1)),
        (ip6("2001:db9::1", 64), By::Nothing6),
        (cut(ip6("2001:db8:1::1", 64), 58), By::Ip6(0)),
        (cut(ip6("2001:db8:1::1", 64), 57), By::Nothing6),
    ]
}

/// Decisions on frames whose ports are elsewhere, or missing.
fn elsewhere(reading: Reading) -> Vec<(Vec<u8>, By)> {
    let to = |port| Ip4::to([198, 18, 0, 1]).ports(1000, port);
    let nops = |port| to(port).options(&[[1; 4]]);
    let longest = |port| to(port).options(&[[1; 4]; 10]);
    let behind = |next, headers: &[u8]| ip6_behind("2001:db8:3::1", 64, next, headers);
    // A header whose first byte is the next header's number, a TCP fragment that begins within its
    // header, one that is truncated.
    let (options, first, later) =
        ([17, 0, 1, 4, 0, 0, 0, 0], [17, 0, 0, 1, 0, 0, 0, 1], [17, 0, 0, 9, 0, 0, 0, 1]);
    let tcp = Ip4 { protocol: 6, ..to(8).fragment(1) };
    let frames = [
        nops(7).frame(),
        nops(8).frame(),
        longest(7).frame(),
        longest(9).frame(),
        cut(longest(8).frame(), 77),
        to(8).options(&[[0, 0, 0, 8]]).frame(),
        to(7).fragment(0x2003).frame(),
        nops(7).fragment(0x2003).frame(),
        Ip4::to([198, 19, 0, 1]).fragment(3).frame(),
        tcp.frame(),
        behind(60, &options),
        behind(44, &first),
        behind(44, &later),
        cut(behind(60, &options), 65),
    ];
    use By::{Ip4 as V4, Ip6 as V6, Nothing4, Nothing6};
    let decided = match reading {
        Reading::Everywhere => [
            V4(0),
            V4(1),
            V4(0),
            V4(1),
            Nothing4,
            V4(1),
            // A rule that passes all ports passes fragments.
            V4(1),
            V4(1),
            Nothing4,
            Nothing4,
            V6(1),
            V6(1),
            V6(2),
            Nothing6,
        ],
        Reading::NoFragments => [
            V4(0),
            V4(1),
            V4(0),
            V4(1),
            Nothing4,
            V4(1),
            Nothing4,
            Nothing4,
            Nothing4,
            Nothing4,
            V6(1),
            V6(1),
            Nothing6,
            Nothing6,
        ],
        // Options are read as ports.
        Reading::AsC => [
            V4(2),
            V4(2),
            V4(2),
            V4(2),
            V4(2),
            V4(1),
            V4(0),
            V4(2),
            Nothing4,
            Nothing4,
            V6(2),
            V6(2),
            V6(2),
            V6(2),
        ],
    };
    frames.into_iter().zip(decided).collect()
}

/// Decisions on TCP frames with rules on flags.
fn flagged() -> Vec<(Vec<u8>, By)> {
    let tcp = |flags, options: &[[u8; 4]]| {
        let ip = Ip4 { protocol: 6, ..Ip4::to([198, 20, 0, 1]).options(options) };
        let mut frame = ip.frame();
        let at = 34 + 4 * options.len() + 13;
        frame.resize(frame.len().max(at + 3), 0);
        frame[at] = flags;
        frame
    };
    let (syn, ack) = (0x02, 0x10);
    let mut udp = tcp(syn, &[]);
    udp[23] = 17;
    vec![
        (tcp(syn, &[]), By::Ip4(3)),
        (tcp(syn | 0xc1, &[]), By::Ip4(3)),
        (tcp(syn | ack, &[]), By::Ip4(4)),
        (tcp(ack, &[]), By::Ip4(4)),
        (tcp(syn, &[[1; 4]; 3]), By::Ip4(3)),
        (tcp(ack, &[[1; 4]; 3]), By::Ip4(4)),
        (cut(tcp(syn, &[]), 49), By::Nothing4),
        (udp.clone(), By::Ip4(4)),
        (cut(udp, 40), By::Ip4(4)),
        (Ip4 { protocol: 6, ..Ip4::to([198, 20, 0, 1]).fragment(3) }.frame(), By::Ip4(4)),
    ]
}

pub fn alone(bench: Bench<'_>) {
    let given = Given { ip4: true, ip6: true, reading: Reading::Everywhere, flags: true };
    let mut all = elsewhere(given.reading);
    all.extend(frames());
    all.extend(flagged());
    for executor in EXECUTORS {
        all.iter().for_each(|frame| decide(bench, executor, given, &[frame]));
        decide(bench, executor, given, &mixed(&all).take(2 * BURST).collect::<Vec<_>>());
    }
    // Like l3fwd, which does not check flags, and takes the first word of options for ports.
    let as_c = Given { reading: Reading::AsC, ..given };
    for (frame, by) in flagged() {
        let by = if by == By::Ip4(4) && frame[23] == 6 { By::Ip4(3) } else { by };
        if frame[14] == 0x45 && by != By::Nothing4 {
            decide(bench, Executor::Dpdk, as_c, &[&(frame, by)]);
        }
    }
    for reading in [Reading::Everywhere, Reading::NoFragments, Reading::AsC] {
        let mut frames = elsewhere(reading);
        let given = Given { ip4: true, ip6: true, reading, flags: false };
        for frame in &frames {
            decide(bench, Executor::Dpdk, given, &[frame]);
        }
        frames.extend(self::frames());
        for executor in EXECUTORS {
            decide(bench, executor, given, &mixed(&frames).take(2 * BURST).collect::<Vec<_>>());
        }
    }
    let frames = frames();
    let one = |by| frames.iter().find(|(_, decided)| *decided == by).unwrap();
    for executor in EXECUTORS {
        for (ip4, ip6) in [(true, false), (false, true), (true, true)] {
            let given = Given { ip4, ip6, reading: Reading::default(), flags: false };
            for frame in &frames {
                decide(bench, executor, given, &[frame]);
            }
            for size in SIZES {
                decide(bench, executor, given, &mixed(&frames).take(size).collect::<Vec<_>>());
                // All packets of one family are inputs of its list.
                for by in [By::Ip4(1), By::Ip4(0), By::Ip6(0), By::Ip6(3)] {
                    decide(bench, executor, given, &vec![one(by); size]);
                }
                // All equal except the last, which has the highest index.
                if let Some(others) = size.checked_sub(1) {
                    for [by, last] in [[By::Ip4(1), By::Ip4(0)], [By::Ip4(0), By::Ip4(1)]] {
                        let mut batch = vec![one(by); others];
                        batch.push(one(last));
                        decide(bench, executor, given, &batch);
                    }
                }
            }
        }
    }
    assert_eq!(SIZES.iter().max(), Some(&(2 * BURST)), "no batch is longer than a poll's");
}

/// Sends frames through a filter with new rules. Each one leaves on its edge, passed ones in order,
/// and is counted once.
fn decide(bench: Bench<'_>, executor: Executor, given: Given, frames: &[&(Vec<u8>, By)]) {
    let lcores = [bench.eal.main_lcore()];
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, rules: &str| {
        let path = folder.path().join(name);
        fs::write(&path, rules).unwrap();
        path
    };
    let qsbr = Qsbr::new(2);
    let read = ReadOptions { ports: 1, reading: given.reading, strictness: Strictness::AsL3fwd };
    let more =
        |rules: &str, flags| if given.flags { format!("{rules}{flags}") } else { rules.into() };
    let (rules4, rules6): (String, String) = (more(RULES4, FLAGS4), more(RULES6, FLAGS6));
    let ip4 = || load::<Ipv4Addr, IPV4>(bench.eal, &file("4", &rules4), read, &lcores, 0).unwrap();
    let ip6 = || load::<Ipv6Addr, IPV6>(bench.eal, &file("6", &rules6), read, &lcores, 0).unwrap();
    let tables = Tables {
        ipv4: given.ip4.then(|| Replaceable::new(&qsbr, ip4())),
        ipv6: given.ip6.then(|| Replaceable::new(&qsbr, ip6())),
    };
    let (mut packets, mut expected) = (Vec::new(), ByEdge::new());
    for (frame, by) in frames {
        packets.push(bench.packet(frame, CAME));
        let edge = by.given(given).edge();
        expected.entry(edge).or_default().push((frame.clone(), Some(CAME)));
    }
    let node = Filter::new(&tables, qsbr.register().unwrap(), 0);
    let (mut seen, stats) =
        run(bench.eal, executor, packets, |feeds, seen| Alone::of(node, feeds, seen));
    let context = format!("{executor:?}, {given:?}, {} frames", frames.len());
    for all in [&mut seen, &mut expected] {
        if let Some(denied) = all.get_mut("Deny") {
            denied.sort();
        }
    }
    assert_alike(&seen, &expected, &context);
    assert_eq!(stats.dropped, 0);

    let decided = |by| frames.iter().filter(|(_, decided)| *decided == by).count() as u64;
    let mut reader = qsbr.register().unwrap();
    let online = reader.online();
    if let Some(table) = &tables.ipv4 {
        let rules = table.read(&online);
        for rule in 0..rules.rules.len() {
            assert_eq!(rules.hits(rule), decided(By::Ip4(rule)), "rule {rule}: {context}");
        }
        assert_eq!(rules.unmatched(), decided(By::Nothing4), "{context}");
    }
    if let Some(table) = &tables.ipv6 {
        let rules = table.read(&online);
        for rule in 0..rules.rules.len() {
            assert_eq!(rules.hits(rule), decided(By::Ip6(rule)), "rule {rule}: {context}");
        }
        assert_eq!(rules.unmatched(), decided(By::Nothing6), "{context}");
    }
}
