// SPDX-License-Identifier: BSD-3-Clause
//! Frames worked out by hand, so that writer and reference cannot be wrong together.

use super::*;

/// Ethernet, IPv4 and UDP with everything left to its rule, frames of `size` bytes with FCS.
pub fn udp(size: usize) -> FrameSpec {
    spec(&["ethernet", "ipv4", "udp"], size)
}

fn spec(names: &[&str], size: usize) -> FrameSpec {
    FrameSpec {
        headers: names.iter().map(|name| Header::new(kind(name))).collect(),
        sizes: Sizes::Fixed(size),
        payload: Payload::default(),
        signature: Some(SignatureSpec::default()),
    }
}

fn headers_of(spec: &FrameSpec) -> String {
    let mut frames = [Vec::new()];
    FrameWriter::new(spec, 0).unwrap().write(&mut frames, 0, false);
    hex(&frames[0][..spec.headers_len()])
}

#[track_caller]
fn expect(spec: &FrameSpec, wanted: &[&str]) {
    assert_eq!(headers_of(spec), wanted.concat().replace(' ', ""));
}

const MACS: &str = "000000000000 000000000000";

#[test]
fn a_udp_frame() {
    let mut spec = udp(64);
    spec.headers[0].set("dst", 0x0200_0000_0001).unwrap();
    spec.headers[1].set("src", 0x0a00_0001).unwrap();
    spec.headers[1].set("dst", 0x0a00_0002).unwrap();
    spec.headers[1].set("priority.dscp.phb", 46).unwrap();
    spec.headers[2].set("src_port", 1).unwrap();
    spec.headers[2].set("dst_port", 2).unwrap();
    // IPv4: 45b8+002e+4011+0a00+0001+0a00+0002 = 99fa, complement 6605.
    // UDP: 0a00+0001+0a00+0002+0011+001a + 0001+0002+001a = 144b; the signature adds nothing:
    // complement ebb4.
    expect(
        &spec,
        &[
            "020000000001 000000000000 0800",
            "45b8 002e 0000 0000 4011 6605 0a000001 0a000002",
            "0001 0002 001a ebb4",
        ],
    );
    spec.headers[1].set("header_checksum", Checksum::Bad).unwrap();
    spec.headers[2].set("checksum", Checksum::Custom(0)).unwrap();
    assert!(headers_of(&spec).contains("40116604") && headers_of(&spec).ends_with("001a0000"));
}

#[test]
fn ipv6_and_icmpv6() {
    let mut spec = spec(&["ethernet", "ipv6", "icmpv6"], 84);
    spec.headers[1].set("src", 1).unwrap();
    spec.headers[1].set("dst", 2).unwrap();
    spec.headers[1].set("flow_label", 0x12345).unwrap();
    // 1 + 2 + 58 + 26 + 8000 = 8057, complement 7fa8.
    expect(
        &spec,
        &[
            MACS,
            "86dd",
            "6001 2345 001a 3a40 00000000000000000000000000000001",
            "00000000000000000000000000000002",
            "8000 7fa8 0000 0000",
        ],
    );
}

#[test]
fn tags_labels_and_tcp() {
    let mut spec = spec(&["ethernet", "vlan", "vlan", "ipv4", "tcp"], 96);
    spec.headers[1].set("id", 0x123).unwrap();
    spec.headers[1].set("priority", 5).unwrap();
    spec.headers[2].set("ether_type", 0xffff).unwrap();
    spec.headers[4].set("ctl_syn", 1).unwrap();
    // IPv4: 92 - 22 = 70 bytes; 4500+0046+4006 = 854c, complement 7ab3.
    // TCP: 6 + 50 + 5002 = 503a, complement afc5.
    expect(
        &spec,
        &[
            MACS,
            "8100 a123 8100 0000 0800",
            "4500 0046 0000 0000 4006 7ab3 00000000 00000000",
            "0000 0000 00000000 00000000 5002 0000 afc5 0000",
        ],
    );
    let mut spec = self::spec(&["ethernet", "mpls", "mpls", "ipv4", "igmpv1"], 80);
    spec.headers[1].set("label", 0x12345).unwrap();
    // 76 - 22 = 54 bytes; 4500+0036+4002 = 8538, complement 7ac7. IGMP: 1100, complement eeff.
    expect(
        &spec,
        &[
            MACS,
            "8847 12345040 00010140",
            "4500 0036 0000 0000 4002 7ac7 00000000 00000000",
            "1100 eeff 00000000",
        ],
    );
}

#[test]
fn tunnels() {
    let mut spec = spec(&["ethernet", "ipv4", "udp", "vxlan", "ethernet", "ipv4", "udp"], 114);
    spec.headers[3].set("vni", 7).unwrap();
    spec.headers[6].set("dst_port", 9).unwrap();
    // Outer IPv4: 110 - 14 = 96; 4500+0060+4011 = 8571, complement 7a8e.
    // Inner IPv4: 46; 4500+002e+4011 = 853f, complement 7ac0.
    // Inner UDP: 26; 11+1a+9+1a = 4e, complement ffb1.
    // Outer UDP: 76; 11+4c + 12b5+4c + 0800+0700 + 0800 (inner EtherType) = 2a5e; the inner IPv4
    // header adds ffff, that is nothing; the inner datagram adds the complement of its
    // pseudo-header, ~2b: 2a5e+ffd4 = 2a33 with the carry; complement d5cc.
    expect(
        &spec,
        &[
            MACS,
            "0800 4500 0060 0000 0000 4011 7a8e 00000000 00000000",
            "0000 12b5 004c d5cc 08000000 00000700",
            MACS,
            "0800 4500 002e 0000 0000 4011 7ac0 00000000 00000000",
            "0000 0009 001a ffb1",
        ],
    );

    let mut spec = self::spec(&["ethernet", "ipv4", "gre", "ipv6"], 104);
    spec.headers[2].set("checksum_present", 1).unwrap();
    // 100 - 14 = 86: 4500+0056+402f = 8585, complement 7a7a. GRE: 8000+86dd+6000+0012 (payload:
    // 100 - 82 = 18) + 3b40 = a230 with the carry, complement 5dcf.
    expect(
        &spec,
        &[
            MACS,
            "0800 4500 0056 0000 0000 402f 7a7a 00000000 00000000",
            "8000 86dd 5dcf 0000",
            "60000000 0012 3b40",
            &"0".repeat(64),
        ],
    );

    let mut spec = self::spec(&["ethernet", "ipv4", "udp", "gtpv1", "ipv4", "icmp"], 106);
    spec.headers[3].set("s_flag", 1).unwrap();
    spec.headers[3].set("squence_number", 5).unwrap();
    spec.headers[3].set("teid", 0x0102_0304).unwrap();
    spec.headers[2].set("checksum", Checksum::Custom(0)).unwrap();
    // Outer IPv4: 88; 4500+0058+4011 = 8569, complement 7a96. UDP: 68. GTP: 102 - 42 - 8 = 52.
    // Inner IPv4: 48; 4500+0030+4001 = 8531, complement 7ace. ICMP: 0800, complement f7ff.
    expect(
        &spec,
        &[
            MACS,
            "0800 4500 0058 0000 0000 4011 7a96 00000000 00000000",
            "0000 0868 0044 0000 3200 0034 01020304 0005 0000",
            "4500 0030 0000 0000 4001 7ace 00000000 00000000",
            "0800 f7ff 0000 0000",
        ],
    );
}

#[test]
fn frames_without_ip() {
    let mut arp = spec(&["ethernet", "arp"], 64);
    arp.headers[1].set("sender_hardware_addr", 0x0200_0000_0001).unwrap();
    arp.headers[1].set("target_protocol_addr", 0x0a00_0002).unwrap();
    arp.signature = None;
    expect(&arp, &[MACS, "0806 0001 0800 06 04 0001 020000000001 00000000 000000000000 0a000002"]);
    let mut pause = spec(&["ethernetpause"], 64);
    pause.headers[0].set("time", 0xffff).unwrap();
    expect(&pause, &["0180c2000001 000000000000 8808 0001 ffff"]);
    let mut pfc = spec(&["pfcpause"], 64);
    pfc.headers[0].set("class_enable_vector", 0x0081).unwrap();
    pfc.headers[0].set("pause_class_7", 9).unwrap();
    expect(&pfc, &["0180c2000001 000000000000 8808 0101 0081", &"0".repeat(28), "0009"]);
    let ppp = spec(&["ppp", "ipv6"], 80);
    expect(&ppp, &["ff03 0057 60000000 0020 3b40", &"0".repeat(64)]);
}

#[test]
fn options_and_custom_bytes() {
    let mut spec = spec(&["ethernet", "ipv4"], 70);
    spec.headers[1].set_options(&headers::ROUTER_ALERT);
    spec.headers.push(Header::custom(vec![0xaa, 0xbb, 0xcc]));
    // 66 - 14 = 52: 4600+0034+403d+9404 = 1a76 with the carry, complement e589.
    expect(&spec, &[MACS, "0800 4600 0034 0000 0000 403d e589 00000000 00000000 94040000 aabbcc"]);
}

#[test]
fn segment_routing() {
    let names =
        ["ethernet", "ipv6", "ipv6_extension_header", "ipv6_segment", "ipv6_segment", "udp"];
    let mut spec = spec(&names, 124);
    spec.headers[1].set("src", 1).unwrap();
    spec.headers[1].set("dst", 2).unwrap();
    spec.headers[2].set("flags.oam", 1).unwrap();
    spec.headers[2].set("tag", 0x0102).unwrap();
    spec.headers[3].set("segment", 3).unwrap();
    spec.headers[4].set("segment", 4).unwrap();
    // 120 - 14 - 40 = 66 bytes behind IPv6, 40 of them the routing header: 5 words, the first left out; 26 of UDP.
    let until_udp = [
        MACS,
        "86dd 60000000 0042 2b40 00000000000000000000000000000001",
        "00000000000000000000000000000002",
        "11 04 04 02 01 20 0102 00000000000000000000000000000003",
        "00000000000000000000000000000004 0000 0000 001a",
    ]
    .concat();
    // The last segment is the destination: 1 + 3 + 11 + 1a + 1a = 49, complement ffb6.
    expect(&spec, &[&until_udp, "ffb6"]);
    // A packet at its last hop has it in the IPv6 header: one less.
    spec.headers[2].set("segments_left", 0).unwrap();
    assert!(headers_of(&spec).ends_with("001affb7"));
    // CSIDs in the last segment: the last hop receives 7 in place of 3.
    spec.headers[2].take("segments_left");
    spec.headers[3].set_received(3, 7);
    assert!(headers_of(&spec).ends_with("001affb2"));
    let counts = Pattern::Increment { start: 0, step: 1, count: 2 };
    spec.headers[2].set("segments_left", counts).unwrap();
    let error = FrameWriter::new(&spec, 0).unwrap_err();
    assert_eq!(
        error.to_string(),
        "ipv6_extension_header.segments_left is 0 in some frames and not in others, and udp.checksum depends on it: \
         give it values of one kind, or the checksum a number"
    );
    spec.headers[5].set("checksum", Checksum::Custom(1)).unwrap();
    assert!(headers_of(&spec).ends_with("001a0001"));
}

#[test]
fn padding_behind_segments() {
    let names = ["ethernet", "ipv6", "ipv6_extension_header", "ipv6_segment", "ipv6_segment_pad"];
    let mut spec = spec(&names, 124);
    spec.headers[4].set_options(&[0; 8]);
    // 120 - 54 = 66 bytes; 8 + 16 + 16 = 40, which is 5 words; nothing follows.
    expect(
        &spec,
        &[
            MACS,
            "86dd 60000000 0042 2b40",
            &"0".repeat(64),
            "3b 04 04 01 00 00 0000",
            &"0".repeat(32),
            "04 0e",
            &"0".repeat(28),
        ],
    );
}

#[test]
fn extensions_of_gtp() {
    let names =
        ["ethernet", "ipv4", "udp", "gtpv1", "gtpv1_short_extension", "gtpv1_extension", "ipv4"];
    let mut spec = spec(&names, 108);
    spec.headers[3].set("e_flag", 1).unwrap();
    spec.headers[3].set("message_type", 255).unwrap();
    spec.headers[3].set("next_extension_header_type", 0x85).unwrap();
    spec.headers[4].set("contents", 0x1009).unwrap();
    spec.headers[4].set("next_extension_header", 0xc0).unwrap();
    spec.headers[5].set("contents", 0x0102_0304_0506).unwrap();
    spec.headers[2].set("checksum", Checksum::Custom(0)).unwrap();
    // Outer IPv4: 90; 4500+005a+4011 = 856b, complement 7a94. UDP: 70. GTP: 104 - 42 - 8 = 54.
    // Inner IPv4: 38; 4500+0026+403d = 8563, complement 7a9c.
    expect(
        &spec,
        &[
            MACS,
            "0800 4500 005a 0000 0000 4011 7a94 00000000 00000000",
            "0000 0868 0046 0000 34ff 0036 00000000 0000 00 85",
            "01 1009 c0 02 010203040506 00",
            "4500 0026 0000 0000 403d 7a9c 00000000 00000000",
        ],
    );
}
