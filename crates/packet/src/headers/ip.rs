// SPDX-License-Identifier: BSD-3-Clause
//! IPv4 (RFC 791) and IPv6 (RFC 8200).

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
