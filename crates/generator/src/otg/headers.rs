// SPDX-License-Identifier: BSD-3-Clause
//! OTG's stack of packet headers, read by the tables of [`packet::headers`]: whatever has a table
//! can be sent.

use packet::field::Pattern;
use packet::frame::{FieldValue, Header};
use packet::headers::{self, Format, HeaderKind};

use super::walk::Node;
use super::{hex, ipv4_options, pattern};

mod csid;
mod gtp;
mod routing;

/// Most headers of a stack.
const MAX_HEADERS: usize = 64;

/// The stack of a flow's frames. An empty list is an Ethernet header, as the model says.
pub fn read(node: &Node<'_>) -> Option<Vec<Header>> {
    let list = node.list_of(MAX_HEADERS)?;
    if list.is_empty() {
        return Some(vec![Header::new(&headers::ETHERNET)]);
    }
    let stack: Vec<Option<(Header, Parts)>> = list.iter().map(header).collect();
    let stack = stack.into_iter().collect::<Option<Vec<(Header, Parts)>>>()?;
    let (mut stack, parts): (Vec<Header>, Vec<Parts>) = stack.into_iter().unzip();
    name_tags(&list, &mut stack)?;
    let whole = stack.into_iter().zip(parts);
    Some(whole.flat_map(|(header, parts)| std::iter::once(header).chain(parts)).collect())
}

/// True if metric tags are all that a script says of a field.
fn has_only_tags(node: &Node<'_>) -> bool {
    let object = node.raw_object();
    object.is_some_and(|object| object.keys().all(|key| key == "metric_tags") && !object.is_empty())
}

/// The entries of a header's list, each of which the stack has as a header of its own.
type Parts = Vec<Header>;

/// The field of a table for the type of what follows.
pub(super) const TYPE: &str = "ether_type";
/// The model's name for a VLAN tag's own type. It has none for the type of what follows.
pub(super) const TPID: &str = "tpid";
/// Types of VLAN tags: those of IEEE 802.1Q, and what devices had before them.
pub(super) const TAGS: [u128; 5] = [0x8100, 0x88a8, 0x9100, 0x9200, 0x9300];
/// Leaves a type to the generator.
const AUTOMATIC: FieldValue = FieldValue::Pattern(Pattern::Value(0xffff));

/// Moves the types of VLAN tags to where they stand in a frame: in the header before each.
fn name_tags(nodes: &[Node<'_>], stack: &mut [Header]) -> Option<()> {
    let mut good = true;
    for (at, node) in nodes.iter().enumerate() {
        let (before, rest) = stack.split_at_mut(at);
        let tag = rest.first_mut().filter(|header| header.kind() == &headers::VLAN);
        let Some(own) = tag.and_then(|tag| tag.take(TYPE)).filter(|own| *own != AUTOMATIC) else {
            continue;
        };
        let has_type =
            |header: &&mut Header| [&headers::ETHERNET, &headers::VLAN].contains(&header.kind());
        let fault = match before.last_mut().filter(has_type) {
            _ if !are_tags(&own) => {
                "must be the type of a VLAN tag: 0x8100, 0x88a8, 0x9100, 0x9200 or 0x9300 (value or values); the \
                 type of what follows is set by itself"
            }
            None => "there is no ethernet or vlan header before this one, which would have it",
            Some(header) => match header.take(TYPE) {
                Some(other) if other != own && other != AUTOMATIC => {
                    "the ethernet header before it has another ether_type"
                }
                _ => {
                    good &= header.set(TYPE, own).is_ok();
                    continue;
                }
            },
        };
        good = node.child_fault::<()>("vlan.tpid", fault).is_some();
    }
    good.then_some(())
}

fn are_tags(types: &FieldValue) -> bool {
    match types {
        FieldValue::Pattern(Pattern::Value(value)) => TAGS.contains(value),
        FieldValue::Pattern(Pattern::Values(values)) => {
            values.iter().all(|value| TAGS.contains(value))
        }
        _ => false,
    }
}

fn header(node: &Node<'_>) -> Option<(Header, Parts)> {
    let Some(map) = node.raw_object() else { return node.fault("must be an object") };
    // Said or inferred; the model's default is Ethernet.
    let name = match map.get("choice").filter(|choice| !choice.is_null()) {
        Some(choice) => choice.as_str(),
        None => Some(map.keys().find(|key| *key != "choice").map_or("ethernet", String::as_str)),
    };
    let Some(name) = name else { return node.child_fault("choice", "must be a string") };
    let Some(kind) = headers::kind(name) else {
        let names: Vec<&str> = headers::KINDS.iter().map(|kind| kind.name).collect();
        let shown: String = name.chars().take(60).collect();
        let what = format!("not supported; the headers are {}", names.join(", "));
        return node.child_fault(&shown, &what);
    };
    let object = node.object(&["choice", kind.name])?;
    if kind == &headers::CUSTOM {
        return Some((custom(&object.required(kind.name)?)?, Parts::new()));
    }
    if kind == &headers::IPV6_EXTENSION_HEADER {
        return routing::read(&object.inner(kind.name, routing::FIELDS)?);
    }
    let (mut header, mut parts) = (Header::new(kind), Parts::new());
    if let Some(node) = object.get(kind.name) {
        fields(&node, &mut header, "")?;
        if kind == &headers::GTPV1 {
            parts = gtp::extensions(&node, &mut header)?;
        }
    }
    Some((header, parts))
}

fn custom(node: &Node<'_>) -> Option<Header> {
    let object = node.object(&["bytes", "metric_tags"])?;
    let node = object.required("bytes")?;
    let bytes = hex::read(&node)?;
    match bytes.len() {
        0 => node.fault("must have at least one byte"),
        len if len > packet::size::MAX_LEN_WITH_FCS => {
            node.fault(format!("{len} bytes are more than a frame has"))
        }
        _ => Some(Header::custom(bytes)),
    }
}

/// Of the objects that are a choice between their fields, the default.
fn alternative(kind: &HeaderKind, prefix: &str) -> Option<&'static str> {
    match (kind.name, prefix) {
        ("icmp" | "icmpv6", "") => Some("echo"),
        ("ipv4", "priority") => Some("dscp"),
        _ => None,
    }
}

/// Fields of the model that have no place in a table.
fn extras(kind: &HeaderKind, prefix: &str) -> &'static [&'static str] {
    match (kind.name, prefix) {
        ("ipv4", "") => &["options"],
        ("ipv6", "") => &["dst_usids"],
        ("gtpv1", "") => &["extension_headers"],
        _ => &[],
    }
}

/// Names of the fields and objects below a path.
fn children(kind: &HeaderKind, prefix: &str) -> Vec<&'static str> {
    let mut names = Vec::new();
    for field in kind.fields {
        let below = match prefix {
            "" => Some(field.name),
            _ => field.name.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('.')),
        };
        let name = below.and_then(|path| path.split('.').next());
        names.extend(name.filter(|name| names.last() != Some(name)));
    }
    names
}

/// Sets the fields of the object at a path, and those below it.
fn fields(node: &Node<'_>, header: &mut Header, prefix: &str) -> Option<()> {
    let kind = header.kind();
    let is_tag = kind == &headers::VLAN;
    let mut names = children(kind, prefix);
    if is_tag {
        names.iter_mut().filter(|name| **name == TYPE).for_each(|name| *name = TPID);
    }
    let default = alternative(kind, prefix);
    let mut known = [names.as_slice(), extras(kind, prefix)].concat();
    known.extend(default.map(|_| "choice"));
    let object = node.object(&known)?;
    let names = match default {
        Some(default) => vec![object.choice(&names, Some(default))?],
        None => names,
    };
    let mut good = true;
    for name in names {
        let Some(child) = object.get(name) else { continue };
        let path = match name {
            // Until all headers are read.
            TPID if is_tag => TYPE.to_owned(),
            _ if prefix.is_empty() => name.to_owned(),
            _ => format!("{prefix}.{name}"),
        };
        let set = match kind.field(&path) {
            // An address with tags alone is not given: in a flow between devices it is theirs.
            Some(field) if field.format != Format::Number && has_only_tags(&child) => Some(()),
            Some(field) => pattern::read_tagged(&child, field).and_then(|value| {
                header.set(&path, value).map_or_else(|error| child.fault(error.to_string()), Some)
            }),
            None => fields(&child, header, &path),
        };
        good &= set.is_some();
    }
    if let Some(node) = object.get("dst_usids") {
        good &= csid::destination(&node, &object, header).is_some();
    }
    if let Some(node) = object.get("options") {
        match ipv4_options::read(&node) {
            Some(bytes) => header.set_options(&bytes),
            None => good = false,
        }
    }
    good.then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::otg::walk::Faults;
    use packet::frame::{Checksum, FrameSpec};
    use packet::payload::Payload;
    use packet::size::Sizes;
    use packet::writer::FrameWriter;
    use serde_json::{Map, Value, json};

    fn stack(json: &Value) -> Result<Vec<Header>, String> {
        let faults = Faults::default();
        let stack = read(&Node::root(json, &faults));
        faults.finish(stack).map_err(|error| error.errors.join("; "))
    }

    fn fault(json: Value) -> String {
        stack(&json).unwrap_err()
    }

    fn bytes(json: &Value, size: usize) -> Vec<u8> {
        let spec = FrameSpec {
            headers: stack(json).unwrap(),
            sizes: Sizes::Fixed(size),
            payload: Payload::default(),
            signature: None,
        };
        let mut frames = [Vec::new()];
        FrameWriter::new(&spec, 0).unwrap().write(&mut frames, 0, false);
        frames.into_iter().next().unwrap()
    }

    #[test]
    fn every_field_of_every_table_can_be_set() {
        let others = ["custom", "ipv6_extension_header"];
        for kind in headers::KINDS.iter().filter(|kind| !others.contains(&kind.name)) {
            let of_a_tag = |name| *kind == &headers::VLAN && name == TYPE;
            for field in kind.fields.iter().filter(|field| !of_a_tag(field.name)) {
                let value = match field.format {
                    _ if field.is_checksum() => json!({"choice": "custom", "custom": 1}),
                    headers::Format::Number => {
                        json!({"choice": "value", "value": field.max() as u64})
                    }
                    headers::Format::Mac => json!({"value": "00:00:00:00:00:01"}),
                    headers::Format::Ipv4 => json!({"value": "0.0.0.1"}),
                    headers::Format::Ipv6 => json!({"value": "::1"}),
                };
                let wrap = |json: Value, name: &str| {
                    Value::Object(Map::from_iter([(name.to_owned(), json)]))
                };
                let nested = field.name.rsplit('.').fold(value, wrap);
                let json = json!([{"choice": kind.name, kind.name: nested}]);
                let wanted = match field.is_checksum() {
                    true => Header::new(kind).with(field.name, Checksum::Custom(1)),
                    false if field.format == headers::Format::Number => {
                        Header::new(kind).with(field.name, field.max())
                    }
                    false => Header::new(kind).with(field.name, 1),
                };
                assert_eq!(stack(&json), Ok(vec![wanted.unwrap()]), "{} {}", kind.name, field.name);
            }
        }
    }

    #[test]
    fn a_stack_becomes_the_frame_that_it_describes() {
        let frame = bytes(
            &json!([
                {"choice": "ethernet", "ethernet": {"dst": {"value": "02:00:00:00:00:01"}}},
                {"choice": "vlan", "vlan": {"id": {"value": 7}, "priority": {"value": 5}}},
                {"ipv4": {"priority": {"choice": "dscp", "dscp": {"phb": {"value": 46}, "ecn": {"value": 1}}}}},
                {"choice": "udp"},
                {"choice": "vxlan", "vxlan": {"vni": {"value": 0x1234}}},
                {"choice": "custom", "custom": {"bytes": "0xde ad:BE ef"}},
            ]),
            128,
        );
        assert_eq!(frame[12..18], [0x81, 0, 0xa0, 7, 8, 0]);
        assert_eq!(frame[18..20], [0x45, 46 << 2 | 1]);
        assert_eq!(frame[40..42], 4789u16.to_be_bytes(), "the port of what follows");
        assert_eq!(frame[46..58], [8, 0, 0, 0, 0, 0x12, 0x34, 0, 0xde, 0xad, 0xbe, 0xef]);
        assert_eq!(bytes(&json!([]), 64), bytes(&json!([{"choice": "ethernet"}]), 64));
        assert_eq!(bytes(&json!([{}]), 64), bytes(&json!([{"ethernet": {}}]), 64));
    }

    #[test]
    fn a_tags_type_stands_before_it() {
        let types = |outer: Value, inner: Value| {
            json!([
                {"choice": "ethernet"},
                {"vlan": {"id": {"value": 1}, "tpid": outer}},
                {"vlan": {"id": {"value": 2}, "tpid": inner}},
                {"choice": "ipv4"},
            ])
        };
        let found = |outer, inner| {
            let frame = bytes(&types(outer, inner), 64);
            [12, 16, 20].map(|at| u16::from_be_bytes([frame[at], frame[at + 1]]))
        };
        let of = |value: u16| json!({"value": value});
        assert_eq!(found(of(0x88a8), of(0x8100)), [0x88a8, 0x8100, 0x0800]);
        assert_eq!(found(of(0x88a8), json!({})), [0x88a8, 0x8100, 0x0800]);
        assert_eq!(found(of(0xffff), of(0x9100)), [0x8100, 0x9100, 0x0800]);
        let turns = json!({"choice": "values", "values": [0x9200, 0x8100]});
        assert_eq!(found(turns, of(0x9300)), [0x9200, 0x9300, 0x0800]);
        let with_type = |ether_type: u16| json!([{"ethernet": {"ether_type": of(ether_type)}}, {"vlan": {"tpid": of(0x88a8)}}]);
        assert_eq!(bytes(&with_type(0x88a8), 64)[12..14], [0x88, 0xa8]);
        let increment = json!({"choice": "increment", "increment": {"start": 0x8100}});
        for (json, wanted) in [
            (types(of(0x0800), json!({})), "[1].vlan.tpid: must be the type of a VLAN tag"),
            (types(json!({}), increment), "[2].vlan.tpid: must be the type of a VLAN tag"),
            (json!([{"vlan": {"tpid": of(0x8100)}}]), "[0].vlan.tpid: there is no ethernet"),
            (json!([{"ipv4": {}}, {"vlan": {"tpid": of(0x8100)}}]), "[1].vlan.tpid: there is no"),
            (with_type(0x8100), "[1].vlan.tpid: the ethernet header before it has another"),
            (json!([{}, {"vlan": {"ether_type": of(1)}}]), "[1].vlan.ether_type: not supported"),
        ] {
            let error = fault(json);
            assert!(error.contains(wanted), "{wanted}: {error}");
        }
    }

    #[test]
    fn alternatives_of_one_byte_exclude_each_other() {
        let priority = |json: Value| stack(&json!([{"ipv4": {"priority": json}}]));
        let raw = Header::new(&headers::IPV4).with("priority.raw", 255).unwrap();
        assert_eq!(priority(json!({"choice": "raw", "raw": {"value": 255}})), Ok(vec![raw]));
        let values = Pattern::Values(vec![1, 2]);
        let tos = Header::new(&headers::IPV4).with("priority.tos.precedence", values).unwrap();
        assert_eq!(priority(json!({"tos": {"precedence": {"values": [1, 2]}}})), Ok(vec![tos]));
        assert_eq!(priority(json!({"choice": "dscp"})), Ok(vec![Header::new(&headers::IPV4)]));
        let error = priority(json!({"choice": "dscp", "raw": {"value": 1}})).unwrap_err();
        assert!(error.contains("[0].ipv4.priority.raw: given, but the choice is dscp"), "{error}");
        let error = priority(json!({"dscp": {"phb": {"value": 64}}})).unwrap_err();
        assert!(error.contains("dscp.phb.value: must be a whole number from 0 to 63"), "{error}");
    }

    #[test]
    fn what_has_no_table_is_refused_by_name() {
        for (json, wanted) in [
            (json!({}), "must be a list"),
            (json!([7]), "[0]: must be an object"),
            (json!([{"choice": 7}]), "[0].choice: must be a string"),
            (json!([{"choice": "rsvp", "rsvp": {}}]), "[0].rsvp: not supported; the headers are"),
            (json!([{"snmpv2c": {}}]), "[0].snmpv2c: not supported; the headers are"),
            (json!([{"choice": "udp", "udp": {}, "tcp": {}}]), "[0].tcp: not supported"),
            (json!([{"udp": {"port": {}}}]), "[0].udp.port: not supported"),
            (json!([{"icmp": {"choice": "redirect"}}]), "[0].icmp.choice: \"redirect\" is not"),
            (json!([{"choice": "custom"}]), "[0].custom: is missing"),
            (json!([{"custom": {"bytes": "abc"}}]), "[0].custom.bytes: must be pairs"),
            (json!([{"custom": {"bytes": " "}}]), "[0].custom.bytes: must have at least one"),
            (json!([{"custom": {"bytes": "00".repeat(9217)}}]), "[0].custom.bytes: 9217 bytes"),
            (json!(vec![json!({}); 65]), "65 entries; at most 64"),
        ] {
            let error = fault(json);
            assert!(error.contains(wanted), "{wanted}: {error}");
        }
    }
}
