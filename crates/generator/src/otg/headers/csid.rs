// SPDX-License-Identifier: BSD-3-Clause
//! OTG's containers of compressed segment identifiers (CSIDs, the model's uSIDs): addresses that are a locator block
//! and the identifiers behind it (RFC 9800, sections 3 and 4).

use packet::field::Pattern;
use packet::frame::{FieldValue, Header};
use packet::headers::{Auto, FieldKind, Format, SEGMENT, Transit};

use super::super::walk::{Node, Object};
use super::super::{hex, pattern};
use super::routing;

/// Longest locator block, in bits.
const MAX_LOCATOR: u32 = 112;
/// Bits of an address.
const BITS: u32 = 128;

const LENGTH: FieldKind = FieldKind {
    name: "locator_length",
    offset_bits: 0,
    bits: 8,
    format: Format::Number,
    default: 32,
    default_is_auto: false,
    auto: Auto::Default,
    transit: Transit::Kept,
};
const LOCATOR: FieldKind =
    FieldKind { name: "locator", bits: BITS, format: Format::Ipv6, default: 0, ..LENGTH };

/// An address of one locator block.
struct Container {
    address: Pattern,
    /// The identifiers as they are sent, and as the last hop receives them: the last one alone.
    bits: Option<(u128, u128)>,
}

/// An entry of a segment list.
pub fn container(node: &Node<'_>) -> Option<Header> {
    let found = read(node, 0)?;
    let mut header = Header::new(&SEGMENT);
    header.set("segment", found.address).ok()?;
    if let Some((sent, received)) = found.bits {
        header.set_received(sent, received);
    }
    Some(header)
}

/// The destination of an IPv6 header, in place of `dst`.
pub fn destination(node: &Node<'_>, ipv6: &Object<'_>, header: &mut Header) -> Option<()> {
    let found = read(node, 1)?;
    if header.take("dst").is_some() {
        ipv6.child_warning("dst", "ignored: dst_usids give the destination");
    }
    header.set("dst", found.address).ok()?;
    if let Some((sent, received)) = found.bits {
        header.set_received(sent, received);
    }
    Some(())
}

/// Reads a container whose locator block has so many bits at least.
fn read(node: &Node<'_>, least: u32) -> Option<Container> {
    let object = node.object(&["locator", "locator_length", "usids"])?;
    let length = length(&object, least);
    let ids = match object.get("usids") {
        Some(node) => identifiers(&node),
        None => Some(Vec::new()),
    };
    let (length, ids) = (length?, ids?);
    let width = ids.first().map_or(0, |id| 8 * id.len() as u32);
    let numbers = ids.iter().map(|id| id.iter().fold(0, |n, byte| n << 8 | u128::from(*byte)));
    let numbers: Vec<u128> = numbers.collect();
    let count = numbers.len() as u32;
    let packed = numbers.iter().fold(0, |all, number| all << width | number);
    let fault = |what: String| object.child_fault::<Container>("usids", &what);
    if length == 0 {
        return match BITS.checked_div(width) {
            Some(slots) if slots == count => {
                Some(Container { address: Pattern::Value(packed), bits: None })
            }
            Some(slots) => fault(format!(
                "{count} identifiers of {width} bits: without a locator, {slots} fill an entry"
            )),
            None => fault("must be there without a locator, and fill the entry".to_owned()),
        };
    }
    if length + width * count > BITS {
        return fault(format!(
            "{count} identifiers of {width} bits behind a locator of {length} bits are more than the {BITS} bits of \
             an address"
        ));
    }
    if numbers.contains(&0) {
        return fault("0 marks the end of the identifiers: leave it out".to_owned());
    }
    let behind = BITS - length;
    let place = |value: u128, count: u32| match count {
        0 => 0,
        _ => value << (behind - width * count),
    };
    let sent = place(packed, count);
    let last = place(numbers.last().copied().unwrap_or(0), count.min(1));
    let locator = match object.get("locator") {
        Some(node) => locator(&node, behind)?,
        None if least > 0 => return object.child_fault("locator", "is missing"),
        None => Pattern::Value(0),
    };
    Some(Container { address: with_bits(locator, sent), bits: (count > 1).then_some((sent, last)) })
}

fn length(object: &Object<'_>, least: u32) -> Option<u32> {
    let Some(node) = object.get(LENGTH.name) else { return Some(LENGTH.default as u32) };
    let value = match pattern::read(&node, &LENGTH)? {
        FieldValue::Pattern(pattern) => routing::constant(&pattern),
        _ => None,
    };
    match value {
        Some(bits) if (u128::from(least)..=u128::from(MAX_LOCATOR)).contains(&bits) => {
            Some(bits as u32)
        }
        Some(bits) => node.fault(format!("{bits} is not supported: {least} to {MAX_LOCATOR} bits")),
        None => node.fault("must be one value: the identifiers stand behind the locator"),
    }
}

/// Identifiers of one width, 16 or 32 bits.
fn identifiers(node: &Node<'_>) -> Option<Vec<Vec<u8>>> {
    // As many as fit without a locator.
    let list = node.list_of(8)?;
    let all: Vec<Option<Vec<u8>>> = list.iter().map(hex::read).collect();
    let all = all.into_iter().collect::<Option<Vec<Vec<u8>>>>()?;
    let width = all.first().map_or(2, Vec::len);
    match [2, 4].contains(&width) && all.iter().all(|id| id.len() == width) {
        true => Some(all),
        false => node.fault("must have 4 hexadecimal digits each (16 bits), or 8 (32 bits)"),
    }
}

/// The locators, with zeros in the last `behind` bits.
fn locator(node: &Node<'_>, behind: u32) -> Option<Pattern> {
    let FieldValue::Pattern(pattern) = pattern::read(node, &LOCATOR)? else {
        return node.fault("must be a value or a pattern");
    };
    let low = (1u128 << behind) - 1;
    // Steps of the low bits, which are not sent, must not carry into the locator.
    let way = |step: u128, count: u64| (step & low).checked_mul(u128::from(count.max(1) - 1));
    let carries = || {
        node.fault(format!(
            "the step counts in bits behind the locator's {}, which are those of identifiers: choose a \
             multiple of 2^{behind}",
            BITS - behind
        ))
    };
    match pattern {
        Pattern::Value(value) => Some(Pattern::Value(value & !low)),
        Pattern::Values(values) => {
            Some(Pattern::Values(values.iter().map(|value| value & !low).collect()))
        }
        Pattern::Increment { start, step, count } => {
            match way(step, count).is_some_and(|way| way <= low - (start & low)) {
                true => Some(Pattern::Increment { start: start & !low, step: step & !low, count }),
                false => carries(),
            }
        }
        Pattern::Decrement { start, step, count } => {
            match way(step, count).is_some_and(|way| way <= start & low) {
                true => Some(Pattern::Decrement { start: start & !low, step: step & !low, count }),
                false => carries(),
            }
        }
        Pattern::Random { .. } => node.fault("random locators are not supported"),
    }
}

/// The same numbers with these low bits, which are zeros in all of them.
fn with_bits(pattern: Pattern, bits: u128) -> Pattern {
    match pattern {
        Pattern::Value(value) => Pattern::Value(value | bits),
        Pattern::Values(values) => {
            Pattern::Values(values.iter().map(|value| value | bits).collect())
        }
        Pattern::Increment { start, step, count } => {
            Pattern::Increment { start: start | bits, step, count }
        }
        Pattern::Decrement { start, step, count } => {
            Pattern::Decrement { start: start | bits, step, count }
        }
        other => other,
    }
}
