// SPDX-License-Identifier: BSD-3-Clause
//! Ethernet (IEEE 802.3), VLAN tags (802.1Q), pause frames (802.3 annex 31B, 802.1Qbb), ARP (RFC
//! 826), MPLS (RFC 3032) and PPP in HDLC-like framing (RFC 1662).

use super::{Auto, FieldKind, Format, HeaderKind, Numbers};

/// Ethernet II. `pfc_queue` says something to hardware, not to the wire.
pub static ETHERNET: HeaderKind = HeaderKind {
    name: "ethernet",
    len: 14,
    optional: None,
    max_options: 0,
    // In GRE and Geneve an Ethernet frame has the number of transparent bridging.
    numbers: Numbers { ether_type: Some(0x6558), ip_protocol: Some(143), ..Numbers::NONE },
    addresses: None,
    fields: &[
        FieldKind::new("dst", 0, 48).written(Format::Mac).rewritten(),
        FieldKind::new("src", 48, 48).written(Format::Mac).rewritten(),
        FieldKind::new("ether_type", 96, 16).or(0xffff).auto(Auto::EtherType),
        FieldKind::new("pfc_queue", 112, 0),
    ],
};

/// A VLAN tag, as the 4 bytes behind a type field: the tag's control field and the type of what follows. The tag's own
/// type (TPID) is in the type field before it, which says 0x8100 unless it is set.
pub static VLAN: HeaderKind = HeaderKind {
    name: "vlan",
    len: 4,
    optional: None,
    max_options: 0,
    numbers: Numbers { ether_type: Some(0x8100), ..Numbers::NONE },
    addresses: None,
    fields: &[
        FieldKind::new("priority", 0, 3).rewritten(),
        FieldKind::new("cfi", 3, 1).rewritten(),
        FieldKind::new("id", 4, 12),
        FieldKind::new("ether_type", 16, 16).or(0xffff).auto(Auto::EtherType).default_is_auto(),
    ],
};

/// A priority-based flow control frame, with its Ethernet header.
pub static PFCPAUSE: HeaderKind = HeaderKind {
    name: "pfcpause",
    len: 34,
    optional: None,
    max_options: 0,
    numbers: Numbers::NONE,
    addresses: None,
    fields: &[
        FieldKind::new("dst", 0, 48).or(0x0180_c200_0001).written(Format::Mac),
        FieldKind::new("src", 48, 48).written(Format::Mac),
        FieldKind::new("ether_type", 96, 16).or(0x8808),
        FieldKind::new("control_op_code", 112, 16).or(0x0101),
        FieldKind::new("class_enable_vector", 128, 16),
        FieldKind::new("pause_class_0", 144, 16),
        FieldKind::new("pause_class_1", 160, 16),
        FieldKind::new("pause_class_2", 176, 16),
        FieldKind::new("pause_class_3", 192, 16),
        FieldKind::new("pause_class_4", 208, 16),
        FieldKind::new("pause_class_5", 224, 16),
        FieldKind::new("pause_class_6", 240, 16),
        FieldKind::new("pause_class_7", 256, 16),
    ],
};

/// A pause frame, with its Ethernet header.
pub static ETHERNETPAUSE: HeaderKind = HeaderKind {
    name: "ethernetpause",
    len: 18,
    optional: None,
    max_options: 0,
    numbers: Numbers::NONE,
    addresses: None,
    fields: &[
        FieldKind::new("dst", 0, 48).or(0x0180_c200_0001).written(Format::Mac),
        FieldKind::new("src", 48, 48).written(Format::Mac),
        FieldKind::new("ether_type", 96, 16).or(0x8808),
        FieldKind::new("control_op_code", 112, 16).or(1),
        FieldKind::new("time", 128, 16),
    ],
};

/// ARP for IPv4 over Ethernet.
pub static ARP: HeaderKind = HeaderKind {
    name: "arp",
    len: 28,
    optional: None,
    max_options: 0,
    numbers: Numbers { ether_type: Some(0x0806), ..Numbers::NONE },
    addresses: None,
    fields: &[
        FieldKind::new("hardware_type", 0, 16).or(1),
        FieldKind::new("protocol_type", 16, 16).or(0x0800),
        FieldKind::new("hardware_length", 32, 8).or(6),
        FieldKind::new("protocol_length", 40, 8).or(4),
        FieldKind::new("operation", 48, 16).or(1),
        FieldKind::new("sender_hardware_addr", 64, 48).written(Format::Mac),
        FieldKind::new("sender_protocol_addr", 112, 32).written(Format::Ipv4),
        FieldKind::new("target_hardware_addr", 144, 48).written(Format::Mac),
        FieldKind::new("target_protocol_addr", 192, 32).written(Format::Ipv4),
    ],
};

/// One entry of an MPLS label stack.
pub static MPLS: HeaderKind = HeaderKind {
    name: "mpls",
    len: 4,
    optional: None,
    max_options: 0,
    numbers: Numbers {
        ether_type: Some(0x8847),
        ip_protocol: Some(137),
        ppp_protocol: Some(0x0281),
        udp_port: Some(6635),
    },
    addresses: None,
    fields: &[
        FieldKind::new("label", 0, 20).or(16).rewritten(),
        FieldKind::new("traffic_class", 20, 3).rewritten(),
        FieldKind::new("bottom_of_stack", 23, 1).or(1).auto(Auto::BottomOfStack),
        FieldKind::new("time_to_live", 24, 8).or(64).volatile(),
    ],
};

/// PPP with address and control fields.
pub static PPP: HeaderKind = HeaderKind {
    name: "ppp",
    len: 4,
    optional: None,
    max_options: 0,
    numbers: Numbers { ether_type: Some(0x880b), ..Numbers::NONE },
    addresses: None,
    fields: &[
        FieldKind::new("address", 0, 8).or(0xff),
        FieldKind::new("control", 8, 8).or(3),
        FieldKind::new("protocol_type", 16, 16).or(0x0021).auto(Auto::PppProtocol),
    ],
};
