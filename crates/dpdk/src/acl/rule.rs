// SPDX-License-Identifier: BSD-3-Clause
//! The conditions of a rule, and its result.

use std::net::Ipv6Addr;
use std::num::NonZeroU32;

use dpdk_sys::layout as c;

use super::layout::{Field, Layout, Matching};

/// The largest priority of a rule; the smallest is 1.
pub const MAX_PRIORITY: i32 = dpdk_sys::RTE_ACL_MAX_PRIORITY as i32;

/// The condition of a rule on one field. Numbers are in host byte order: the address 10.0.0.1 is
/// `0x0a00_0001`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Match {
    /// No condition.
    Any,
    /// The first `len` bits of `value` are compared; the others are ignored. For fields made by
    /// [`Field::prefix`].
    Prefix {
        /// An address.
        value: u64,
        /// The number of bits that are compared.
        len: u8,
    },
    /// A value between the two bounds, inclusive. For fields made by [`Field::range`].
    Range {
        /// The smallest.
        low: u64,
        /// The largest.
        high: u64,
    },
    /// The bits of `value` where `mask` has ones; others are ignored. For fields made by
    /// [`Field::bits`].
    Bits {
        /// The bits.
        value: u64,
        /// The bits that are compared.
        mask: u64,
    },
}

impl Match {
    /// The first `len` bits of an IPv6 address, as the four words of [`IPV6_5TUPLE`](super::IPV6_5TUPLE) and layouts like it.
    ///
    /// ```
    /// use dpdk::acl::Match;
    /// let [first, second, third, fourth] = Match::ipv6_prefix("2001:db8::".parse()?, 40);
    /// assert_eq!(first, Match::Prefix { value: 0x2001_0db8, len: 32 });
    /// assert_eq!(second, Match::Prefix { value: 0, len: 8 });
    /// assert_eq!((third, fourth), (Match::Prefix { value: 0, len: 0 }, Match::Prefix { value: 0, len: 0 }));
    /// # Ok::<(), std::net::AddrParseError>(())
    /// ```
    #[must_use]
    pub fn ipv6_prefix(address: Ipv6Addr, len: u8) -> [Self; 4] {
        [0, 1, 2, 3].map(|word: u8| Self::Prefix {
            value: u64::from((address.to_bits() >> (96 - 32 * u32::from(word))) as u32),
            len: len.saturating_sub(32 * word).min(32),
        })
    }
}

/// A rule about `FIELDS` fields. A packet matches when each field does.
///
/// ```
/// use std::num::NonZeroU32;
/// use dpdk::acl::{Match, Rule};
///
/// /// TCP from 10.0.0.0/8 to a port of the system's, for an ACL of `IPV4_5TUPLE`.
/// fn rule(userdata: NonZeroU32) -> Rule<5> {
///     Rule::new(userdata, 100, [
///         Match::Bits { value: 6, mask: 0xff },
///         Match::Prefix { value: 0x0a00_0000, len: 8 },
///         Match::Any,
///         Match::Any,
///         Match::Range { low: 0, high: 1023 },
///     ])
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule<const FIELDS: usize> {
    /// The result of lookups for packets that match.
    pub userdata: NonZeroU32,
    /// The matching rule with the highest priority wins; among several of the same priority, any.
    /// From 1 to [`MAX_PRIORITY`].
    pub priority: i32,
    /// The categories that the rule belongs to: bit `n` is category `n`. Each category has its own
    /// result.
    pub categories: u32,
    /// The conditions on the layout's fields, in their order.
    pub fields: [Match; FIELDS],
}

/// Why a rule was not added. Fields are counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RuleError {
    /// Too low or too high.
    #[error("invalid priority {0}: must be 1 to {MAX_PRIORITY}")]
    Priority(i32),
    /// The rule is in no category, or in one that the ACL lacks.
    #[error("categories {given:#x}: name some of the {categories} that the ACL has, one bit each")]
    Categories {
        /// The bits given.
        given: u32,
        /// Categories of the ACL.
        categories: usize,
    },
    /// The field has another kind of comparison.
    #[error("field {field} is compared by {expected:?}, but the rule has another kind of value")]
    Kind {
        /// Its place in the layout.
        field: usize,
        /// Its kind.
        expected: Matching,
    },
    /// A value, bound or mask has more bits than the field.
    #[error("field {field} has {bits} bits, the rule's {given:#x} has more")]
    TooLarge {
        /// Its place in the layout.
        field: usize,
        /// Bits that it has.
        bits: usize,
        /// The value that did not fit.
        given: u64,
    },
    /// A prefix is longer than the field.
    #[error("field {field} has {bits} bits, the rule's prefix has {len}")]
    Prefix {
        /// Its place in the layout.
        field: usize,
        /// Bits that it has.
        bits: usize,
        /// Length of the prefix.
        len: u8,
    },
    /// A range that contains no value.
    #[error("field {field}: the range ends at {high}, before its begin at {low}")]
    Empty {
        /// Its place in the layout.
        field: usize,
        /// Begin.
        low: u64,
        /// End.
        high: u64,
    },
    /// The ACL is full.
    #[error("the ACL has its {0} rules; make one with a larger max_rules")]
    Full(u32),
}

impl<const FIELDS: usize> Rule<FIELDS> {
    /// A rule in category 0.
    #[must_use]
    pub const fn new(userdata: NonZeroU32, priority: i32, fields: [Match; FIELDS]) -> Self {
        Self { userdata, priority, categories: 1, fields }
    }
}

/// `struct rte_acl_field`.
#[repr(C)]
#[derive(Clone, Copy)]
struct RawField {
    value: RawValue,
    mask_range: RawValue,
}

/// `union rte_acl_field_types`: a number of the field's size at its begin.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
struct RawValue([u8; 8]);

/// `struct rte_acl_rule` with its fields.
#[repr(C)]
pub(super) struct RawRule<const FIELDS: usize> {
    category_mask: u32,
    priority: i32,
    userdata: u32,
    fields: [RawField; FIELDS],
}

const _: () = {
    assert!(std::mem::offset_of!(RawRule<1>, priority) == c::ACL_RULE_PRIORITY);
    assert!(std::mem::offset_of!(RawRule<1>, userdata) == c::ACL_RULE_USERDATA);
    assert!(std::mem::offset_of!(RawRule<1>, fields) == c::ACL_RULE_FIELDS);
    assert!(size_of::<RawField>() == c::ACL_FIELD_SIZE);
    assert!(std::mem::offset_of!(RawField, mask_range) == c::ACL_FIELD_MASK_RANGE);
};

impl<const FIELDS: usize> RawRule<FIELDS> {
    /// A rule in DPDK's form, if it fits the layout and the ACL's categories.
    pub(super) fn new(
        rule: &Rule<FIELDS>,
        layout: &Layout<FIELDS>,
        categories: usize,
    ) -> Result<Self, RuleError> {
        if !(1..=MAX_PRIORITY).contains(&rule.priority) {
            return Err(RuleError::Priority(rule.priority));
        }
        if rule.categories == 0 || rule.categories >> categories != 0 {
            return Err(RuleError::Categories { given: rule.categories, categories });
        }
        let mut fields =
            [RawField { value: RawValue([0; 8]), mask_range: RawValue([0; 8]) }; FIELDS];
        for (index, raw) in fields.iter_mut().enumerate() {
            *raw = field(index, &layout.fields[index], rule.fields[index])?;
        }
        Ok(Self {
            category_mask: rule.categories,
            priority: rule.priority,
            userdata: rule.userdata.get(),
            fields,
        })
    }
}

fn field(index: usize, field: &Field, asked: Match) -> Result<RawField, RuleError> {
    let bits = 8 * field.size;
    let (value, mask_range) = match (field.matching, asked) {
        (Matching::Prefix | Matching::Bits, Match::Any) => (0, 0),
        (Matching::Range, Match::Any) => (0, field.max()),
        (Matching::Prefix, Match::Prefix { value, len }) => {
            if usize::from(len) > bits {
                return Err(RuleError::Prefix { field: index, bits, len });
            }
            (value, u64::from(len))
        }
        (Matching::Range, Match::Range { low, high }) => {
            if low > high {
                return Err(RuleError::Empty { field: index, low, high });
            }
            (low, high)
        }
        (Matching::Bits, Match::Bits { value, mask }) => (value, mask),
        (expected, _) => return Err(RuleError::Kind { field: index, expected }),
    };
    for given in [value, mask_range] {
        if given > field.max() {
            return Err(RuleError::TooLarge { field: index, bits, given });
        }
    }
    // A prefix length is read as a number of 32 or 64 bits, whatever the size; the rest by size.
    let mask_size = if field.matching == Matching::Prefix { 8 } else { field.size };
    Ok(RawField { value: raw(value, field.size), mask_range: raw(mask_range, mask_size) })
}

/// A number of `size` bytes, in host byte order.
fn raw(value: u64, size: usize) -> RawValue {
    let mut bytes = [0; 8];
    let number = value.to_ne_bytes();
    let start = if cfg!(target_endian = "big") { 8 - size } else { 0 };
    bytes[..size].copy_from_slice(&number[start..start + size]);
    RawValue(bytes)
}
