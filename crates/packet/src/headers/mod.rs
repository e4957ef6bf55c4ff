// SPDX-License-Identifier: BSD-3-Clause
//! Protocol headers as tables: where each field is, what it holds if nobody sets it, and which
//! rule gives its right value.
//!
//! Names and defaults are those of the Open Traffic Generator model; a nested field has a path
//! such as `priority.dscp.phb`. Nothing else in this crate knows a protocol (but for segments, which hold the
//! destination of a pseudo-header): adding one is adding a file with a table.

use std::fmt;

mod ip;
mod link;
mod message;
mod transport;
mod tunnel;

pub use ip::{
    END_OF_OPTIONS, IPV4, IPV6, IPV6_EXTENSION_HEADER, ROUTER_ALERT, SEGMENT, SEGMENT_PAD,
};
pub use link::{ARP, ETHERNET, ETHERNETPAUSE, MPLS, PFCPAUSE, PPP, VLAN};
pub use message::{ICMP, ICMPV6, IGMPV1};
pub use transport::{TCP, UDP};
pub use tunnel::{GRE, GTPV1, GTPV1_EXTENSION, GTPV1_SHORT_EXTENSION, VXLAN};

/// How a value is written as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A number.
    Number,
    /// An Ethernet address.
    Mac,
    /// An IPv4 address.
    Ipv4,
    /// An IPv6 address.
    Ipv6,
}

/// Which bytes a checksum covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cover {
    /// The header alone, with options (IPv4).
    Header,
    /// From the start of the header to the end of the frame.
    Rest,
    /// The same and the pseudo-header of the nearest IP header before it: its addresses, this
    /// header's protocol number and the length of what is covered.
    RestAndPseudoHeader,
}

/// The rule for a field that is left to itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Auto {
    /// The default.
    Default,
    /// The EtherType of the next header; the default when it has none.
    EtherType,
    /// The IP protocol number of the next header; the default when it has none.
    IpProtocol,
    /// The PPP protocol number of the next header; the default when it has none.
    PppProtocol,
    /// The well-known UDP port of the next header; the default when it has none.
    UdpPort,
    /// 1 unless the next header is of the same kind (MPLS).
    BottomOfStack,
    /// Length of this header with its options, in words of 32 bits.
    HeaderWords,
    /// Length of this header with its parts, in words of 64 bits, the first left out (IPv6 extension headers).
    ExtensionWords,
    /// How many segments are right behind this header, less so many; at least 0.
    Segments(u8),
    /// Length of this header with its options, less its first two bytes.
    PadLength,
    /// Bytes from this many behind the start of the header to the end of the frame.
    Length(usize),
    /// The internet checksum (RFC 1071).
    Checksum(Cover),
}

/// What switches and routers do to a field on the way when nothing more is asked of them, such as translation
/// of addresses or a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transit {
    /// They leave it as it is.
    Kept,
    /// Some rewrite it: addresses of the link, priorities, labels.
    Rewritten,
    /// Every router changes it, or it depends on what is changed: hop limits, marks of congestion, checksums.
    Volatile,
}

/// One field of a header.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct FieldKind {
    /// Name in the OTG model; a path with dots where that nests.
    pub name: &'static str,
    /// First bit, counted from the start of the header, the most significant bit of a byte first.
    pub offset_bits: usize,
    /// Width; 0 for a field that is in the model but not on the wire.
    pub bits: u32,
    /// How the value is written.
    pub format: Format,
    /// The value that the model has where none is given.
    pub default: u128,
    /// Whether an explicit constant equal to the default means the rule as well. So it is where
    /// the model has no word for "automatic" and its default cannot be meant.
    pub default_is_auto: bool,
    /// What the field holds if nobody sets it.
    pub auto: Auto,
    /// What becomes of it on the way.
    pub transit: Transit,
}

impl fmt::Debug for FieldKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl fmt::Debug for HeaderKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for HeaderKind {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for HeaderKind {}

impl FieldKind {
    pub(crate) const fn new(name: &'static str, offset_bits: usize, bits: u32) -> Self {
        let (format, auto) = (Format::Number, Auto::Default);
        let transit = Transit::Kept;
        FieldKind {
            name,
            offset_bits,
            bits,
            format,
            default: 0,
            default_is_auto: false,
            auto,
            transit,
        }
    }

    pub(crate) const fn or(self, default: u128) -> Self {
        FieldKind { default, ..self }
    }

    pub(crate) const fn written(self, format: Format) -> Self {
        FieldKind { format, ..self }
    }

    pub(crate) const fn auto(self, auto: Auto) -> Self {
        let transit = match auto {
            Auto::Checksum(_) => Transit::Volatile,
            _ => self.transit,
        };
        FieldKind { auto, transit, ..self }
    }

    pub(crate) const fn rewritten(self) -> Self {
        FieldKind { transit: Transit::Rewritten, ..self }
    }

    pub(crate) const fn volatile(self) -> Self {
        FieldKind { transit: Transit::Volatile, ..self }
    }

    pub(crate) const fn default_is_auto(self) -> Self {
        FieldKind { default_is_auto: true, ..self }
    }

    /// The largest value that fits.
    pub const fn max(&self) -> u128 {
        match self.bits {
            0 => 0,
            bits => u128::MAX >> (128 - bits),
        }
    }

    /// The first bit after the field.
    pub(crate) const fn end_bits(&self) -> usize {
        self.offset_bits + self.bits as usize
    }

    /// Whether the rule is a checksum's.
    pub const fn is_checksum(&self) -> bool {
        matches!(self.auto, Auto::Checksum(_))
    }
}

/// Bytes that a header has only when one of its flags is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Optional {
    /// How many, right behind the fixed part.
    pub len: usize,
    /// The flags, by field name.
    pub flags: &'static [&'static str],
}

/// How headers before this one name it; `None` where there is no number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbers {
    /// EtherType.
    pub ether_type: Option<u16>,
    /// IP protocol number.
    pub ip_protocol: Option<u8>,
    /// PPP protocol number.
    pub ppp_protocol: Option<u16>,
    /// UDP destination port.
    pub udp_port: Option<u16>,
}

impl Numbers {
    pub(crate) const NONE: Numbers =
        Numbers { ether_type: None, ip_protocol: None, ppp_protocol: None, udp_port: None };
}

/// A kind of header. Two are equal when they have the same name.
pub struct HeaderKind {
    /// Name in the OTG model.
    pub name: &'static str,
    /// Length in bytes, without optional bytes and options.
    pub len: usize,
    /// Bytes that come and go with flags.
    pub optional: Option<Optional>,
    /// Most bytes that may follow the header as its options; a multiple of 4.
    pub max_options: usize,
    /// How headers before this one name it.
    pub numbers: Numbers,
    /// Where source and destination address stand in an IP header: first byte and length.
    pub(crate) addresses: Option<(usize, usize)>,
    /// The fields, in the order of the wire.
    pub fields: &'static [FieldKind],
}

impl HeaderKind {
    /// The field of a name.
    ///
    /// ```
    /// let ttl = packet::headers::IPV4.field("time_to_live").ok_or("no such field")?;
    /// assert_eq!((ttl.offset_bits, ttl.bits, ttl.default), (64, 8, 64));
    /// # Ok::<(), &str>(())
    /// ```
    pub fn field(&self, name: &str) -> Option<&'static FieldKind> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// Whether it is a part of the header before it ([`PARTS`]), which no type or protocol number names.
    pub fn is_part(&self) -> bool {
        PARTS.contains(&self)
    }
}

/// Bytes of no known protocol; they are the header's options.
pub static CUSTOM: HeaderKind = HeaderKind {
    name: "custom",
    len: 0,
    optional: None,
    max_options: crate::size::MAX_LEN_WITH_FCS,
    numbers: Numbers::NONE,
    addresses: None,
    fields: &[],
};

/// All kinds of headers, without their parts.
pub static KINDS: &[&HeaderKind] = &[
    &CUSTOM,
    &ETHERNET,
    &VLAN,
    &VXLAN,
    &IPV4,
    &IPV6,
    &IPV6_EXTENSION_HEADER,
    &PFCPAUSE,
    &ETHERNETPAUSE,
    &TCP,
    &UDP,
    &GRE,
    &GTPV1,
    &ARP,
    &ICMP,
    &ICMPV6,
    &PPP,
    &IGMPV1,
    &MPLS,
];

/// Parts of headers that have lists: each entry stands in the stack as a header of its own.
pub static PARTS: &[&HeaderKind] =
    &[&SEGMENT, &SEGMENT_PAD, &GTPV1_EXTENSION, &GTPV1_SHORT_EXTENSION];

/// The kind of a name.
pub fn kind(name: &str) -> Option<&'static HeaderKind> {
    KINDS.iter().copied().find(|kind| kind.name == name)
}

#[cfg(test)]
mod tests;
