// SPDX-License-Identifier: BSD-3-Clause
//! Questions and answers, byte by byte, and what becomes of them.

use std::net::Ipv6Addr;
use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::message::{self, Heard, Message};
use super::*;

/// The gateway's address in these tests.
const THEIRS: MacAddr = MacAddr([2, 0, 0, 0, 0, 0x99]);

/// An interface of device "d" with the address 02:00:00:00:00:01 and these addresses, each before its gateway.
pub fn interface(name: &str, port: usize, addresses: &[&str]) -> Interface {
    let address = |text: &&str| {
        let (ip, gateway) = text.split_once(' ').unwrap();
        Address {
            name: ip.to_owned(),
            ip: ip.parse().unwrap(),
            gateway: gateway.parse().unwrap(),
            gateway_mac: None,
        }
    };
    Interface {
        device: "d".to_owned(),
        name: name.to_owned(),
        port,
        mac: MacAddr([2, 0, 0, 0, 0, 1]),
        tags: Vec::new(),
        addresses: addresses.iter().map(address).collect(),
    }
}

/// The far end, which has the other address of the link.
fn far(tags: &[Tag]) -> Interface {
    Interface { mac: THEIRS, tags: tags.to_vec(), ..interface("far", 0, &[]) }
}

/// The frame by which 02:00:00:00:00:99 says that it has an address.
pub fn told(ip: &str) -> Vec<u8> {
    let ip: IpAddr = ip.parse().unwrap();
    message::answer(&far(&[]), ip, ip, MacAddr([2, 0, 0, 0, 0, 1])).unwrap()
}

fn asks(from: &str, target: &str, tags: &[Tag]) -> Vec<u8> {
    message::question(&far(tags), from.parse().unwrap(), target.parse().unwrap()).unwrap()
}

/// A frame of neighbor discovery without tags, with a right checksum again.
fn checked(mut frame: Vec<u8>) -> Vec<u8> {
    let len = frame.len() - 54;
    frame[18..20].copy_from_slice(&(len as u16).to_be_bytes());
    frame[56..58].copy_from_slice(&[0, 0]);
    let sum = packet::checksum::sum(&frame[22..]) + 58 + len as u64;
    frame[56..58].copy_from_slice(&(!packet::checksum::fold(sum)).to_be_bytes());
    frame
}

/// The question of a node that has no address yet, whether somebody else has the one that it wants.
fn asks_without_address(target: &str) -> Vec<u8> {
    let mut frame = asks("::", target, &[]);
    // Without the option.
    frame.truncate(frame.len() - 8);
    checked(frame)
}

fn started(interfaces: &[Interface], now: Instant) -> Resolver {
    let mut resolver = Resolver::new(interfaces, 2, now);
    resolver.start(now);
    resolver
}

#[test]
fn an_arp_request_is_answered_as_rfc_826_says() {
    let now = Instant::now();
    let mut resolver = started(&[interface("e", 0, &["10.0.0.1 10.0.0.2"])], now);
    let request = asks("10.0.0.2", "10.0.0.1", &[]);
    #[rustfmt::skip]
    let wanted = [
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 0x99, 8, 6,
        0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 0x99, 10, 0, 0, 2, 0, 0, 0, 0, 0, 0, 10, 0, 0, 1,
    ];
    assert_eq!((&request[..42], request.len()), (&wanted[..], 60));
    let answer = resolver.hear(0, &request, now).unwrap();
    #[rustfmt::skip]
    let wanted = [
        2, 0, 0, 0, 0, 0x99, 2, 0, 0, 0, 0, 1, 8, 6,
        0, 1, 8, 0, 6, 4, 0, 2, 2, 0, 0, 0, 0, 1, 10, 0, 0, 1, 2, 0, 0, 0, 0, 0x99, 10, 0, 0, 2,
    ];
    assert_eq!((&answer[..42], answer.len()), (&wanted[..], 60));
    assert!(answer[42..].iter().all(|byte| *byte == 0));
    // Somebody else's address, another port, a protocol that was stopped.
    assert_eq!(resolver.hear(0, &asks("10.0.0.2", "10.0.0.3", &[]), now), None);
    assert_eq!(resolver.hear(1, &request, now), None);
    resolver.stop();
    assert_eq!(resolver.hear(0, &request, now), None);
}

#[test]
fn a_solicitation_is_answered_as_rfc_4861_says() {
    let now = Instant::now();
    let mut resolver = started(&[interface("e", 0, &["2001:db8::ab:cdef 2001:db8::2"])], now);
    let question = asks("2001:db8::2", "2001:db8::ab:cdef", &[]);
    assert_eq!(question[..6], [0x33, 0x33, 0xff, 0xab, 0xcd, 0xef]);
    let group: Ipv6Addr = "ff02::1:ffab:cdef".parse().unwrap();
    assert_eq!(question[38..54], group.octets());
    let answer = resolver.hear(0, &question, now).unwrap();
    assert_eq!(answer.len(), 14 + 40 + 32);
    assert_eq!(answer[..14], [2, 0, 0, 0, 0, 0x99, 2, 0, 0, 0, 0, 1, 0x86, 0xdd]);
    assert_eq!(answer[14..22], [0x60, 0, 0, 0, 0, 32, 58, 255]);
    let (own, theirs): (Ipv6Addr, Ipv6Addr) =
        ("2001:db8::ab:cdef".parse().unwrap(), "2001:db8::2".parse().unwrap());
    assert_eq!((&answer[22..38], &answer[38..54]), (&own.octets()[..], &theirs.octets()[..]));
    // Type, code; then the flags "solicited" and "override".
    assert_eq!((&answer[54..56], &answer[58..62]), (&[136, 0][..], &[0x60, 0, 0, 0][..]));
    assert_eq!(answer[62..78], own.octets());
    assert_eq!(answer[78..], [2, 1, 2, 0, 0, 0, 0, 1]);
    let heard = Message::Answer { address: own.into(), mac: MacAddr([2, 0, 0, 0, 0, 1]) };
    assert_eq!(message::read(&answer), Some(Heard { ids: vec![], message: heard }), "checksum");
    // The link-local address is the interface's, too.
    let question = asks("fe80::99", "fe80::ff:fe00:1", &[]);
    assert_eq!(resolver.hear(0, &question, now).unwrap()[22..24], [0xfe, 0x80]);
    // Who has no address yet asks whether somebody has the one that it wants: all are told.
    let answer = resolver.hear(0, &asks_without_address("2001:db8::ab:cdef"), now).unwrap();
    assert_eq!(answer[..6], [0x33, 0x33, 0, 0, 0, 1]);
    let all: Ipv6Addr = "ff02::1".parse().unwrap();
    assert_eq!((&answer[38..54], answer[58]), (&all.octets()[..], 0x20));
}

#[test]
fn what_is_not_valid_is_not_heard() {
    let now = Instant::now();
    let own = interface("e", 0, &["2001:db8::1 2001:db8::2", "10.0.0.1 10.0.0.2"]);
    let mut resolver = started(&[own], now);
    let good = asks("2001:db8::2", "2001:db8::1", &[]);
    assert!(resolver.hear(0, &good, now).is_some());
    // Hop limit, code, checksum, target, the length of the option, the asker's Ethernet address.
    for (at, value) in [(21, 254), (55, 1), (56, good[56] ^ 1), (62, 0xff), (79, 0), (80, 1)] {
        let mut bad = good.clone();
        bad[at] = value;
        if !matches!(at, 55 | 56) {
            bad = checked(bad);
        }
        assert_eq!(resolver.hear(0, &bad, now), None, "byte {at}");
    }
    // From nobody with an option, from nobody to one node, from a group.
    let mut bad =
        [asks("::", "2001:db8::1", &[]), asks_without_address("2001:db8::1"), good.clone()];
    bad[1][38..54].copy_from_slice(&"2001:db8::1".parse::<Ipv6Addr>().unwrap().octets());
    bad[2][22..38].copy_from_slice(&"ff02::1".parse::<Ipv6Addr>().unwrap().octets());
    for bad in bad {
        assert_eq!(resolver.hear(0, &checked(bad), now), None);
    }
    // A group is told without being asked.
    let hop = Hop::Gateway { interface: 0, address: "2001:db8::2".parse().unwrap() };
    let mut other = started(&[interface("e", 0, &["2001:db8::1 2001:db8::2"])], now);
    let mut all = told("2001:db8::2");
    all[38..54].copy_from_slice(&"ff02::1".parse::<Ipv6Addr>().unwrap().octets());
    other.hear(0, &checked(all.clone()), now);
    assert_eq!(other.find(&hop), None);
    all[58] = 0x20;
    other.hear(0, &checked(all), now);
    assert_eq!(other.find(&hop), Some(THEIRS));
    let request = asks("10.0.0.2", "10.0.0.1", &[]);
    assert!(resolver.hear(0, &request, now).is_some());
    for (at, value) in [(15, 6), (21, 3), (22, 1)] {
        let mut bad = request.clone();
        bad[at] = value;
        assert_eq!(resolver.hear(0, &bad, now), None, "byte {at}");
    }
    // All of the solicitation, and of ARP all but the padding.
    for (frame, whole) in [(&good, good.len()), (&request, 42)] {
        for len in 0..frame.len() {
            let heard = resolver.hear(0, &frame[..len], now);
            assert_eq!(heard.is_some(), len >= whole, "{len} bytes");
        }
    }
}

#[test]
fn an_interface_lives_in_its_vlans() {
    let now = Instant::now();
    let tag = |id, tpid, priority| Tag { tpid, priority, id };
    let tags = [tag(7, 0x88a8, 5), tag(9, 0x8100, 0)];
    let tagged = Interface { tags: tags.to_vec(), ..interface("t", 0, &["10.0.0.1 10.0.0.2"]) };
    let plain =
        Interface { mac: MacAddr([2, 0, 0, 0, 0, 2]), ..interface("p", 0, &["10.0.0.1 10.0.0.2"]) };
    let mut resolver = started(&[tagged, plain], now);
    let answer = resolver.hear(0, &asks("10.0.0.2", "10.0.0.1", &tags), now).unwrap();
    assert_eq!(answer[6..12], [2, 0, 0, 0, 0, 1]);
    assert_eq!(answer[12..22], [0x88, 0xa8, 0xa0, 7, 0x81, 0, 0, 9, 8, 6]);
    let answer = resolver.hear(0, &asks("10.0.0.2", "10.0.0.1", &[]), now).unwrap();
    assert_eq!(answer[6..14], [2, 0, 0, 0, 0, 2, 8, 6]);
    // Another VLAN; only the outer tag; and types of tags that a driver has rewritten.
    let other = [tag(7, 0x88a8, 0), tag(10, 0x8100, 0)];
    assert_eq!(resolver.hear(0, &asks("10.0.0.2", "10.0.0.1", &other), now), None);
    assert_eq!(resolver.hear(0, &asks("10.0.0.2", "10.0.0.1", &tags[..1]), now), None);
    let rewritten = [tag(7, 0x8100, 0), tag(9, 0x8100, 0)];
    assert!(resolver.hear(0, &asks("10.0.0.2", "10.0.0.1", &rewritten), now).is_some());
}

#[test]
fn gateways_are_asked_for_until_they_are_known() {
    let now = Instant::now();
    let after = |seconds| now + Duration::from_secs(seconds);
    let mut fixed = interface("f", 1, &["10.0.1.1 10.0.1.2"]);
    fixed.addresses[0].gateway_mac = Some(THEIRS);
    let own =
        interface("e", 0, &["10.0.0.1 10.0.0.2", "10.0.0.3 10.0.0.2", "2001:db8::1 fe80::99"]);
    let mut resolver = Resolver::new(&[own, fixed], 2, now);
    let gateway = Hop::Gateway { interface: 0, address: "10.0.0.2".parse().unwrap() };
    assert!(resolver.questions(now).is_empty(), "before the start");
    resolver.start(now);
    let asked = resolver.questions(now);
    // One question for the gateway of two addresses; the link-local gateway is asked from such an address.
    assert_eq!(asked.len(), 2);
    assert_eq!(
        asked[0],
        (
            0,
            message::question(
                &interface("e", 0, &[]),
                "10.0.0.1".parse().unwrap(),
                "10.0.0.2".parse().unwrap()
            )
            .unwrap()
        )
    );
    assert_eq!((asked[1].0, &asked[1].1[22..24]), (0, &[0xfe, 0x80][..]));
    assert!(resolver.questions(after(0)).is_empty());
    assert_eq!(resolver.questions(after(1)).len(), 2);
    assert_eq!(resolver.find(&gateway), None);
    resolver.hear(0, &told("10.0.0.2"), after(1));
    assert_eq!(resolver.find(&gateway), Some(THEIRS));
    assert_eq!(resolver.questions(after(2)).len(), 1);
    // A known one is asked again after half a minute, and stays known.
    assert_eq!(resolver.questions(after(31)).len(), 2);
    assert_eq!(resolver.find(&gateway), Some(THEIRS));
    // What the gateway asks tells its address as well.
    resolver.hear(0, &asks("fe80::99", "2001:db8::1", &[]), after(31));
    let other = Hop::Gateway { interface: 0, address: "fe80::99".parse().unwrap() };
    assert_eq!(resolver.find(&other), Some(THEIRS));
    let third = Hop::Gateway { interface: 1, address: "10.0.1.2".parse().unwrap() };
    assert_eq!(resolver.find(&third), Some(THEIRS));
    // Its address is the configuration's, whatever others say.
    let mut another = told("10.0.1.2");
    for at in [6, 22] {
        another[at..at + 6].copy_from_slice(&[2, 0, 0, 0, 0, 0x77]);
    }
    resolver.hear(1, &another, after(31));
    assert_eq!(resolver.find(&third), Some(THEIRS));
    resolver.stop();
    assert_eq!((resolver.find(&gateway), resolver.find(&third)), (None, Some(THEIRS)));
}

#[test]
fn silent_gateways_keep_no_other_from_being_asked() {
    let now = Instant::now();
    let pairs: Vec<String> =
        (0..3000u32).map(|n| format!("10.1.{}.{} 10.2.{0}.{1}", n / 250, 1 + n % 250)).collect();
    let pairs: Vec<&str> = pairs.iter().map(String::as_str).collect();
    let mut resolver = started(&[interface("e", 0, &pairs)], now);
    let mut asked = std::collections::BTreeSet::new();
    for look in 0..500 {
        for (_, frame) in resolver.questions(now + Duration::from_millis(10 * look)) {
            asked.insert(frame[38..42].to_vec());
        }
    }
    assert_eq!(asked.len(), 3000);
}

#[test]
fn answers_are_bounded() {
    let now = Instant::now();
    let mut resolver = started(&[interface("e", 0, &["10.0.0.1 10.0.0.2"])], now);
    let request = asks("10.0.0.2", "10.0.0.1", &[]);
    let mut answers =
        |at: Instant| (0..5000).filter(|_| resolver.hear(0, &request, at).is_some()).count();
    assert_eq!(answers(now), 100);
    assert_eq!(answers(now + Duration::from_millis(10)), 10);
    assert_eq!(answers(now + Duration::from_secs(60)), 100);
}

#[test]
fn frames_are_handed_over_by_their_type() {
    let (mut ear, mut listener) = pair();
    let tags = [Tag { tpid: 0x9300, priority: 0, id: 1 }; MAX_TAGS];
    let good = [
        asks("10.0.0.2", "10.0.0.1", &[]),
        asks("2001:db8::2", "2001:db8::1", &tags),
        told("10.0.0.2"),
        told("2001:db8::2"),
    ];
    for frame in &good {
        assert!(ear.hears(frame, 0));
    }
    let too_many = [tags[0]; MAX_TAGS + 1];
    let mut echo = asks("2001:db8::2", "2001:db8::1", &[]);
    echo[54] = 128;
    for frame in [vec![], vec![0; 13], vec![0; 60], echo, asks("10.0.0.2", "10.0.0.1", &too_many)] {
        assert!(!ear.hears(&frame, 0));
    }
    let heard: Vec<Vec<u8>> = std::iter::from_fn(|| listener.take()).collect();
    assert_eq!(heard, good);
    // A flood fills the ring and goes no further.
    let flood = (0..100_000).filter(|_| ear.hears(&good[0], 0)).count();
    assert_eq!(flood, 100_000);
    let kept = std::iter::from_fn(|| listener.take()).count();
    assert!((1000..2000).contains(&kept), "{kept}");
}

#[test]
fn destinations_take_turns() {
    let mut spec = FrameSpec {
        headers: vec![packet::frame::Header::new(&headers::ETHERNET)],
        sizes: packet::size::Sizes::Fixed(64),
        payload: packet::payload::Payload::default(),
        signature: None,
    };
    let macs = [MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2])];
    spec.headers[0].set("dst", any_destination()).unwrap();
    for macs in [&macs[..1], &macs[..]] {
        set_destinations(&mut spec, macs);
        let mut writer = packet::writer::FrameWriter::new(&spec, 0).unwrap();
        let mut frames = vec![Vec::new(); 4];
        writer.write(&mut frames, 0, false);
        let found: Vec<&[u8]> = frames.iter().map(|frame| &frame[..6]).collect();
        let wanted: Vec<&[u8]> = macs.iter().cycle().take(4).map(|mac| &mac.0[..]).collect();
        assert_eq!(found, wanted);
    }
}

proptest! {
    #[test]
    fn no_frame_does_harm(
        mut frame in prop::collection::vec(any::<u8>(), 0..200),
        start in 0usize..6,
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
    ) {
        let tags = [Tag { tpid: 0x8100, priority: 0, id: 7 }; 2];
        let starts = [
            Vec::new(),
            asks("10.0.0.2", "10.0.0.1", &[]),
            asks("10.0.0.2", "10.0.0.1", &tags),
            asks("2001:db8::2", "2001:db8::1", &tags),
            told("2001:db8::2"),
            told("10.0.0.2"),
        ];
        frame.splice(..0, starts[start].iter().copied());
        for (at, value) in flips {
            if !frame.is_empty() {
                let at = at.index(frame.len());
                frame[at] = value;
            }
        }
        let now = Instant::now();
        let own = interface("e", 0, &["10.0.0.1 10.0.0.2", "2001:db8::1 2001:db8::2"]);
        let mut resolver = started(&[own], now);
        let answer = resolver.hear(0, &frame, now);
        // What is understood was handed over, and an answer is one itself.
        prop_assert!(message::read(&frame).is_none() || message::is_neighbor(&frame));
        if let Some(answer) = answer {
            let answered = matches!(message::read(&answer), Some(Heard { message: Message::Answer { .. }, .. }));
            prop_assert!(answered);
        }
    }
}
