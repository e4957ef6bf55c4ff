// SPDX-License-Identifier: BSD-3-Clause
//! The positions in a packet of the fields that rules compare.

use dpdk_sys::rte_acl_field_def;

use super::five_tuple::{Ip, Version};

/// How the values of a field are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Matching {
    /// Compares the first bits, as for addresses (`RTE_ACL_FIELD_TYPE_MASK`).
    Prefix,
    /// Compares with two bounds, as for ports (`RTE_ACL_FIELD_TYPE_RANGE`).
    Range,
    /// Compares the bits of a mask (`RTE_ACL_FIELD_TYPE_BITMASK`).
    Bits,
}

/// One field of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    pub(super) matching: Matching,
    pub(super) offset: usize,
    pub(super) size: usize,
}

impl Field {
    /// `size` bytes at `offset`; rules compare the first bits.
    #[must_use]
    pub const fn prefix(offset: usize, size: usize) -> Self {
        Self { matching: Matching::Prefix, offset, size }
    }

    /// `size` bytes at `offset`, at most 4; rules give bounds.
    #[must_use]
    pub const fn range(offset: usize, size: usize) -> Self {
        Self { matching: Matching::Range, offset, size }
    }

    /// `size` bytes at `offset`; rules compare single bits.
    #[must_use]
    pub const fn bits(offset: usize, size: usize) -> Self {
        Self { matching: Matching::Bits, offset, size }
    }

    /// The largest value.
    pub(super) const fn max(&self) -> u64 {
        u64::MAX >> (64 - 8 * self.size)
    }
}

/// Why fields do not form a layout. Fields are counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LayoutError {
    /// More fields, or more words of four bytes, than DPDK has room for.
    #[error("a layout has 1 to 64 fields in at most 63 words of four bytes behind the first field")]
    Count,
    /// The first field does not have one byte.
    #[error("field 0 has {0} bytes: the first field has one, put a small one there (the protocol)")]
    First(usize),
    /// An invalid size.
    #[error("field {field} has {size} bytes: 1, 2, 4 or 8 are possible")]
    Size {
        /// Its position in the layout.
        field: usize,
        /// The size given.
        size: usize,
    },
    /// DPDK treats a range of eight bytes that excludes only a few values as one that excludes
    /// none: it computes the fraction that a rule covers in floating point.
    #[error(
        "field {0} is a range of 8 bytes, which DPDK gets wrong: use a prefix, bits, or 4 bytes"
    )]
    WideRange(usize),
    /// The fields after the first do not fill words.
    #[error(
        "field {0} breaks a word: fields behind the first fill words of four bytes, side by side and in \
         order; name the bytes between them as fields that rules leave open"
    )]
    Word(usize),
    /// The layout ends too far from its start.
    #[error("field {0} ends behind byte 1024: hand in packets from a later header on")]
    Far(usize),
}

/// The fields of a packet, `FIELDS` of them, checked.
///
/// DPDK's rules: the first field has one byte; the others fill words of four bytes, adjacent and in
/// order. The words may lie anywhere. A field of eight bytes fills two words. Values in packets are
/// in network byte order.
///
/// A layout is best declared as a constant: an invalid one then does not compile:
/// ```
/// use dpdk::acl::{Field, Layout};
///
/// /// Protocol and destination of an IPv4 header.
/// const ROUTE: Layout<2> = match Layout::new([Field::bits(9, 1), Field::prefix(16, 4)]) {
///     Ok(layout) => layout,
///     Err(_) => panic!("a wrong layout"),
/// };
/// assert_eq!(ROUTE.input_len(), 20);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout<const FIELDS: usize> {
    pub(super) fields: [Field; FIELDS],
    /// The word that each field lies in, as DPDK counts them.
    words: [u8; FIELDS],
    input_len: usize,
    /// The header whose options or extension headers may come before the ports.
    pub(super) ip: Option<Ip>,
}

/// Every layout lies within this many bytes.
pub(super) const MAX_INPUT: usize = 1024;
/// `RTE_ACL_MAX_FIELDS`: fields, and words that a lookup walks through.
const MAX_FIELDS: usize = dpdk_sys::RTE_ACL_MAX_FIELDS as usize;
const WORD: usize = 4;

impl<const FIELDS: usize> Layout<FIELDS> {
    /// Checks fields.
    ///
    /// # Errors
    /// See [`LayoutError`].
    pub const fn new(fields: [Field; FIELDS]) -> Result<Self, LayoutError> {
        if FIELDS == 0 || FIELDS > MAX_FIELDS {
            return Err(LayoutError::Count);
        }
        if fields[0].size != 1 {
            return Err(LayoutError::First(fields[0].size));
        }
        if fields[0].offset >= MAX_INPUT {
            return Err(LayoutError::Far(0));
        }
        let mut words = [0; FIELDS];
        // Words so far, the bytes used of the last, and where the furthest word ends.
        let (mut seen, mut taken, mut end) = (1, WORD, fields[0].offset + 1);
        let mut furthest = 0;
        let mut at = 1;
        while at < FIELDS {
            let Field { offset, size, .. } = fields[at];
            if !matches!(size, 1 | 2 | 4 | 8) {
                return Err(LayoutError::Size { field: at, size });
            }
            if size == 8 && matches!(fields[at].matching, Matching::Range) {
                return Err(LayoutError::WideRange(at));
            }
            if offset > MAX_INPUT - size {
                return Err(LayoutError::Far(at));
            }
            if taken == WORD {
                // A new word begins.
                seen += if size == 8 { 2 } else { 1 };
                taken = if size == 8 { WORD } else { size };
            } else {
                if taken + size > WORD || offset != fields[at - 1].offset + fields[at - 1].size {
                    return Err(LayoutError::Word(at));
                }
                taken += size;
            }
            words[at] = seen as u8 - 1;
            end = if offset + size > end { offset + size } else { end };
            furthest = if offset > furthest { offset } else { furthest };
            at += 1;
        }
        if taken != WORD {
            return Err(LayoutError::Word(FIELDS - 1));
        }
        if seen > MAX_FIELDS {
            return Err(LayoutError::Count);
        }
        // DPDK also reads four bytes at the first field if another field begins after it.
        if fields[0].offset < furthest && fields[0].offset + WORD > end {
            end = fields[0].offset + WORD;
        }
        if end > MAX_INPUT {
            return Err(LayoutError::Far(0));
        }
        Ok(Self { fields, words, input_len: end, ip: None })
    }

    /// The layout without the flags of [`IPV4_5TUPLE_FLAGS`] and [`IPV6_5TUPLE_FLAGS`], for lists
    /// whose rules leave the last field open: packets may then end after the ports. Other layouts
    /// stay as they are.
    #[must_use]
    pub const fn without_flags(self) -> Self {
        let Some(ip @ Ip { flags: true, .. }) = self.ip else { return self };
        let mut fields = self.fields;
        // A word that every packet has; DPDK does not read a field that all rules leave open.
        fields[FIELDS - 1] = Field::bits(fields[1].offset, WORD);
        known(fields, Ip { flags: false, ..ip })
    }

    /// The same fields at fixed offsets in every packet. DPDK's `l3fwd` reads [`IPV4_5TUPLE`] and
    /// [`IPV6_5TUPLE`] like this: after options or extension headers, or in a later fragment, it
    /// takes other bytes for the ports, so a packet may pass that a rule about its ports denies.
    #[must_use]
    pub const fn at_fixed_places(self) -> Self {
        Self { ip: None, ..self }
    }

    /// The number of bytes that a lookup reads, from offset 0 on: packets must have at least as
    /// many.
    #[must_use]
    pub const fn input_len(&self) -> usize {
        self.input_len
    }

    /// The definitions for DPDK.
    pub(super) fn definitions(&self) -> [rte_acl_field_def; MAX_FIELDS] {
        let unused =
            rte_acl_field_def { type_: 0, size: 0, field_index: 0, input_index: 0, offset: 0 };
        let mut definitions = [unused; MAX_FIELDS];
        let numbered = (0u8..).zip(self.fields.iter().zip(&self.words));
        for (definition, (index, (field, word))) in definitions.iter_mut().zip(numbered) {
            *definition = rte_acl_field_def {
                type_: match field.matching {
                    Matching::Prefix => dpdk_sys::RTE_ACL_FIELD_TYPE_MASK,
                    Matching::Range => dpdk_sys::RTE_ACL_FIELD_TYPE_RANGE,
                    Matching::Bits => dpdk_sys::RTE_ACL_FIELD_TYPE_BITMASK,
                } as u8,
                size: field.size as u8,
                field_index: index,
                input_index: *word,
                offset: field.offset as u32,
            };
        }
        definitions
    }
}

/// Compiles only if the fields form a layout.
const fn known<const FIELDS: usize>(fields: [Field; FIELDS], ip: Ip) -> Layout<FIELDS> {
    match Layout::new(fields) {
        Ok(layout) => Layout { ip: Some(ip), ..layout },
        Err(_) => panic!("a layout of this library's own is wrong"),
    }
}

/// Protocol, addresses and ports of IPv4. Packets are passed from the IPv4 header on. Ports are
/// found behind options. A fragment other than the first has no ports and matches nothing
/// ([`FiveTuple`](super::FiveTuple)).
pub const IPV4_5TUPLE: Layout<5> = known(IPV4_FIELDS, Ip { version: Version::V4, flags: false });

const IPV4_FIELDS: [Field; 5] = [
    Field::bits(9, 1),
    Field::prefix(12, 4),
    Field::prefix(16, 4),
    Field::range(20, 2),
    Field::range(22, 2),
];

/// [`IPV4_5TUPLE`], and the word of a TCP header that has the flags, in the bits [`TCP_FLAGS`].
/// Packets of other protocols may end before it. Rules about flags should also require TCP, because
/// other protocols have other data there.
pub const IPV4_5TUPLE_FLAGS: Layout<6> = known(
    {
        let [protocol, source, destination, from, to] = IPV4_FIELDS;
        [protocol, source, destination, from, to, Field::bits(32, 4)]
    },
    Ip { version: Version::V4, flags: true },
);

/// The bits of the last field of [`IPV4_5TUPLE_FLAGS`] and [`IPV6_5TUPLE_FLAGS`] that hold the
/// flags. From the highest bit: CWR, ECE, URG, ACK, PSH, RST, SYN and FIN.
pub const TCP_FLAGS: u64 = 0x00ff_0000;

/// Protocol, addresses (four words each) and ports of IPv6. Packets are passed from the IPv6 header
/// on. Protocol and ports are found behind extension headers. A fragment other than the first has
/// no ports and matches nothing ([`FiveTuple`](super::FiveTuple)).
pub const IPV6_5TUPLE: Layout<11> = known(IPV6_FIELDS, Ip { version: Version::V6, flags: false });

const IPV6_FIELDS: [Field; 11] = [
    Field::bits(6, 1),
    Field::prefix(8, 4),
    Field::prefix(12, 4),
    Field::prefix(16, 4),
    Field::prefix(20, 4),
    Field::prefix(24, 4),
    Field::prefix(28, 4),
    Field::prefix(32, 4),
    Field::prefix(36, 4),
    Field::range(40, 2),
    Field::range(42, 2),
];

/// [`IPV6_5TUPLE`], and the word of a TCP header that has the flags, as in [`IPV4_5TUPLE_FLAGS`].
pub const IPV6_5TUPLE_FLAGS: Layout<12> = known(
    {
        let [protocol, s0, s1, s2, s3, d0, d1, d2, d3, from, to] = IPV6_FIELDS;
        [protocol, s0, s1, s2, s3, d0, d1, d2, d3, from, to, Field::bits(52, 4)]
    },
    Ip { version: Version::V6, flags: true },
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_that_break_a_rule_are_named() {
        let first = Field::bits(0, 1);
        let two = Layout::<2>::new;
        assert_eq!(Layout::<0>::new([]), Err(LayoutError::Count));
        assert_eq!(two([Field::bits(0, 2), Field::bits(4, 4)]), Err(LayoutError::First(2)));
        assert_eq!(two([first, Field::bits(4, 3)]), Err(LayoutError::Size { field: 1, size: 3 }));
        assert_eq!(two([first, Field::bits(4, 2)]), Err(LayoutError::Word(1)), "half a word");
        let wide = two([first, Field::range(4, 8)]);
        assert_eq!(wide, Err(LayoutError::WideRange(1)));
        let apart = [first, Field::range(4, 2), Field::range(7, 2)];
        assert_eq!(Layout::new(apart), Err(LayoutError::Word(2)));
        let across = [first, Field::range(4, 2), Field::range(6, 4)];
        assert_eq!(Layout::new(across), Err(LayoutError::Word(2)));
        assert_eq!(two([first, Field::bits(1021, 4)]), Err(LayoutError::Far(1)));
        assert_eq!(two([first, Field::bits(usize::MAX, 4)]), Err(LayoutError::Far(1)));
        assert_eq!(two([Field::bits(usize::MAX, 1), first]), Err(LayoutError::Far(0)));
        let words = |size| {
            Layout::new(
                [[first; 1].as_slice(), &[Field::bits(4, size); 63]].concat().try_into().unwrap(),
            )
        };
        assert!(words(4).is_ok_and(|layout: Layout<64>| layout.words[63] == 63));
        assert_eq!(words(8), Err(LayoutError::Count));
    }

    #[test]
    fn the_bytes_that_are_read_are_all_counted() {
        let len =
            |first, word: Field| Layout::new([Field::bits(first, 1), word]).unwrap().input_len();
        assert_eq!(len(0, Field::bits(1, 4)), 5);
        assert_eq!(len(9, Field::bits(0, 4)), 10, "one byte where nothing begins behind");
        assert_eq!(len(9, Field::bits(0, 8)), 10);
        // The word ends before the four bytes that are read at the first field.
        let bytes = [2, 0, 1, 2, 3].map(|offset| Field::bits(offset, 1));
        assert_eq!(Layout::new(bytes).unwrap().input_len(), 6);
        assert_eq!(IPV4_5TUPLE.input_len(), 24);
        assert_eq!(IPV6_5TUPLE.input_len(), 44);
        assert_eq!(IPV4_5TUPLE_FLAGS.input_len(), 36);
        assert_eq!(IPV6_5TUPLE_FLAGS.input_len(), 56);
        assert_eq!(IPV4_5TUPLE_FLAGS.without_flags().input_len(), 24);
        assert_eq!(IPV6_5TUPLE_FLAGS.without_flags().input_len(), 44);
        assert_eq!(IPV4_5TUPLE.without_flags(), IPV4_5TUPLE);
        assert_eq!(Layout::new([Field::range(7, 1)]).unwrap().input_len(), 8);
    }
}
