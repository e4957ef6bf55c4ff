// SPDX-License-Identifier: BSD-3-Clause
//! IPv4 (RFC 791), IPv6 (RFC 8200), and the segment routing header (RFC 8754) with its parts.

use super::{Auto, Cover, FieldKind, Format, HeaderKind, Numbers};

/// The router alert option of IPv4 (RFC 2113).
pub const ROUTER_ALERT: [u8; 4] = [0x94, 4, 0, 0];
/// The option of IPv4 that ends the list.
pub const END_OF_OPTIONS: [u8; 1] = [0];

/// IPv4. The three readings of its second byte overlap: `priority.raw`, `priority.tos` and
/// `priority.dscp`.
pub static IPV4: HeaderKind = HeaderKind {
    name: "ipv4",
    len: 20,
    optional: None,
    max_options: 40,
    numbers: Numbers {
        ether_type: Some(0x0800),
        ip_protocol: Some(4),
        ppp_protocol: Some(0x0021),
        udp_port: None,
    },
    addresses: Some((12, 8)),
    fields: &[
        FieldKind::new("version", 0, 4).or(4),
        FieldKind::new("header_length", 4, 4).or(5).auto(Auto::HeaderWords),
        FieldKind::new("priority.raw", 8, 8).rewritten(),
        FieldKind::new("priority.tos.precedence", 8, 3).rewritten(),
        FieldKind::new("priority.tos.delay", 11, 1).rewritten(),
        FieldKind::new("priority.tos.throughput", 12, 1).rewritten(),
        FieldKind::new("priority.tos.reliability", 13, 1).rewritten(),
        FieldKind::new("priority.tos.monetary", 14, 1).rewritten(),
        FieldKind::new("priority.tos.unused", 15, 1).rewritten(),
        FieldKind::new("priority.dscp.phb", 8, 6).rewritten(),
        FieldKind::new("priority.dscp.ecn", 14, 2).volatile(),
        FieldKind::new("total_length", 16, 16).or(46).auto(Auto::Length(0)),
        FieldKind::new("identification", 32, 16),
        FieldKind::new("reserved", 48, 1),
        FieldKind::new("dont_fragment", 49, 1),
        FieldKind::new("more_fragments", 50, 1),
        FieldKind::new("fragment_offset", 51, 13),
        FieldKind::new("time_to_live", 64, 8).or(64).volatile(),
        FieldKind::new("protocol", 72, 8).or(61).auto(Auto::IpProtocol),
        FieldKind::new("header_checksum", 80, 16).auto(Auto::Checksum(Cover::Header)),
        FieldKind::new("src", 96, 32).written(Format::Ipv4),
        FieldKind::new("dst", 128, 32).written(Format::Ipv4),
    ],
};

/// IPv6.
pub static IPV6: HeaderKind = HeaderKind {
    name: "ipv6",
    len: 40,
    optional: None,
    max_options: 0,
    numbers: Numbers {
        ether_type: Some(0x86dd),
        ip_protocol: Some(41),
        ppp_protocol: Some(0x0057),
        udp_port: None,
    },
    addresses: Some((8, 32)),
    fields: &[
        FieldKind::new("version", 0, 4).or(6),
        FieldKind::new("traffic_class", 4, 8).rewritten(),
        FieldKind::new("flow_label", 12, 20),
        FieldKind::new("payload_length", 32, 16).auto(Auto::Length(40)),
        FieldKind::new("next_header", 48, 8).or(59).auto(Auto::IpProtocol),
        FieldKind::new("hop_limit", 56, 8).or(64).volatile(),
        FieldKind::new("src", 64, 128).written(Format::Ipv6),
        FieldKind::new("dst", 192, 128).written(Format::Ipv6),
    ],
};

/// An extension header of IPv6: a routing header for segments (RFC 8754, section 2), without its segments. Those are
/// the [`SEGMENT`] headers right behind it, the last segment of the path first. [`SEGMENT_PAD`] may stand behind
/// them. Segment endpoints count `segments_left` down.
pub static IPV6_EXTENSION_HEADER: HeaderKind = HeaderKind {
    name: "ipv6_extension_header",
    len: 8,
    optional: None,
    max_options: 0,
    numbers: Numbers { ip_protocol: Some(43), ..Numbers::NONE },
    addresses: None,
    fields: &[
        FieldKind::new("next_header", 0, 8).or(59).auto(Auto::IpProtocol),
        FieldKind::new("hdr_ext_len", 8, 8).auto(Auto::ExtensionWords),
        FieldKind::new("routing_type", 16, 8).or(4),
        FieldKind::new("segments_left", 24, 8).auto(Auto::Segments(0)).volatile(),
        FieldKind::new("last_entry", 32, 8).auto(Auto::Segments(1)),
        FieldKind::new("flags.unused", 40, 1),
        FieldKind::new("flags.protected", 41, 1),
        FieldKind::new("flags.oam", 42, 1),
        FieldKind::new("flags.alert", 43, 1),
        FieldKind::new("flags.reserved", 44, 4),
        FieldKind::new("tag", 48, 16),
    ],
};

/// One entry of a segment list.
pub static SEGMENT: HeaderKind = HeaderKind {
    name: "ipv6_segment",
    len: 16,
    optional: None,
    max_options: 0,
    numbers: Numbers::NONE,
    addresses: None,
    fields: &[FieldKind::new("segment", 0, 128).written(Format::Ipv6)],
};

/// The padding behind a segment list (RFC 8754, section 2.1.1.2): type, length, and zeros. Longer padding has its
/// further zeros as options.
pub static SEGMENT_PAD: HeaderKind = HeaderKind {
    name: "ipv6_segment_pad",
    len: 8,
    optional: None,
    max_options: 256,
    numbers: Numbers::NONE,
    addresses: None,
    fields: &[
        FieldKind::new("pad_type", 0, 8).or(4),
        FieldKind::new("length", 8, 8).auto(Auto::PadLength),
        FieldKind::new("padding", 16, 48),
    ],
};
