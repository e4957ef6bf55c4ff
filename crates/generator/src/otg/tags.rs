// SPDX-License-Identifier: BSD-3-Clause
//! OTG's metric tags: bits of header fields by whose values a flow's frames are counted.
//!
//! Tags in `packet` are about what is sent, those in `egress_packet` about what is received. The
//! headers of `egress_packet` say where fields are in received frames; values that are given there
//! have no meaning, as the model says.

use std::sync::Arc;

use packet::field::Pattern;
use packet::frame::{FieldValue, FrameSpec, Header};
use packet::headers::{self, Auto, FieldKind};
use packet::writer::FrameWriter;

use super::headers::{TAGS, TPID, TYPE};
use super::walk::Node;
use crate::plan::FlowPlan;
use crate::tags::{Check, MAX_ALL_ROWS, MAX_BITS, MAX_ROWS, Place, RX_NAME, Tag, Tags, bits};

/// Most tags of a flow.
const MAX_TAGS: usize = 16;
/// Longest name of a tag, in bytes.
const MAX_NAME: usize = 64;

/// Reads the tags of a flow. `packet` is the list of headers that `spec` was read from, and `egress` that of
/// received frames. `resolved`: gateways say the Ethernet destinations.
pub fn read(
    packet: Option<&Node<'_>>,
    spec: &FrameSpec,
    egress: Option<&Node<'_>>,
    rx_name: bool,
    resolved: bool,
) -> Option<Tags> {
    let mut tags = Tags { rx_name, ..Tags::default() };
    let mut good = true;
    for found in packet.map(|node| all(node, &spec.headers)).unwrap_or_default() {
        if resolved && found.header == 0 && found.kind.is_some_and(|kind| kind.name == "dst") {
            good = false;
            let what = "not supported for addresses of gateways, which are known when the flow starts; give egress_packet the tag";
            let _: Option<()> = found.node.fault(what);
            continue;
        }
        good &= found.sent(spec).and_then(|tag| add(&mut tags, &found.node, tag)).is_some();
    }
    if let Some(node) = egress {
        // Headers that cannot be in a frame are at fault, not only those with tags.
        let headers = super::headers::read(node)?;
        let found = all(node, &headers);
        if let Some(last) = found.iter().map(|found| found.header).max() {
            tags.shape = shape(headers.get(..=last).unwrap_or_default());
        }
        for found in found {
            let tag = found.received(&headers);
            good &= tag.and_then(|tag| add(&mut tags, &found.node, tag)).is_some();
        }
    }
    good.then_some(tags)
}

/// Gives each flow with tags memory for its rows, and warns where there may be more values than rows.
pub fn share_rows(config: &Node<'_>, flows: &mut [FlowPlan], ports: usize) {
    let tagged = flows.iter().filter(|flow| flow.tags.is_some()).count();
    let share = (MAX_ALL_ROWS / tagged.max(1)).min(MAX_ROWS);
    for flow in flows {
        let receivers = if flow.rx.is_empty() { ports } else { flow.rx.len() };
        let Some(tags) = flow.tags.as_mut().and_then(Arc::get_mut) else { continue };
        let most = tags.most_rows(receivers);
        tags.rows = usize::try_from(most).map_or(share, |most| most.min(share));
        // Received fields may have any value: nearly every flow with one would get a warning.
        let sent = tags.most_sent(receivers);
        if sent > share as u128 {
            config.warn(format!(
                "flow {:?}: its metric tags may have {sent} values; the first {share} that are seen have rows of their own, \
                 all others count in one row with the value \"other\"",
                flow.name
            ));
        }
    }
}

fn add(tags: &mut Tags, node: &Node<'_>, tag: Tag) -> Option<()> {
    let bits: u32 = tags.fields.iter().map(|tag| tag.bits).sum();
    if tags.names().any(|name| name == tag.name) || tag.name == RX_NAME {
        return node.child_fault("name", "another tag of the flow has this name");
    }
    if tags.fields.len() >= MAX_TAGS {
        return node.fault(format!("a flow has {MAX_TAGS} tags at most"));
    }
    if bits + tag.bits > MAX_BITS {
        let what =
            format!("all tags of a flow have {MAX_BITS} bits at most; so far there are {bits}");
        return node.child_fault("length", &what);
    }
    tags.fields.push(tag);
    Some(())
}

/// A tag in the JSON, and the field that it is about.
struct Found<'a> {
    node: Node<'a>,
    /// Index of the header that has the field.
    header: usize,
    /// The field; none in a custom header.
    kind: Option<&'static FieldKind>,
}

/// The tags in a list of headers.
fn all<'a>(list: &Node<'a>, stack: &[Header]) -> Vec<Found<'a>> {
    let mut found = Vec::new();
    // An empty list stands for a header without tags.
    let nodes = list.list().unwrap_or_default();
    // Parts of a header, such as segments, have no node of their own in the list.
    let whole = stack.iter().enumerate().filter(|(_, header)| !header.kind().is_part());
    for (node, (header, own)) in nodes.iter().zip(whole) {
        let Some(object) = node.get(own.kind().name) else { continue };
        if own.kind() == &headers::CUSTOM {
            let tags = tags_of(&object);
            found.extend(tags.map(|node| Found { node, header, kind: None }));
        }
        for kind in own.kind().fields {
            let is_tag = own.kind() == &headers::VLAN && kind.name == TYPE;
            let path = if is_tag { TPID } else { kind.name };
            let field = path.split('.').try_fold(object.clone(), |node, name| node.get(name));
            for node in field.iter().flat_map(tags_of) {
                // A tag's own type stands in the header before it.
                let header = if is_tag { header.wrapping_sub(1) } else { header };
                let before = stack.get(header).map(Header::kind);
                let kind =
                    if is_tag { before.and_then(|kind| kind.field(TYPE)) } else { Some(kind) };
                match kind {
                    Some(_) => found.push(Found { node, header, kind }),
                    None => drop(node.fault::<()>("there is no ethernet or vlan header before this one, which would have the field")),
                }
            }
        }
    }
    found
}

fn tags_of<'a>(object: &Node<'a>) -> impl Iterator<Item = Node<'a>> + use<'a> {
    let list = object.get("metric_tags").and_then(|node| node.list());
    list.unwrap_or_default().into_iter()
}

impl Found<'_> {
    /// Its name, and which bits: how many after the first bit of the field, and how many in all. The field has
    /// `width` bits.
    fn read(&self, width: usize, default: usize) -> Option<(String, usize, u32)> {
        let object = self.node.object(&["name", "offset", "length"])?;
        let name = object.required("name").and_then(|node| {
            let name = node.text()?;
            let good = (1..=MAX_NAME).contains(&name.len()) && !name.contains(char::is_control);
            match good {
                true => Some(name.to_owned()),
                false => {
                    node.fault(format!("must be 1 to {MAX_NAME} bytes without control characters"))
                }
            }
        });
        let number = |key, default, least| {
            object
                .get(key)
                .map_or(Some(default as u64), |node| node.integer(least, u32::MAX.into()))
        };
        let (offset, length) = (number("offset", 0, 0), number("length", default, 1));
        let (name, offset, length) = (name?, offset?, length?);
        if offset + length > width as u64 {
            return object.fault(format!(
                "offset {offset} and length {length} reach past the {width} bits that the field has"
            ));
        }
        match u32::try_from(length) {
            Ok(length @ ..=128) => Some((name, offset as usize, length)),
            _ => object.child_fault("length", "a tag has 128 bits at most"),
        }
    }

    /// The tag, with its first bit in a frame with these headers, and how many bits of the field come after it.
    fn placed(&self, stack: &[Header]) -> Option<(Tag, usize, u32)> {
        let header = stack.get(self.header)?;
        let before: usize = stack.iter().take(self.header).map(Header::len).sum();
        let (start, width) = match self.kind {
            Some(kind) => (kind.offset_bits, kind.bits as usize),
            None => (0, 8 * header.len()),
        };
        if width == 0 || start + width > 8 * header.len() {
            return self.node.fault("the field is not in the frame");
        }
        let default = if self.kind.is_some() { width } else { 1 };
        let (name, offset, bits) = self.read(width, default)?;
        let first = 8 * before + start + offset;
        let tag = Tag { name, bits, place: Place::Received(first) };
        Some((tag, first, (width - offset) as u32 - bits))
    }

    fn received(&self, stack: &[Header]) -> Option<Tag> {
        self.placed(stack).map(|(tag, ..)| tag)
    }

    /// The tag of what is sent.
    fn sent(&self, spec: &FrameSpec) -> Option<Tag> {
        let (tag, first, shift) = self.placed(&spec.headers)?;
        let value = self.kind.and_then(|kind| spec.headers.get(self.header)?.get(kind.name));
        let varies = |pattern: &&Pattern| !pattern.is_constant();
        let pattern = match value {
            Some(FieldValue::Pattern(pattern)) => Some(pattern).filter(varies),
            _ => None,
        };
        let auto = self.kind.map_or(Auto::Default, |kind| kind.auto);
        let place = match (pattern, self.kind) {
            (Some(pattern), Some(kind)) => match pattern.course(kind.max()) {
                Some(course) => Place::Sent(course, shift),
                None => {
                    return self.node.fault(
                        "not supported for more than 65536 random values; give egress_packet the tag",
                    );
                }
            },
            _ if matches!(auto, Auto::Length(_)) => {
                return self.node.fault(
                    "not supported for a length, which follows from the frame's size; give egress_packet the tag",
                );
            }
            // All frames have what the first has.
            _ => {
                let found = bits(&first_frame(spec)?, first, tag.bits)?;
                Place::Sent(Pattern::Value(found).course(u128::MAX)?, 0)
            }
        };
        Some(Tag { place, ..tag })
    }
}

fn first_frame(spec: &FrameSpec) -> Option<Vec<u8>> {
    let mut frames = [Vec::new()];
    FrameWriter::new(spec, 0).ok()?.write(&mut frames, 0, false);
    frames.into_iter().next()
}

/// What shows that a frame has these headers: the types by which each names the next, and the lengths of IPv4's.
fn shape(stack: &[Header]) -> Vec<Check> {
    let mut checks = Vec::new();
    let mut start = 0;
    for (at, header) in stack.iter().enumerate() {
        let behind = stack.iter().skip(at + 1).map(Header::kind);
        let next = behind.filter(|_| !header.kind().is_part()).find(|kind| !kind.is_part());
        for field in header.kind().fields {
            let numbers = next.map(|next| next.numbers);
            let any_of: Vec<u128> = match field.auto {
                Auto::EtherType if next == Some(&headers::VLAN) => TAGS.to_vec(),
                Auto::EtherType => number(numbers.and_then(|next| next.ether_type)),
                Auto::IpProtocol => number(numbers.and_then(|next| next.ip_protocol)),
                Auto::PppProtocol => number(numbers.and_then(|next| next.ppp_protocol)),
                Auto::BottomOfStack => number(next.map(|next| u8::from(next != header.kind()))),
                Auto::HeaderWords => number(next.map(|_| (header.len() / 4) as u8)),
                _ => Vec::new(),
            };
            if !any_of.is_empty() {
                let first_bit = 8 * start + field.offset_bits;
                checks.push(Check { first_bit, bits: field.bits, any_of });
            }
        }
        start += header.len();
    }
    checks
}

fn number<T: Into<u128>>(found: Option<T>) -> Vec<u128> {
    found.map(Into::into).into_iter().collect()
}

#[cfg(test)]
mod tests;
