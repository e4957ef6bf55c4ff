// SPDX-License-Identifier: BSD-3-Clause
//! ICMP echo (RFC 792), ICMPv6 echo (RFC 4443) and IGMP version 1 (RFC 1112).

use super::{Auto, Cover, FieldKind, Format, HeaderKind, Numbers};

/// An ICMP echo message.
pub static ICMP: HeaderKind = HeaderKind {
    name: "icmp",
    len: 8,
    optional: None,
    max_options: 0,
    numbers: Numbers { ip_protocol: Some(1), ..Numbers::NONE },
    addresses: None,
    fields: &[
        FieldKind::new("echo.type", 0, 8).or(8),
        FieldKind::new("echo.code", 8, 8),
        FieldKind::new("echo.checksum", 16, 16).auto(Auto::Checksum(Cover::Rest)),
        FieldKind::new("echo.identifier", 32, 16),
        FieldKind::new("echo.sequence_number", 48, 16),
    ],
};

/// An ICMPv6 echo message.
pub static ICMPV6: HeaderKind = HeaderKind {
    name: "icmpv6",
    len: 8,
    optional: None,
    max_options: 0,
    numbers: Numbers { ip_protocol: Some(58), ..Numbers::NONE },
    addresses: None,
    fields: &[
        FieldKind::new("echo.type", 0, 8).or(128),
        FieldKind::new("echo.code", 8, 8),
        FieldKind::new("echo.checksum", 16, 16).auto(Auto::Checksum(Cover::RestAndPseudoHeader)),
        FieldKind::new("echo.identifier", 32, 16),
        FieldKind::new("echo.sequence_number", 48, 16),
    ],
};

/// An IGMP message of version 1. Its checksum covers what follows as well, as receivers check
/// the whole of an IP packet's payload.
pub static IGMPV1: HeaderKind = HeaderKind {
    name: "igmpv1",
    len: 8,
    optional: None,
    max_options: 0,
    numbers: Numbers { ip_protocol: Some(2), ..Numbers::NONE },
    addresses: None,
    fields: &[
        FieldKind::new("version", 0, 4).or(1),
        FieldKind::new("type", 4, 4).or(1),
        FieldKind::new("unused", 8, 8),
        FieldKind::new("checksum", 16, 16).auto(Auto::Checksum(Cover::Rest)),
        FieldKind::new("group_address", 32, 32).written(Format::Ipv4),
    ],
};
