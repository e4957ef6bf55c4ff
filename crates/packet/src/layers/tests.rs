// SPDX-License-Identifier: BSD-3-Clause
//! The walker against frames worked out by hand, against what our own writer writes, and against etherparse.

mod peer;
mod written;

use super::*;

fn ethernet(ether_type: u16, behind: &[&[u8]]) -> Vec<u8> {
    [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2], &ether_type.to_be_bytes()[..], &behind.concat()]
        .concat()
}

/// An IPv4 header of 20 bytes.
fn v4(protocol: u8, len: usize, fragment: u16) -> [u8; 20] {
    let mut header = [0; 20];
    let (ip, _) = Ipv4::split_mut(first(&mut header, 0x45)).unwrap();
    ip.set_total_len(len as u16);
    ip.set_ttl(64);
    ip.set_protocol(protocol);
    assert!(ip.set_fragment(usize::from(fragment & 0x1fff) * 8, fragment & 0x2000 != 0));
    ip.fill_checksum();
    header
}

fn v6(next: u8, len: usize) -> [u8; 40] {
    let mut header = [0; 40];
    let (ip, _) = Ipv6::split_mut(first(&mut header, 0x60)).unwrap();
    ip.set_payload_len(len as u16);
    ip.set_next_header(next);
    header
}

fn first(header: &mut [u8], byte: u8) -> &mut [u8] {
    header[0] = byte;
    header
}

fn udp(port: u16, payload: usize) -> [u8; 8] {
    let mut header = [0; 8];
    let (udp, _) = Udp::split_mut(&mut header).unwrap();
    udp.set_destination(port);
    udp.set_length((8 + payload) as u16);
    header
}

const TCP: [u8; 24] =
    [0, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0x60, 2, 0, 0, 0, 0, 0, 0, 2, 4, 5, 0xb4];

/// Lengths of layers 2, 3 and 4, and the payload.
fn lens(frame: &[u8]) -> Result<([usize; 3], Range<usize>), Malformed> {
    Layers::of(frame)
        .map(|layers| ([layers.l2_len, layers.l3_len, layers.l4_len], layers.payload()))
}

#[test]
fn padding_is_not_payload() {
    let frame = ethernet(0x0800, &[&v4(17, 30, 0), &udp(9, 2), &[7, 7], &[0; 16]]);
    assert_eq!(lens(&frame), Ok(([14, 20, 8], 42..44)));
    // Neither is what UDP does not count.
    let frame = ethernet(0x0800, &[&v4(17, 32, 0), &udp(9, 2), &[7, 7, 0, 0]]);
    assert_eq!(lens(&frame), Ok(([14, 20, 8], 42..44)));
}

#[test]
fn any_stack_of_tags_is_walked() {
    for tags in [0, 1, 2, 3, 100] {
        let stack: Vec<u8> = (1..tags).flat_map(|n| [0, n, 0x81, 0]).collect();
        let last: &[u8] = if tags == 0 { &[] } else { &[0, 9, 8, 0] };
        let outer = if tags == 0 { 0x0800 } else { 0x88a8 };
        let frame = ethernet(outer, &[&stack, last, &v4(6, 44, 0), &TCP]);
        let layers = Layers::of(&frame).unwrap();
        let l2_len = 14 + 4 * usize::from(tags);
        assert_eq!((layers.l2_len, layers.vlan_tags), (l2_len, usize::from(tags)));
        assert_eq!((layers.ether_type, layers.protocol), (0x0800, Some(6)));
        assert_eq!(layers.payload(), l2_len + 44..l2_len + 44);
    }
    let nothing_but_tags = ethernet(0x8100, &[&[0x81, 0].repeat(501)]);
    assert_eq!(lens(&nothing_but_tags), Err(Malformed::Short(Layer::Vlan)));
}

#[test]
fn extension_headers_belong_to_the_third_layer() {
    let chain: [&[u8]; 4] = [
        &[43, 0, 1, 4, 0, 0, 0, 0],
        &[60, 0, 0, 0, 0, 0, 0, 0],
        &[51, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        &[17, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    ];
    let mut frame = ethernet(0x86dd, &[&v6(0, 56), &chain.concat(), &udp(9, 4), &[1, 2, 3, 4]]);
    let layers = Layers::of(&frame).unwrap();
    assert_eq!((layers.l3_len, layers.l4_len, layers.protocol), (40 + 44, 8, Some(17)));
    assert_eq!(layers.payload(), 106..110);
    // Without a checksum IPv6 is no packet for a receiver, unless it is a tunnel's.
    assert_eq!(layers.checksum_is_right(&frame), Some(false));
    let tunnel = ethernet(0x86dd, &[&v6(17, 16), &udp(4789, 8), &[8, 0, 0, 0, 0, 0, 0, 0]]);
    assert_eq!(Layers::of(&tunnel).unwrap().checksum_is_right(&tunnel), Some(true));
    let v4_has_none = ethernet(0x0800, &[&v4(17, 28, 0), &udp(9, 0)]);
    assert_eq!(Layers::of(&v4_has_none).unwrap().checksum_is_right(&v4_has_none), Some(true));
    layers.fill_checksum(&mut frame).unwrap();
    assert_eq!(layers.checksum_is_right(&frame), Some(true));
    // A stop is left on the way: the checksum is that of another destination.
    let mut routed = frame.clone();
    routed[14 + 40 + 8 + 3] = 1;
    let layers = Layers::of(&routed).unwrap();
    assert_eq!(layers.checksum_is_right(&routed), None);
    assert_eq!(layers.fill_checksum(&mut routed), None);
    // What hides or is nothing ends the chain.
    for last in [50, 59, 200] {
        let frame = ethernet(0x86dd, &[&v6(60, 20), &[last, 0, 0, 0, 0, 0, 0, 0], &[1; 12]]);
        assert_eq!(lens(&frame), Ok(([14, 48, 0], 62..74)), "{last}");
        assert_eq!(Layers::of(&frame).unwrap().protocol, Some(last));
    }
}

#[test]
fn a_source_route_with_stops_left_hides_the_checksums_destination() {
    // A route of one address, behind a no-operation: its pointer is behind it, or not.
    for (kind, next, known) in [(131, 8, true), (131, 4, false), (137, 7, false), (7, 4, true)] {
        let mut header = [&v4(6, 52, 0)[..], &[1, kind, 7, next, 192, 0, 2, 1]].concat();
        header[0] = 0x47;
        let frame = ethernet(0x0800, &[&header, &TCP]);
        let layers = Layers::of(&frame).unwrap();
        assert_eq!(layers.has_pseudo_header(), known, "{kind} {next}");
        assert_eq!(layers.checksum_is_right(&frame).is_some(), known, "{kind} {next}");
    }
}

#[test]
fn fragments_are_known() {
    let of = |bytes: &[u8]| Layers::of(bytes).map(|l| (l.fragment, l.l4_len, l.payload()));
    let first = ethernet(0x0800, &[&v4(17, 36, 0x2000), &udp(4789, 1000), &[0; 8]]);
    assert_eq!(of(&first), Ok((Fragment::First, 8, 42..50)));
    let later = ethernet(0x0800, &[&v4(17, 36, 0x2001), &[0xff; 16]]);
    assert_eq!(of(&later), Ok((Fragment::Later, 0, 34..50)));
    assert_eq!(
        of(&ethernet(0x0800, &[&v4(17, 24, 1), &[0xff; 4]])),
        Ok((Fragment::Later, 0, 34..38))
    );
    // A header cut apart by fragmentation is one too short (RFC 1858, RFC 7112).
    let tiny = ethernet(0x0800, &[&v4(6, 28, 0x2000), &TCP[..8]]);
    assert_eq!(of(&tiny), Err(Malformed::Short(Layer::Tcp)));
    let fragment = |offset: u8, more: u8| [17, 0, 0, offset << 3 | more, 0, 0, 0, 1];
    let v6 = |header: [u8; 8]| ethernet(0x86dd, &[&v6(44, 16), &header, &udp(9, 0)]);
    assert_eq!(of(&v6(fragment(0, 0))), Ok((Fragment::Whole, 8, 70..70)));
    assert_eq!(of(&v6(fragment(0, 1))), Ok((Fragment::First, 8, 70..70)));
    assert_eq!(of(&v6(fragment(1, 1))), Ok((Fragment::Later, 0, 62..70)));
    for bytes in [first, later] {
        let layers = Layers::of(&bytes).unwrap();
        assert_eq!((layers.checksum_is_right(&bytes), layers.tunnel(&bytes)), (None, None));
        assert!(layers.inner(&bytes).is_none());
    }
}

#[test]
fn lies_are_named_and_lead_nowhere() {
    for (frame, wanted) in [
        (vec![0; 13], Malformed::Short(Layer::Ethernet)),
        (ethernet(0x8100, &[&[0, 1, 8]]), Malformed::Short(Layer::Vlan)),
        (ethernet(0x0800, &[]), Malformed::Short(Layer::Ipv4)),
        (ethernet(0x0800, &[&[0x65; 20]]), Malformed::Kind(Layer::Ipv4)),
        (ethernet(0x0800, &[&v4(0, 19, 0)]), Malformed::Len(Layer::Ipv4)),
        (ethernet(0x0800, &[&v4(0, 21, 0)]), Malformed::Len(Layer::Ipv4)),
        (ethernet(0x86dd, &[&v4(0, 20, 0), &[0; 20]]), Malformed::Kind(Layer::Ipv6)),
        (ethernet(0x86dd, &[&v6(59, 1)]), Malformed::Len(Layer::Ipv6)),
        // The extension header is there, but not in the packet.
        (
            ethernet(0x86dd, &[&v6(60, 4), &[17, 0, 0, 0, 0, 0, 0, 0]]),
            Malformed::Short(Layer::Extension),
        ),
        (
            ethernet(0x86dd, &[&v6(60, 8), &[0, 0, 0, 0, 0, 0, 0, 0]]),
            Malformed::Kind(Layer::Extension),
        ),
        // So it is with a transport header.
        (ethernet(0x0800, &[&v4(17, 27, 0), &udp(9, 0)]), Malformed::Short(Layer::Udp)),
        (ethernet(0x0800, &[&v4(17, 28, 0), &udp(9, 1), &[0]]), Malformed::Len(Layer::Udp)),
        (ethernet(0x0800, &[&v4(17, 28, 0), &[0; 8]]), Malformed::Len(Layer::Udp)),
        (ethernet(0x0800, &[&v4(6, 43, 0), &TCP]), Malformed::Short(Layer::Tcp)),
        (ethernet(0x0800, &[&v4(6, 40, 0), &[0; 20]]), Malformed::HeaderLen(Layer::Tcp)),
        (ethernet(0x0800, &[&v4(1, 27, 0), &[0; 8]]), Malformed::Short(Layer::Icmp)),
        (ethernet(0x86dd, &[&v6(58, 7), &[0; 8]]), Malformed::Short(Layer::Icmpv6)),
    ] {
        assert_eq!(lens(&frame), Err(wanted), "{frame:x?}");
    }
    assert_eq!(Layers::of_packet(&[0x55; 40]), Err(Malformed::Kind(Layer::Ipv4)));
    assert_eq!(Layers::of_packet(&[]), Err(Malformed::Short(Layer::Ipv4)));
}

#[test]
fn what_is_not_ip_ends_behind_the_tags() {
    let layers = Layers::of(&ethernet(0x0806, &[&[0; 46]])).unwrap();
    assert_eq!((layers.protocol, layers.l3_len, layers.payload()), (None, 0, 14..60));
    assert!(!layers.is_ipv4() && !layers.is_ipv6());
    let layers = Layers::of_packet(&v6(59, 0)).unwrap();
    assert_eq!((layers.l2_len, layers.l3_len, layers.is_ipv6()), (0, 40, true));
    assert_eq!(layers.payload(), 40..40);
}

#[test]
fn the_first_segment_is_enough_where_it_has_the_headers() {
    let frame = ethernet(0x0800, &[&v4(17, 1028, 0), &udp(9, 1000), &[1; 22]]);
    assert_eq!(lens(&frame), Err(Malformed::Len(Layer::Ipv4)));
    let layers = Layers::of_first(&frame, 1042).unwrap();
    assert_eq!((layers.l4_len, layers.payload()), (8, 42..1042));
    assert_eq!(layers.checksum_is_right(&frame), None);
    assert_eq!(Layers::of_first(&frame[..41], 1042), Err(Malformed::Short(Layer::Udp)));
    assert_eq!(Layers::of_first(&frame, 1041), Err(Malformed::Len(Layer::Ipv4)));
}

#[test]
fn tunnels_are_walked_one_at_a_time() {
    let inner = ethernet(0x8100, &[&[0, 5, 8, 0], &v4(6, 44, 0), &TCP]);
    let vxlan = [8, 0, 0, 0, 0, 0, 7, 0];
    let outer = |flags: u8, port| {
        let header = [flags, vxlan[1], 0, 0, 0, 0, 7, 0];
        ethernet(
            0x0800,
            &[&v4(17, 36 + inner.len(), 0), &udp(port, 8 + inner.len()), &header, &inner],
        )
    };
    let frame = outer(8, 4789);
    let layers = Layers::of(&frame).unwrap();
    let (tunnel, found) = layers.inner(&frame).unwrap().unwrap();
    assert_eq!((tunnel, found.start, found.l2_len), (Tunnel::Vxlan, 50, 18));
    assert_eq!((found.l3(), found.l4(), found.payload()), (68, 88, 112..112));
    assert!(found.inner(&frame).is_none());
    assert!(Layers::of(&outer(8, 4790)).unwrap().inner(&outer(8, 4790)).is_none());
    let without = outer(0, 4789);
    assert_eq!(
        Layers::of(&without).unwrap().inner(&without),
        Some(Err(Malformed::Kind(Layer::Vxlan)))
    );

    // GRE with key: a packet, a frame, and what is not known.
    let gre = |protocol: u16, behind: &[u8]| {
        let header = [&[0x20, 0], &protocol.to_be_bytes()[..], &[0, 0, 0, 1]].concat();
        ethernet(0x0800, &[&v4(47, 28 + behind.len(), 0), &header, behind])
    };
    let packet = [&v6(17, 8)[..], &udp(9, 0)].concat();
    let frame = gre(0x86dd, &packet);
    let (tunnel, found) = Layers::of(&frame).unwrap().inner(&frame).unwrap().unwrap();
    assert_eq!((tunnel, found.start, found.l2_len, found.l4()), (Tunnel::Gre, 42, 0, 82));
    let frame = gre(0x6558, &inner);
    let (_, found) = Layers::of(&frame).unwrap().inner(&frame).unwrap().unwrap();
    assert_eq!((found.start, found.vlan_tags, found.l4()), (42, 1, 80));
    let frame = gre(0x88be, &inner);
    let (_, found) = Layers::of(&frame).unwrap().inner(&frame).unwrap().unwrap();
    assert_eq!((found.ether_type, found.protocol, found.payload()), (0x88be, None, 42..104));
    // The inner packet may not be longer than what carries it, although there are bytes.
    let frame = [gre(0x86dd, &packet[..47]), vec![0; 9]].concat();
    let error = Layers::of(&frame).unwrap().inner(&frame);
    assert_eq!(error, Some(Err(Malformed::Len(Layer::Ipv6))));
}
