// SPDX-License-Identifier: BSD-3-Clause
//! VXLAN (RFC 7348), GRE (RFC 2784) and GTP version 1 (3GPP TS 29.281).

use super::{Auto, Cover, FieldKind, HeaderKind, Numbers, Optional};

/// VXLAN.
pub static VXLAN: HeaderKind = HeaderKind {
    name: "vxlan",
    len: 8,
    optional: None,
    max_options: 0,
    numbers: Numbers { udp_port: Some(4789), ..Numbers::NONE },
    addresses: None,
    fields: &[
        FieldKind::new("flags", 0, 8).or(8),
        FieldKind::new("reserved0", 8, 24),
        FieldKind::new("vni", 32, 24),
        FieldKind::new("reserved1", 56, 8),
    ],
};

/// GRE; checksum and `reserved1` are there when `checksum_present` is set.
pub static GRE: HeaderKind = HeaderKind {
    name: "gre",
    len: 4,
    optional: Some(Optional { len: 4, flags: &["checksum_present"] }),
    max_options: 0,
    numbers: Numbers { ip_protocol: Some(47), ..Numbers::NONE },
    addresses: None,
    fields: &[
        FieldKind::new("checksum_present", 0, 1),
        FieldKind::new("reserved0", 1, 12),
        FieldKind::new("version", 13, 3),
        FieldKind::new("protocol", 16, 16).or(0x0800).auto(Auto::EtherType),
        FieldKind::new("checksum", 32, 16).auto(Auto::Checksum(Cover::Rest)),
        FieldKind::new("reserved1", 48, 16),
    ],
};

/// GTP version 1; the last four bytes are there when one of its three flags is set. A message
/// length of 0, the model's default, means the right one: what follows the first 8 bytes.
pub static GTPV1: HeaderKind = HeaderKind {
    name: "gtpv1",
    len: 8,
    optional: Some(Optional { len: 4, flags: &["e_flag", "s_flag", "pn_flag"] }),
    max_options: 0,
    numbers: Numbers { udp_port: Some(2152), ..Numbers::NONE },
    addresses: None,
    fields: &[
        FieldKind::new("version", 0, 3).or(1),
        FieldKind::new("protocol_type", 3, 1).or(1),
        FieldKind::new("reserved", 4, 1),
        FieldKind::new("e_flag", 5, 1),
        FieldKind::new("s_flag", 6, 1),
        FieldKind::new("pn_flag", 7, 1),
        FieldKind::new("message_type", 8, 8),
        FieldKind::new("message_length", 16, 16).auto(Auto::Length(8)).default_is_auto(),
        FieldKind::new("teid", 32, 32),
        FieldKind::new("squence_number", 64, 16),
        FieldKind::new("n_pdu_number", 80, 8),
        FieldKind::new("next_extension_header_type", 88, 8),
    ],
};

/// An extension header of GTP version 1, of two words of 4 bytes. The type of an extension header stands in the header
/// before it. A length of 0, the model's default, means the right one.
pub static GTPV1_EXTENSION: HeaderKind = HeaderKind {
    name: "gtpv1_extension",
    len: 8,
    optional: None,
    max_options: 0,
    numbers: Numbers::NONE,
    addresses: None,
    fields: &[
        FieldKind::new("extension_length", 0, 8).auto(Auto::HeaderWords).default_is_auto(),
        FieldKind::new("contents", 8, 48),
        FieldKind::new("next_extension_header", 56, 8),
    ],
};

/// An extension header of GTP version 1 of one word, with 16 bits of contents.
pub static GTPV1_SHORT_EXTENSION: HeaderKind = HeaderKind {
    name: "gtpv1_short_extension",
    len: 4,
    optional: None,
    max_options: 0,
    numbers: Numbers::NONE,
    addresses: None,
    fields: &[
        FieldKind::new("extension_length", 0, 8).auto(Auto::HeaderWords).default_is_auto(),
        FieldKind::new("contents", 8, 16),
        FieldKind::new("next_extension_header", 24, 8),
    ],
};
