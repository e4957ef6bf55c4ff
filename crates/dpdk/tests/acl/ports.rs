// SPDX-License-Identifier: BSD-3-Clause
//! Rules on ports also apply after options and extension headers, and no packet passes because its
//! ports are missing.

use std::num::NonZeroU32;

use dpdk::acl::{
    Acl, AclConfig, Built, ClassifyError, FiveTuple, IPV4_5TUPLE, IPV4_5TUPLE_FLAGS, IPV6_5TUPLE,
    IPV6_5TUPLE_FLAGS, InputError, Layout, Match, Rule, TCP_FLAGS,
};
use dpdk::{Burst, Eal, Mempool, PoolConfig};

const PASS: NonZeroU32 = NonZeroU32::MIN;
const DENY: NonZeroU32 = PASS.saturating_add(1);
const ETHERNET: usize = 14;
/// The denied port.
const PORT: u16 = 7;

/// Passes everything except packets to the port.
fn list<'eal, const FIELDS: usize>(
    eal: &'eal Eal,
    name: &str,
    layout: &Layout<FIELDS>,
) -> Acl<'eal, Built, FIELDS> {
    let mut acl = Acl::new(eal, layout, &AclConfig::named(name)).unwrap();
    let mut fields = [Match::Any; FIELDS];
    acl.add(&Rule::new(PASS, 1, fields)).unwrap();
    fields[FIELDS - 1] = Match::Range { low: PORT.into(), high: PORT.into() };
    acl.add(&Rule::new(DENY, 2, fields)).unwrap();
    acl.build().unwrap()
}

fn ipv4(words: u8, fragment: u16, port: u16) -> Vec<u8> {
    let mut packet = vec![1; usize::from(words) * 4];
    packet[0] = 0x40 | words;
    packet[6..8].copy_from_slice(&fragment.to_be_bytes());
    packet[9] = 6;
    [packet, [0x30, 0x39].into(), port.to_be_bytes().into()].concat()
}

fn ipv6(headers: &[&[u8]], port: u16) -> Vec<u8> {
    let mut packet = vec![0; 40];
    packet[0] = 0x60;
    // The first header's number; each header contains the number of the next one.
    packet[6] = if headers.is_empty() { 6 } else { 60 };
    [packet, headers.concat(), [0x30, 0x39].into(), port.to_be_bytes().into()].concat()
}

pub fn found_wherever_they_are(eal: &Eal) {
    let config = PoolConfig { count: 63, cache: 0, ..PoolConfig::named("ports") };
    let pool = Mempool::packet_pool(eal, &config).unwrap();
    let (pass, deny) = (Some(PASS), Some(DENY));
    let late = 0x2003;
    judge(
        &pool,
        list(eal, "ports 4", &IPV4_5TUPLE),
        &[
            (ipv4(5, 0, PORT), deny),
            (ipv4(5, 0x4000, 8), pass),
            (ipv4(6, 0, PORT), deny),
            (ipv4(15, 0, PORT), deny),
            (ipv4(15, 0, 8), pass),
            (ipv4(5, 0x2000, PORT), deny),
            (ipv4(5, late, PORT), None),
            (ipv4(9, late, 8), None),
            (ipv4(5, 1, 8), None),
            (vec![0x44; 40], None),
        ],
    );
    let options: &[u8] = &[6, 1, 1, 2, 0, 0, 0, 0, 1, 4, 0, 0, 0, 0, 0, 0];
    let (then_fragment, first, later): (&[u8], &[u8], &[u8]) =
        (&[44, 0, 0, 0, 0, 0, 0, 0], &[6, 0, 0, 1, 0, 0, 0, 1], &[6, 0, 0, 9, 0, 0, 0, 1]);
    judge(
        &pool,
        list(eal, "ports 6", &IPV6_5TUPLE),
        &[
            (ipv6(&[], PORT), deny),
            (ipv6(&[], 8), pass),
            (ipv6(&[options], PORT), deny),
            (ipv6(&[options], 8), pass),
            (ipv6(&[then_fragment, first], PORT), deny),
            (ipv6(&[then_fragment, later], 8), None),
        ],
    );
    flags_are_found(eal, &pool);
    as_l3fwd_does(eal);
    fragments_can_be_asked_about(eal);
}

/// With all functions for passing packets, and more than one group of them.
fn judge<const FIELDS: usize>(
    pool: &Mempool<'_>,
    acl: Acl<'_, Built, FIELDS>,
    packets: &[(Vec<u8>, Option<NonZeroU32>)],
) {
    let mut burst = Burst::<32>::new();
    let many: Vec<_> = packets.iter().cycle().take(200).collect();
    for (packet, _) in &many[..32] {
        let mut mbuf = pool.alloc().unwrap();
        mbuf.append(ETHERNET + packet.len()).unwrap()[ETHERNET..].copy_from_slice(packet);
        assert!(burst.push(mbuf).is_ok());
    }
    let expected: Vec<_> = many.iter().map(|(_, verdict)| [*verdict]).collect();
    let mut verdicts = [[deny_all()]; 32];
    let none = expected[..32].iter().filter(|verdict| **verdict == [None]).count();
    assert_eq!(acl.classify_burst(&burst, ETHERNET, &mut verdicts), none);
    assert_eq!(verdicts[..], expected[..32]);
    burst.clear();

    let slices: Vec<_> = many.iter().map(|(packet, _)| packet.as_slice()).collect();
    let mut verdicts = vec![[deny_all()]; slices.len()];
    acl.classify_slices(&slices, &mut verdicts).unwrap();
    assert_eq!(verdicts, expected);
}

/// No list here has this verdict.
fn deny_all() -> Option<NonZeroU32> {
    Some(NonZeroU32::MAX)
}

const SYN: u8 = 0x02;
const ACK: u8 = 0x10;

/// Passes everything except TCP with SYN and without ACK.
fn no_new_connections<'eal, const FIELDS: usize>(
    eal: &'eal Eal,
    name: &str,
    layout: &Layout<FIELDS>,
) -> Acl<'eal, Built, FIELDS> {
    let mut acl = Acl::new(eal, layout, &AclConfig::named(name)).unwrap();
    let mut fields = [Match::Any; FIELDS];
    acl.add(&Rule::new(PASS, 1, fields)).unwrap();
    let at = |flags: u8| u64::from(flags) << TCP_FLAGS.trailing_zeros();
    fields[0] = Match::Bits { value: 6, mask: 0xff };
    fields[FIELDS - 1] = Match::Bits { value: at(SYN), mask: at(SYN | ACK) };
    acl.add(&Rule::new(DENY, 2, fields)).unwrap();
    acl.build().unwrap()
}

/// The rest of a TCP header with these flags.
fn flagged(packet: Vec<u8>, flags: u8) -> Vec<u8> {
    [packet, vec![0xff; 8], vec![0x50, flags, 0xff, 0xff]].concat()
}

fn flags_are_found(eal: &Eal, pool: &Mempool<'_>) {
    let (pass, deny) = (Some(PASS), Some(DENY));
    let udp = |mut packet: Vec<u8>, protocol: usize| {
        packet[protocol] = 17;
        packet
    };
    let acl = no_new_connections(eal, "flags 4", &IPV4_5TUPLE_FLAGS);
    let mut verdicts = [[None]];
    let cut = acl.classify_slices(&[&flagged(ipv4(5, 0, 8), SYN)[..35]], &mut verdicts);
    assert_eq!(cut, Err(ClassifyError::Short { index: 0, len: 35, needed: 36 }));
    judge(
        pool,
        acl,
        &[
            (flagged(ipv4(5, 0, 8), SYN), deny),
            (flagged(ipv4(5, 0, 8), SYN | 0xec), deny),
            (flagged(ipv4(5, 0, 8), SYN | ACK), pass),
            (flagged(ipv4(5, 0, 8), ACK), pass),
            (flagged(ipv4(7, 0, 8), SYN), deny),
            (flagged(ipv4(15, 0, 8), ACK), pass),
            (flagged(ipv4(5, 0x2000, 8), SYN), deny),
            (flagged(ipv4(5, 0x2003, 8), SYN), None),
            // UDP has other bytes there, or ends before them.
            (udp(flagged(ipv4(5, 0, 8), SYN), 9), pass),
            (udp(flagged(ipv4(6, 0, 8), SYN), 9), pass),
            (udp(ipv4(5, 0, 8), 9), pass),
            (udp(ipv4(6, 0, 8), 9), pass),
        ],
    );
    let options: &[u8] = &[6, 1, 1, 2, 0, 0, 0, 0, 1, 4, 0, 0, 0, 0, 0, 0];
    judge(
        pool,
        no_new_connections(eal, "flags 6", &IPV6_5TUPLE_FLAGS),
        &[
            (flagged(ipv6(&[], 8), SYN), deny),
            (flagged(ipv6(&[], 8), SYN | ACK), pass),
            (flagged(ipv6(&[options], 8), SYN), deny),
            (flagged(ipv6(&[options], 8), ACK), pass),
            (udp(ipv6(&[], 8), 6), pass),
            (udp(flagged(ipv6(&[], 8), SYN), 6), pass),
        ],
    );
    // Without rules on flags, packets may end after the ports.
    let mut acl =
        Acl::new(eal, &IPV4_5TUPLE_FLAGS.without_flags(), &AclConfig::named("no flags")).unwrap();
    acl.add(&Rule::new(PASS, 1, [Match::Any; 6])).unwrap();
    judge(pool, acl.build().unwrap(), &[(ipv4(5, 0, 8), pass), (ipv4(9, 0, 8), pass)]);
}

/// This layout takes the bytes after the first 20 for ports.
fn as_l3fwd_does(eal: &Eal) {
    let acl = list(eal, "fixed", &IPV4_5TUPLE.at_fixed_places());
    let mut verdicts = [[None]; 3];
    let packets = [ipv4(6, 0, PORT), ipv4(5, 3, PORT), vec![0; 24]];
    acl.classify_slices(&packets, &mut verdicts).unwrap();
    assert_eq!(verdicts, [[Some(PASS)], [Some(DENY)], [Some(PASS)]]);
}

fn fragments_can_be_asked_about(eal: &Eal) {
    let acl = list(eal, "whole", &IPV4_5TUPLE);
    let mut inputs = acl.inputs::<4>();
    let (moved, later) = (ipv4(6, 0, PORT), ipv4(5, 3, PORT));
    let Err(InputError::Moved(bytes)) = inputs.push(&moved) else { panic!("in place") };
    assert_eq!(FiveTuple::of_ipv4(&moved), Some(FiveTuple::Moved(bytes)));
    let mut verdict = [[None]];
    acl.classify_slices(&[bytes], &mut verdict).unwrap();
    assert_eq!(verdict, [[Some(DENY)]]);
    // Including a packet that ends with a header.
    for later in [&later[..], &later[..20], &later[..21]] {
        let Err(InputError::Fragment(bytes)) = inputs.push(later) else { panic!("has ports") };
        acl.classify_slices(&[bytes], &mut verdict).unwrap();
        assert_eq!(verdict, [[Some(PASS)]], "by its addresses, and ports of 0");
    }
    assert_eq!(inputs.push(&[0x44; 40]), Err(InputError::Malformed));
    let whole = ipv4(5, 0, 8);
    assert_eq!(inputs.push(&whole[..23]), Err(InputError::Short { len: 23, needed: 24 }));
    assert!(inputs.is_empty());
}
