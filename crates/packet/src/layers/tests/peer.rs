// SPDX-License-Identifier: BSD-3-Clause
//! Whatever the bytes, nothing is outside of them; and where etherparse reads a frame, both find the same.

use etherparse::{LinkExtSlice, NetSlice, SlicedPacket, TransportSlice};
use proptest::prelude::*;
use proptest::strategy::ValueTree;

use super::*;

/// Numbers that lead further than others.
fn byte() -> impl Strategy<Value = u8> {
    let known =
        [0u8, 1, 4, 5, 6, 8, 17, 43, 44, 47, 50, 51, 58, 59, 60, 0x20, 0x45, 0x46, 0x60, 0x81];
    prop_oneof![3 => prop::sample::select(known.to_vec()), 1 => any::<u8>()]
}

fn bytes(most: usize) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(byte(), 0..most)
}

/// Extension headers, the number of the first, and where in them the last has the next one's number.
fn chain() -> impl Strategy<Value = (u8, Vec<u8>)> {
    let number = prop::sample::select(vec![0u8, 43, 44, 51, 60]);
    prop::collection::vec((number, 0u8..3, any::<u8>(), any::<bool>()), 0..4).prop_map(|list| {
        let mut bytes = Vec::new();
        for (i, (number, len, fill, cut)) in list.iter().enumerate() {
            let next = list.get(i + 1).map_or(17, |(number, ..)| *number);
            let size = match number {
                44 => 8,
                51 => usize::from(len + 1) * 4 + 8,
                _ => usize::from(*len) * 8 + 8,
            };
            let mut header = vec![*fill; size];
            (header[0], header[1]) = (next, if *number == 51 { len + 1 } else { *len });
            if *number == 44 && !cut {
                header[2..4].fill(0);
            }
            bytes.extend(header);
        }
        (list.first().map_or(17, |(number, ..)| *number), bytes)
    })
}

/// Transport headers with a length that fits, and payload.
fn transport() -> impl Strategy<Value = (u8, Vec<u8>)> {
    (
        prop::sample::select(vec![1u8, 6, 17, 47, 58, 132]),
        bytes(60),
        0usize..12,
        prop::bool::weighted(0.9),
    )
        .prop_map(|(protocol, mut payload, words, honest)| {
            match protocol {
                6 if honest && payload.len() > 12 => payload[12] = (words as u8) << 4,
                17 if honest && payload.len() > 8 => {
                    let len = payload.len() as u16;
                    payload[4..6].copy_from_slice(&len.to_be_bytes());
                }
                _ => {}
            }
            (protocol, payload)
        })
}

/// Frames that are nearly right: then a few bytes are changed, and the end is cut.
fn frames() -> impl Strategy<Value = Vec<u8>> {
    let tags = prop::collection::vec(prop::sample::select(vec![0x8100u16, 0x88a8, 0x9100]), 0..4);
    let lies = prop::collection::vec((any::<prop::sample::Index>(), byte()), 0..3);
    (tags, any::<bool>(), chain(), transport(), 0u8..4, 0usize..30, lies, 0usize..200).prop_map(
        |(tags, six, (first, chain), (protocol, message), options, padding, lies, cut)| {
            let kind = if six { 0x86dd } else { 0x0800 };
            let kinds = tags.iter().chain([&kind]);
            let mut frame = vec![2; 12];
            for (i, kind) in kinds.enumerate() {
                if i > 0 {
                    frame.extend([0, 7]);
                }
                frame.extend(kind.to_be_bytes());
            }
            if six {
                let mut chain = chain;
                let number = if chain.is_empty() { protocol } else { first };
                // The last of the chain names the message.
                if let Some(last) = last_of(first, &chain) {
                    chain[last] = protocol;
                }
                frame.extend(v6(number, chain.len() + message.len()));
                frame.extend(chain);
            } else {
                let options = usize::from(options) * 4;
                let mut header = v4(protocol, 20 + options + message.len(), 0).to_vec();
                header[0] += (options / 4) as u8;
                header.resize(20 + options, 1);
                frame.extend(header);
            }
            frame.extend(message);
            frame.resize(frame.len() + padding, 0);
            for (at, value) in lies {
                let at = at.index(frame.len());
                frame[at] = value;
            }
            let len = frame.len();
            frame.truncate(if cut < 20 { len - cut.min(len) } else { len });
            frame
        },
    )
}

/// Where the last header of a chain begins.
fn last_of(mut number: u8, chain: &[u8]) -> Option<usize> {
    let (mut at, mut last) = (0, None);
    while at < chain.len() {
        last = Some(at);
        let len = usize::from(chain[at + 1]);
        let size = match number {
            44 => 8,
            51 => len * 4 + 8,
            _ => len * 8 + 8,
        };
        (number, at) = (chain[at], at + size);
    }
    last
}

/// Where a part of a frame is.
fn place(frame: &[u8], part: &[u8]) -> Range<usize> {
    let start = part.as_ptr() as usize - frame.as_ptr() as usize;
    start..start + part.len()
}

/// Compares with etherparse where both read a frame in the same way; returns whether that was so.
fn agree(frame: &[u8]) -> bool {
    let Ok(theirs) = SlicedPacket::from_ethernet(frame) else { return false };
    // It knows MACsec, at most three tags, and not the EtherType 0x9200.
    let macsec = |ext: &LinkExtSlice<'_>| matches!(ext, LinkExtSlice::Macsec(_));
    if theirs.link_exts.iter().any(macsec) || theirs.link_exts.is_full() {
        return false;
    }
    let ours = Layers::of(frame);
    let (payload, cut_apart) = match &theirs.net {
        Some(NetSlice::Ipv4(ip)) => {
            // It goes on behind an authentication header there.
            if ip.extensions().auth.is_some() {
                return false;
            }
            (ip.payload(), ip.is_payload_fragmented())
        }
        Some(NetSlice::Ipv6(ip)) => {
            // It takes a length of 0 for "to the end".
            if ip.header().payload_length() == 0 {
                return false;
            }
            // It does not read headers of mobility, HIP and Shim6, and takes them for the payload.
            if matches!(ip.payload().ip_number.0, 135 | 139 | 140) {
                return false;
            }
            (ip.payload(), ip.is_payload_fragmented())
        }
        _ => return false,
    };
    // A first fragment's transport header it does not read; UDP's length of 0 it takes for "to the end".
    let ours = match ours {
        Ok(ours) => ours,
        Err(
            Malformed::Short(Layer::Tcp | Layer::Udp | Layer::Icmp | Layer::Icmpv6)
            | Malformed::HeaderLen(Layer::Tcp),
        ) if cut_apart => return false,
        Err(Malformed::Len(Layer::Udp))
            if cut_apart || frame[place(frame, payload.payload)][4..6] == [0, 0] =>
        {
            return false;
        }
        Err(error) => panic!("{error}, but etherparse reads {frame:x?}: {theirs:?}"),
    };
    if ours.vlan_tags != theirs.link_exts.len() {
        return false;
    }
    // Behind a later fragment's header it reads on, in the middle of something.
    if ours.is_ipv6() && ours.fragment == Fragment::Later {
        return false;
    }
    let found = place(frame, payload.payload);
    assert_eq!((ours.protocol, ours.l4()), (Some(payload.ip_number.0), found.start), "{frame:x?}");
    assert_eq!(ours.fragment != Fragment::Whole, cut_apart, "{frame:x?}");
    let (header, rest) = match &theirs.transport {
        Some(TransportSlice::Udp(udp)) => (udp.header_slice().len(), udp.payload()),
        Some(TransportSlice::Tcp(tcp)) => (tcp.header_len(), tcp.payload()),
        // Their headers have as many bytes as the type has fields.
        Some(TransportSlice::Icmpv4(icmp)) if ours.is_ipv4() => (8, &icmp.slice()[8..]),
        Some(TransportSlice::Icmpv6(icmp)) if ours.is_ipv6() => (8, &icmp.slice()[8..]),
        _ if ours.fragment == Fragment::First => return true,
        _ => (0, payload.payload),
    };
    if ours.l4_len > 0 || header > 0 {
        assert_eq!((ours.l4_len, ours.payload()), (header, place(frame, rest)), "{frame:x?}");
    } else {
        assert_eq!(ours.payload(), found, "{frame:x?}");
    }
    true
}

/// All that can be done with any bytes; nothing is outside of them.
fn exercise(bytes: &[u8]) {
    for layers in
        [Layers::of(bytes), Layers::of_packet(bytes), Layers::of_first(bytes, bytes.len() + 40)]
    {
        let Ok(layers) = layers else { continue };
        assert!(layers.l4() + layers.l4_len <= bytes.len());
        assert!(layers.payload().start <= layers.payload().end);
        assert!(layers.end <= bytes.len() + 40);
        let right = layers.checksum_is_right(bytes);
        let mut filled = bytes.to_vec();
        assert_eq!(layers.fill_checksum(&mut filled).is_some(), right.is_some());
        assert!(right.is_none() || layers.checksum_is_right(&filled) == Some(true));
        let Some(Ok((_, inner))) = layers.inner(bytes) else { continue };
        assert!(inner.start >= layers.payload().start && inner.end <= layers.end);
        assert!(inner.payload().start <= inner.payload().end);
        assert!(inner.l4() + inner.l4_len <= bytes.len());
    }
}

#[test]
fn most_frames_are_read_by_both() {
    // Else there would be nothing to agree on.
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut same = 0;
    for _ in 0..2000 {
        let frame = frames().new_tree(&mut runner).unwrap().current();
        same += usize::from(agree(&frame));
    }
    assert!(same > 600, "{same} of 2000");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn both_find_the_same(frame in frames()) {
        agree(&frame);
        exercise(&frame);
    }

    #[test]
    fn nothing_is_outside_of_any_bytes(bytes in bytes(200)) {
        exercise(&bytes);
    }
}
