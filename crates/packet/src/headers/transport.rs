// SPDX-License-Identifier: BSD-3-Clause
//! TCP (RFC 9293) and UDP (RFC 768).

use super::{Auto, Cover, FieldKind, HeaderKind, Numbers};

/// TCP. A data offset of 0, the model's default, means the right one. Its options are bytes.
pub static TCP: HeaderKind = HeaderKind {
    name: "tcp",
    len: 20,
    optional: None,
    max_options: 40,
    numbers: Numbers { ip_protocol: Some(6), ..Numbers::NONE },
    addresses: None,
    fields: &[
        FieldKind::new("src_port", 0, 16),
        FieldKind::new("dst_port", 16, 16),
        FieldKind::new("seq_num", 32, 32),
        FieldKind::new("ack_num", 64, 32),
        FieldKind::new("data_offset", 96, 4).auto(Auto::HeaderWords).default_is_auto(),
        FieldKind::new("ecn_ns", 103, 1),
        FieldKind::new("ecn_cwr", 104, 1),
        FieldKind::new("ecn_echo", 105, 1),
        FieldKind::new("ctl_urg", 106, 1),
        FieldKind::new("ctl_ack", 107, 1),
        FieldKind::new("ctl_psh", 108, 1),
        FieldKind::new("ctl_rst", 109, 1),
        FieldKind::new("ctl_syn", 110, 1),
        FieldKind::new("ctl_fin", 111, 1),
        FieldKind::new("window", 112, 16),
        FieldKind::new("checksum", 128, 16).auto(Auto::Checksum(Cover::RestAndPseudoHeader)),
    ],
};

/// UDP. A length of 0, the model's default, means the right one. A destination port that nobody
/// sets is that of the tunnel which follows (VXLAN 4789, GTP-U 2152), so that a stack of headers
/// is what its names say; a port that is set stays, 0 too.
pub static UDP: HeaderKind = HeaderKind {
    name: "udp",
    len: 8,
    optional: None,
    max_options: 0,
    numbers: Numbers { ip_protocol: Some(17), ..Numbers::NONE },
    addresses: None,
    fields: &[
        FieldKind::new("src_port", 0, 16),
        FieldKind::new("dst_port", 16, 16).auto(Auto::UdpPort),
        FieldKind::new("length", 32, 16).auto(Auto::Length(0)).default_is_auto(),
        FieldKind::new("checksum", 48, 16).auto(Auto::Checksum(Cover::RestAndPseudoHeader)),
    ],
};
