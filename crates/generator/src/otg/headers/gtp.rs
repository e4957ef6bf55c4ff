// SPDX-License-Identifier: BSD-3-Clause
//! OTG's extension headers of GTP version 1 (3GPP TS 29.281, section 5.2): a length in words of 4 bytes, contents,
//! and the type of what follows.

use packet::frame::{FieldValue, Header};
use packet::headers::{GTPV1_EXTENSION, GTPV1_SHORT_EXTENSION, HeaderKind};

use super::super::pattern;
use super::super::walk::{Node, Object};
use super::{Parts, routing};

const LIST: &str = "extension_headers";
/// Most extension headers of one header.
const MAX_EXTENSIONS: usize = 64;
/// The field of the header with the type of the first extension header; further types stand in extension headers.
const FIRST_TYPE: &str = "next_extension_header_type";
const NEXT_TYPE: &str = "next_extension_header";

/// The extension headers of a GTP header, which says that it has some.
pub fn extensions(node: &Node<'_>, header: &mut Header) -> Option<Parts> {
    let Some(object) = node.raw_object() else { return Some(Parts::new()) };
    let known: Vec<&str> = object.keys().map(String::as_str).collect();
    let object = node.object(&known)?;
    let nodes = object.get(LIST).map_or(Some(Vec::new()), |node| node.list_of(MAX_EXTENSIONS))?;
    if nodes.is_empty() {
        return Some(Parts::new());
    }
    match header.get("e_flag") {
        None | Some(FieldValue::Auto) => header.set("e_flag", 1).ok()?,
        Some(FieldValue::Pattern(flag)) if routing::constant(flag) == Some(1) => {}
        Some(_) => {
            return object
                .child_fault("e_flag", "must be 1, or be left out: there are extension_headers");
        }
    }
    let parts: Vec<Option<Header>> = nodes.iter().map(extension).collect();
    let parts = parts.into_iter().collect::<Option<Parts>>()?;
    warn_of_types(&object, header, &nodes, &parts);
    Some(parts)
}

/// Receivers read an extension header only if the header before it has its type.
fn warn_of_types(object: &Object<'_>, header: &Header, nodes: &[Node<'_>], parts: &Parts) {
    let missing = "is 0: receivers take the extension header behind it for payload";
    if first_value(header, FIRST_TYPE).unwrap_or(0) == 0 {
        object.child_warning(FIRST_TYPE, missing);
    }
    for (at, (node, part)) in nodes.iter().zip(parts).enumerate() {
        let kind = first_value(part, NEXT_TYPE).unwrap_or(0);
        let what = match (kind, at + 1 == parts.len()) {
            (0, false) => missing,
            (1.., true) => {
                "is not 0, but no extension header follows: receivers take payload for one"
            }
            _ => continue,
        };
        let known = [NEXT_TYPE, "extension_length", "contents"];
        if let Some(object) = node.object(&known) {
            object.child_warning(NEXT_TYPE, what);
        }
    }
}

/// The value that a field has in the first frame, if it was set.
fn first_value(header: &Header, name: &str) -> Option<u128> {
    match header.get(name)? {
        FieldValue::Pattern(pattern) => Some(pattern.first()),
        FieldValue::Auto | FieldValue::Checksum(_) => None,
    }
}

fn extension(node: &Node<'_>) -> Option<Header> {
    let object = node.object(&["extension_length", "contents", NEXT_TYPE])?;
    let kind = kind(&object)?;
    let mut header = Header::new(kind);
    let mut good = true;
    for field in kind.fields {
        let Some(node) = object.get(field.name) else { continue };
        let value = pattern::read(&node, field);
        good &= value.and_then(|value| header.set(field.name, value).ok()).is_some();
    }
    good.then_some(header)
}

/// By its length: one word or two, which have room for the contents that the model has.
fn kind(object: &Object<'_>) -> Option<&'static HeaderKind> {
    let field = GTPV1_EXTENSION.field("extension_length")?;
    let Some(node) = object.get(field.name) else { return Some(&GTPV1_EXTENSION) };
    let FieldValue::Pattern(pattern) = pattern::read(&node, field)? else {
        return Some(&GTPV1_EXTENSION);
    };
    match routing::constant(&pattern) {
        Some(0 | 2) => Some(&GTPV1_EXTENSION),
        Some(1) => Some(&GTPV1_SHORT_EXTENSION),
        Some(words) => node.fault(format!(
            "{words} is not supported: contents have 48 bits, in 2 words of 4 bytes, or 16 bits in 1; 0 means 2"
        )),
        None => node.fault("must be one value: it decides how long the header is"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::walk::Faults;
    use packet::frame::FrameSpec;
    use packet::payload::Payload;
    use packet::size::Sizes;
    use packet::writer::FrameWriter;
    use serde_json::{Value, json};

    use super::*;

    fn stack(gtp: Value) -> Result<(Vec<Header>, Vec<String>), String> {
        let json =
            json!([{"choice": "udp"}, {"choice": "gtpv1", "gtpv1": gtp}, {"choice": "ipv4"}]);
        let faults = Faults::default();
        let stack = super::super::read(&Node::root(&json, &faults));
        faults.finish_with_warnings(stack).map_err(|error| error.errors.join("; "))
    }

    /// The bytes from the GTP header on, of so many frames.
    fn sent(gtp: Value, frames: usize) -> Vec<String> {
        let spec = FrameSpec {
            headers: stack(gtp).unwrap().0,
            sizes: Sizes::Fixed(100),
            payload: Payload::default(),
            signature: None,
        };
        let mut found = vec![Vec::new(); frames];
        FrameWriter::new(&spec, 0).unwrap().write(&mut found, 0, false);
        let hex = |byte: &u8| format!("{byte:02x}");
        found.iter().map(|frame| frame[8..].iter().map(hex).collect()).collect()
    }

    #[test]
    fn extensions_follow_each_other() {
        let frames = sent(
            json!({
                "teid": {"value": 7}, "next_extension_header_type": {"value": 0x85},
                "extension_headers": [
                    {"extension_length": {"value": 1}, "contents": {"values": [9, 10]}, "next_extension_header": {"value": 0xc0}},
                    {"contents": {"choice": "increment", "increment": {"start": 281_474_976_710_655u64, "count": 9}}},
                ],
            }),
            2,
        );
        // 96 - 8 of UDP - 8 = 80 bytes.
        let wanted = |short, long| format!("340000500000000700000085{short}{long}4500");
        assert!(frames[0].starts_with(&wanted("010009c0", "02ffffffffffff00")), "{frames:?}");
        assert!(frames[1].starts_with(&wanted("01000ac0", "0200000000000000")), "{frames:?}");
        let own = json!({"e_flag": {"value": 1}, "message_length": {"value": 5}, "extension_headers": [{"extension_length": {"value": 2}}]});
        assert!(sent(own, 1)[0].starts_with("340000050000000000000000020000000000000045"));
        assert!(sent(json!({"extension_headers": []}), 1)[0].starts_with("300000500000000045"));
    }

    #[test]
    fn types_that_receivers_cannot_follow_are_told() {
        let warnings = |gtp| stack(gtp).unwrap().1;
        let good = json!({"next_extension_header_type": {"value": 0x85}, "extension_headers": [
            {"next_extension_header": {"value": 0xc0}}, {"next_extension_header": {"value": 0}},
        ]});
        assert_eq!(warnings(good), [""; 0]);
        let bad = json!({"extension_headers": [{}, {"next_extension_header": {"value": 5}}]});
        let missing = "is 0: receivers take the extension header behind it for payload";
        assert_eq!(
            warnings(bad),
            [
                format!("[1].gtpv1.next_extension_header_type: {missing}"),
                format!("[1].gtpv1.extension_headers[0].next_extension_header: {missing}"),
                "[1].gtpv1.extension_headers[1].next_extension_header: is not 0, but no extension header follows: \
                 receivers take payload for one"
                    .to_owned(),
            ]
        );
    }

    #[test]
    fn what_cannot_be_is_named() {
        for (json, wanted) in [
            (json!({"extension_headers": {}}), "extension_headers: must be a list"),
            (
                json!({"extension_headers": [{"type": {}}]}),
                "extension_headers[0].type: not supported",
            ),
            (
                json!({"extension_headers": vec![json!({}); 65]}),
                "extension_headers: 65 entries; at most 64",
            ),
            (
                json!({"extension_headers": [{"extension_length": {"value": 3}}]}),
                "[0].extension_length: 3 is not supported: contents have 48 bits",
            ),
            (
                json!({"extension_headers": [{"extension_length": {"values": [1, 2]}}]}),
                "[0].extension_length: must be one value",
            ),
            (
                json!({"extension_headers": [{"extension_length": {"value": 1}, "contents": {"value": 65_536}}]}),
                "[0].contents.value: must be a whole number from 0 to 65535",
            ),
            (
                json!({"e_flag": {"value": 0}, "extension_headers": [{}]}),
                "e_flag: must be 1, or be left out",
            ),
            (
                json!({"e_flag": {"values": [1, 0]}, "extension_headers": [{}]}),
                "e_flag: must be 1, or be left out",
            ),
            (json!({"extension_header": []}), "gtpv1.extension_header: not supported"),
        ] {
            let error = stack(json).unwrap_err();
            assert!(error.contains(wanted), "{wanted}: {error}");
        }
    }
}
