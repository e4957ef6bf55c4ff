// SPDX-License-Identifier: BSD-3-Clause
//! Which frames are captured: OTG's capture filters, compiled to comparisons of bytes.
//!
//! # What a list of filters means
//! The OTG model says that all filters of a list must match, but not how they are interpreted. They
//! are interpreted like this here:
//! - A filter names a header and compares fields of it. A frame without that header never matches,
//!   so that `vlan` without any field selects tagged frames. The n-th `vlan` is the n-th tag. `ipv4`
//!   and `ipv6` are found behind however many tags there are.
//! - `value` and `mask` are numbers, right-aligned in their field, and a mask's bit that is set
//!   is compared.
//! - A mask of zeros, which snappi sends when none was given, compares the whole field, unless the
//!   value is zero as well: such a field was not given. Some generators take a mask's bits as those
//!   to *ignore*; a mask of zeros means the same to both, and a value with bits outside of its mask
//!   is refused, so that no filter is silently read the other way round.
//! - `negate` is true if the compared bits differ. A missing header never matches, even with
//!   `negate`.
//! - The `offset` of a `custom` filter counts bits from the end of the filter before it in the list:
//!   of its header, or of the bits of another custom filter; the first counts from the frame's start.
//!
//! Matching reads the frame only as far as needed, allocates nothing, and is false for frames that
//! end before a field that is compared.

mod layer;

use std::ops::Range;

use thiserror::Error;

pub use layer::Layer;

/// Most bits that a custom filter compares.
pub const MAX_CUSTOM_BITS: u32 = 1024;
/// Furthest bit that a custom filter may start at.
pub const MAX_CUSTOM_OFFSET: u32 = 65_535 * 8;
/// Most VLAN tags that are walked through.
pub const MAX_TAGS: usize = 8;

const ETHERNET_LEN: usize = 14;
const TAG_LEN: usize = 4;
const IPV4_LEN: usize = 20;
const IPV6_LEN: usize = 40;

/// What a field is compared with. Numbers are big-endian bytes, of any length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The value to compare with.
    pub value: Vec<u8>,
    /// The bits that are compared; if none is set, all of them.
    pub mask: Vec<u8>,
    /// True if the bits must differ.
    pub negate: bool,
}

impl Wanted {
    /// Exactly this value.
    pub fn exactly(value: &[u8]) -> Self {
        Wanted { value: value.to_vec(), ..Wanted::default() }
    }
}

/// Why a filter is invalid.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum FilterError {
    /// A field that the header does not have.
    #[error("{layer} has no field {field:?} that a received frame could be compared by")]
    NoField {
        /// The header.
        layer: &'static str,
        /// What was asked for.
        field: String,
    },
    /// A value or a mask that is wider than its field.
    #[error("the {what} has {has} bits, the field {bits}")]
    TooWide {
        /// `value` or `mask`.
        what: &'static str,
        /// Its bits up to the highest that is set.
        has: u32,
        /// Those of the field.
        bits: u32,
    },
    /// A value with bits that its mask leaves out.
    #[error("the value has bits outside of the mask; bits set in a mask are those compared")]
    OutsideMask,
    /// A negation without anything compared.
    #[error("negate with value and mask 0 compares nothing; give a mask")]
    NegatesNothing,
    /// A custom filter out of bounds.
    #[error(
        "a custom filter compares 1 to {MAX_CUSTOM_BITS} bits, at most {MAX_CUSTOM_OFFSET} bits into the frame"
    )]
    CustomRange,
    /// More tags than are looked at.
    #[error("at most {MAX_TAGS} vlan filters are supported")]
    TooManyTags,
    /// IPv4 and IPv6 in one list.
    #[error("all filters must match, and no frame is both ipv4 and ipv6; remove one")]
    Contradiction,
    /// A field before any header.
    #[error("name a header before its fields")]
    NoHeader,
}

/// Where the offset of a comparison counts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Base {
    Frame,
    Network,
    Transport,
}

#[derive(Clone, Debug)]
struct Comparison {
    base: Base,
    /// In bytes.
    offset: usize,
    /// Which of the filter's patterns are compared with the bytes there.
    pattern: Range<usize>,
    /// Mask and value of up to eight bytes as a big-endian word, which is the quick way.
    word: Option<(u64, u64)>,
    negate: bool,
}

impl Comparison {
    #[inline]
    fn holds(&self, patterns: &[(u8, u8)], frame: &[u8], base: usize) -> bool {
        let Some(rest) = frame.get(base + self.offset..) else { return false };
        if let (Some((mask, value)), Some(word)) = (self.word, rest.first_chunk()) {
            return (u64::from_be_bytes(*word) & mask == value) != self.negate;
        }
        // Longer than a word, or near the frame's end.
        let (Some(bytes), Some(pattern)) =
            (rest.get(..self.pattern.len()), patterns.get(self.pattern.clone()))
        else {
            return false;
        };
        bytes.iter().zip(pattern).all(|(byte, (mask, value))| byte & mask == *value) != self.negate
    }
}

/// A compiled list of filters. The default matches every frame.
/// A filter, compiled from a list. The default matches every frame.
/// ```
/// use generator::capture::filter::{Filter, FilterBuilder, Layer, Wanted};
///
/// let mut list = FilterBuilder::default();
/// list.header(Layer::Ipv4)?;
/// list.field("protocol", &Wanted::exactly(&[17]))?;
/// let filter: Filter = list.build();
/// let mut frame = [0; 60];
/// frame[12..15].copy_from_slice(&[0x08, 0x00, 0x45]);
/// assert!(!filter.matches(&frame));
/// frame[23] = 17;
/// assert!(filter.matches(&frame));
/// # Ok::<(), generator::capture::filter::FilterError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Comparisons at fixed offsets, which are cheapest and come first.
    fixed: Box<[Comparison]>,
    /// Comparisons after the tags.
    layered: Box<[Comparison]>,
    /// Mask and value of every byte.
    patterns: Box<[(u8, u8)]>,
    /// Minimum length of a frame.
    least: usize,
    /// The number of tags that are required.
    tags: usize,
    /// The network layer that is required.
    network: Option<Layer>,
}

/// The headers after a frame's addresses.
struct Stack {
    tags: usize,
    ethertype: u16,
    network: usize,
}

impl Stack {
    #[inline]
    fn of(frame: &[u8]) -> Option<Stack> {
        let kind = |at: usize| Some(u16::from_be_bytes(frame.get(at..)?.first_chunk().copied()?));
        let (mut tags, mut at) = (0, ETHERNET_LEN - 2);
        loop {
            let ethertype = kind(at)?;
            if tags == MAX_TAGS || !matches!(ethertype, 0x8100 | 0x88a8 | 0x9100) {
                return Some(Stack { tags, ethertype, network: at + 2 });
            }
            (tags, at) = (tags + 1, at + TAG_LEN);
        }
    }

    /// Where the transport layer starts, if the whole network header is there.
    #[inline]
    fn transport(&self, frame: &[u8], layer: Layer) -> Option<usize> {
        let (ethertype, len) = match layer {
            Layer::Ipv6 => (0x86dd, IPV6_LEN),
            _ => (0x0800, usize::from(frame.get(self.network)? & 0xf) * 4),
        };
        let end = self.network + len;
        let whole = self.ethertype == ethertype && len >= IPV4_LEN && end <= frame.len();
        whole.then_some(end)
    }
}

impl Filter {
    /// Returns true if a frame, without FCS even if the capture's file has it, matches.
    #[inline]
    pub fn matches(&self, frame: &[u8]) -> bool {
        if frame.len() < self.least || !self.hold(&self.fixed, frame, [0; 3]) {
            return false;
        }
        if self.tags == 0 && self.network.is_none() {
            return true;
        }
        let Some(stack) = Stack::of(frame) else { return false };
        if stack.tags < self.tags {
            return false;
        }
        let Some(layer) = self.network else { return true };
        let Some(transport) = stack.transport(frame, layer) else { return false };
        self.hold(&self.layered, frame, [0, stack.network, transport])
    }

    /// Returns true if it matches every frame.
    pub fn is_empty(&self) -> bool {
        self.least == 0
    }

    #[inline]
    fn hold(&self, comparisons: &[Comparison], frame: &[u8], bases: [usize; 3]) -> bool {
        comparisons.iter().all(|comparison| {
            comparison.holds(&self.patterns, frame, bases[comparison.base as usize])
        })
    }
}

/// Compiles a list of filters, in the list's order.
#[derive(Clone, Debug)]
pub struct FilterBuilder {
    comparisons: Vec<Comparison>,
    patterns: Vec<(u8, u8)>,
    least: usize,
    tags: usize,
    network: Option<Layer>,
    /// The header whose fields come next, with its base and first bit.
    header: Option<(Layer, Base, u32)>,
    /// Base and bit where the filter before ends.
    end: (Base, u32),
}

impl Default for FilterBuilder {
    fn default() -> Self {
        FilterBuilder {
            comparisons: Vec::new(),
            patterns: Vec::new(),
            least: 0,
            tags: 0,
            network: None,
            header: None,
            end: (Base::Frame, 0),
        }
    }
}

impl FilterBuilder {
    /// Requires this header; the fields that follow are its fields.
    ///
    /// # Errors
    /// [`FilterError::Contradiction`] and [`FilterError::TooManyTags`].
    pub fn header(&mut self, layer: Layer) -> Result<(), FilterError> {
        let (base, start, end) = match layer {
            Layer::Ethernet => (Base::Frame, 0, (Base::Frame, ETHERNET_LEN)),
            Layer::Vlan => {
                if self.tags == MAX_TAGS {
                    return Err(FilterError::TooManyTags);
                }
                let start = ETHERNET_LEN + self.tags * TAG_LEN;
                self.tags += 1;
                (Base::Frame, start, (Base::Frame, start + TAG_LEN))
            }
            Layer::Ipv4 => (Base::Network, 0, (Base::Transport, 0)),
            Layer::Ipv6 => (Base::Network, 0, (Base::Network, IPV6_LEN)),
        };
        if base == Base::Network {
            if self.network.is_some_and(|other| other != layer) {
                return Err(FilterError::Contradiction);
            }
            self.network = Some(layer);
        }
        self.least = self.least.max(if base == Base::Frame { end.1 } else { ETHERNET_LEN });
        self.header = Some((layer, base, start as u32 * 8));
        self.end = (end.0, end.1 as u32 * 8);
        Ok(())
    }

    /// Compares a field of the last header by its name in OTG.
    ///
    /// # Errors
    /// A field that does not exist, or an invalid [`Wanted`].
    pub fn field(&mut self, name: &str, wanted: &Wanted) -> Result<(), FilterError> {
        let (layer, base, start) = self.header.ok_or(FilterError::NoHeader)?;
        let Some((_, at, bits)) = layer.table().iter().find(|(field, ..)| *field == name) else {
            let field = name.chars().take(60).collect();
            return Err(FilterError::NoField { layer: layer.name(), field });
        };
        self.compare(base, start + at, *bits, wanted)
    }

    /// Compares `bits` bits that begin `offset` bits after the previous filter.
    ///
    /// # Errors
    /// [`FilterError::CustomRange`], or an invalid [`Wanted`].
    pub fn custom(&mut self, offset: u32, bits: u32, wanted: &Wanted) -> Result<(), FilterError> {
        let (base, before) = self.end;
        let start = before.saturating_add(offset);
        if bits == 0 || bits > MAX_CUSTOM_BITS || start > MAX_CUSTOM_OFFSET {
            return Err(FilterError::CustomRange);
        }
        self.compare(base, start, bits, wanted)?;
        self.header = None;
        self.end = (base, start + bits);
        Ok(())
    }

    /// The filter.
    pub fn build(self) -> Filter {
        let (fixed, layered): (Vec<_>, Vec<_>) =
            self.comparisons.into_iter().partition(|comparison| comparison.base == Base::Frame);
        Filter {
            fixed: fixed.into(),
            layered: layered.into(),
            patterns: self.patterns.into(),
            least: self.least,
            tags: self.tags,
            network: self.network,
        }
    }

    fn compare(
        &mut self,
        base: Base,
        at: u32,
        bits: u32,
        wanted: &Wanted,
    ) -> Result<(), FilterError> {
        for (what, number) in [("value", &wanted.value), ("mask", &wanted.mask)] {
            let has = significant(number);
            if has > bits {
                return Err(FilterError::TooWide { what, has, bits });
            }
        }
        let everything = significant(&wanted.mask) == 0;
        if everything && significant(&wanted.value) == 0 {
            return if wanted.negate { Err(FilterError::NegatesNothing) } else { Ok(()) };
        }
        // One byte for each that the field touches; its last bit is `pad` bits before a byte's end.
        let end = at + bits;
        let (offset, pad) = (at as usize / 8, end.div_ceil(8) * 8 - end);
        let mut bytes = vec![(0, 0); (end.div_ceil(8) - at / 8) as usize];
        for i in 0..bits {
            let (mask, value) = (everything || bit(&wanted.mask, i), bit(&wanted.value, i));
            if value && !mask {
                return Err(FilterError::OutsideMask);
            }
            let place = pad + i;
            let last = bytes.len() - 1;
            if let Some((masks, values)) = bytes.get_mut(last - place as usize / 8) {
                *masks |= u8::from(mask) << (place % 8);
                *values |= u8::from(value) << (place % 8);
            }
        }
        if base == Base::Frame {
            self.least = self.least.max(offset + bytes.len());
        }
        let word = (bytes.len() <= 8).then(|| {
            let place = |i: usize, byte: u8| u64::from(byte) << (56 - 8 * i);
            bytes.iter().enumerate().fold((0, 0), |(masks, values), (i, (mask, value))| {
                (masks | place(i, *mask), values | place(i, *value))
            })
        });
        let first = self.patterns.len();
        self.patterns.extend(bytes);
        let pattern = first..self.patterns.len();
        self.comparisons.push(Comparison { base, offset, pattern, word, negate: wanted.negate });
        Ok(())
    }
}

/// Bit `i` of a number, the least significant first.
fn bit(number: &[u8], i: u32) -> bool {
    let byte = number.iter().rev().nth(i as usize / 8).copied().unwrap_or_default();
    byte >> (i % 8) & 1 == 1
}

/// Bits of a number up to the highest that is set.
fn significant(number: &[u8]) -> u32 {
    match number.iter().position(|byte| *byte != 0) {
        Some(first) => {
            let zeros = number.get(first).map_or(0, |byte| byte.leading_zeros());
            ((number.len() - first) * 8) as u32 - zeros
        }
        None => 0,
    }
}

#[cfg(test)]
mod tests;
