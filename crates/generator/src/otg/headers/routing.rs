// SPDX-License-Identifier: BSD-3-Clause
//! OTG's extension headers of IPv6: routing headers with segments (RFC 8754, section 2), as addresses or as
//! compressed segments.

use packet::field::Pattern;
use packet::frame::{FieldValue, Header};
use packet::headers::{self, HeaderKind};

use super::super::pattern;
use super::super::walk::{Node, Object};
use super::{Parts, csid};

/// The fields of an extension header that are looked at.
pub const FIELDS: &[&str] = &["choice", "next_header", "hdr_ext_len", "routing"];
/// Those of a list of segments.
const LIST: &[&str] = &["segments_left", "last_entry", "flags", "tag", "segment_list", "pad_tlv"];
/// Most bytes behind the first 8: one byte counts them in words of 8 bytes.
const MAX_BYTES: usize = 255 * 8;
/// Most segments of a list.
const MAX_SEGMENTS: usize = MAX_BYTES / 16;

/// The header, and its segments and padding.
pub fn read(object: &Object<'_>) -> Option<(Header, Parts)> {
    let mut header = Header::new(&headers::IPV6_EXTENSION_HEADER);
    let mut good = set(object, &[("next_header", ""), ("hdr_ext_len", "")], &mut header).is_some();
    object.choice(&["routing"], Some("routing"))?;
    let kinds = ["segment_routing", "segment_routing_usid"];
    let routing = object.inner("routing", &[&["choice"][..], &kinds].concat())?;
    let chosen = routing.choice(&kinds, Some(kinds[0]))?;
    let compressed = chosen == kinds[1];
    let list = routing.inner(chosen, LIST)?;
    let own = [("segments_left", ""), ("last_entry", ""), ("tag", "")];
    good &= set(&list, &own, &mut header).is_some();
    good &= flags(&list, compressed, &mut header).is_some();
    let nodes =
        list.get("segment_list").map_or(Some(Vec::new()), |node| node.list_of(MAX_SEGMENTS))?;
    let entry = if compressed { csid::container } else { segment };
    let parts: Vec<Option<Header>> = nodes.iter().map(entry).collect();
    let mut parts = parts.into_iter().collect::<Option<Parts>>()?;
    // The model's defaults: segments that are addresses are all left, because the first hop is the destination and not in
    // the list; of compressed segments all but the first are left, because that one is the destination.
    let left = header.get("segments_left");
    if compressed && left.is_none_or(|left| *left == FieldValue::Auto) {
        let left = parts.len().saturating_sub(1) as u128;
        good &= header.set("segments_left", left).is_ok();
    }
    if let Some(node) = list.get("pad_tlv") {
        parts.push(padding(&node)?);
    }
    let len: usize = parts.iter().map(Header::len).sum();
    if len > MAX_BYTES {
        return list.fault(format!("{len} bytes of segments and padding; at most {MAX_BYTES}"));
    }
    good.then_some((header, parts))
}

/// Sets fields of a header by their names, each with its prefix in the header's table.
fn set(object: &Object<'_>, names: &[(&str, &str)], header: &mut Header) -> Option<()> {
    let mut good = true;
    for (name, prefix) in names {
        let Some(node) = object.get(name) else { continue };
        let value = field(header.kind(), &format!("{prefix}{name}"), &node);
        good &= value.and_then(|(name, value)| header.set(name, value).ok()).is_some();
    }
    good.then_some(())
}

/// The value of a field of a kind of header.
fn field(kind: &HeaderKind, name: &str, node: &Node<'_>) -> Option<(&'static str, FieldValue)> {
    let field = kind.field(name)?;
    Some((field.name, pattern::read(node, field)?))
}

fn flags(list: &Object<'_>, compressed: bool, header: &mut Header) -> Option<()> {
    let all = ["protected", "oam", "alert"];
    let known = if compressed { &all[1..2] } else { &all };
    let flags = list.inner("flags", known)?;
    let names: Vec<(&str, &str)> = known.iter().map(|name| (*name, "flags.")).collect();
    set(&flags, &names, header)
}

fn segment(node: &Node<'_>) -> Option<Header> {
    let mut header = Header::new(&headers::SEGMENT);
    set(&node.object(&["segment"])?, &[("segment", "")], &mut header)?;
    Some(header)
}

/// Padding that is as long as it says, and zeros up to a whole word of 8 bytes, each of which is a Pad1 (RFC 8754, section
/// 2.1.1.1).
fn padding(node: &Node<'_>) -> Option<Header> {
    let kind = &headers::SEGMENT_PAD;
    let object = node.object(&["type", "length"])?;
    let mut header = Header::new(kind);
    if let Some(node) = object.get("type") {
        let (name, value) = field(kind, "pad_type", &node)?;
        header.set(name, value).ok()?;
    }
    let Some(node) = object.get("length") else { return Some(header) };
    let (name, value) = field(kind, "length", &node)?;
    if let FieldValue::Pattern(pattern) = &value {
        let Some(len) = constant(pattern) else {
            return node.fault("must be one value: it decides how long the header is");
        };
        header.set_options(&vec![0; (len as usize + 2).next_multiple_of(8) - kind.len]);
    }
    header.set(name, value).ok()?;
    Some(header)
}

/// The value that a pattern has in every frame.
pub fn constant(pattern: &Pattern) -> Option<u128> {
    pattern.is_constant().then(|| pattern.first())
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

    fn stack(json: &Value) -> Result<(Vec<Header>, Vec<String>), String> {
        let faults = Faults::default();
        let stack = super::super::read(&Node::root(json, &faults));
        faults.finish_with_warnings(stack).map_err(|error| error.errors.join("; "))
    }

    /// The bytes from the IPv6 header's destination on, of frames with this extension header.
    fn sent(ipv6: Value, extension: Value, frames: usize) -> Vec<Vec<u8>> {
        let stack = stack(&json!([
            {"choice": "ipv6", "ipv6": ipv6},
            {"choice": "ipv6_extension_header", "ipv6_extension_header": extension},
            {"choice": "udp"},
        ]));
        let spec = FrameSpec {
            headers: stack.unwrap().0,
            sizes: Sizes::Fixed(400),
            payload: Payload::default(),
            signature: None,
        };
        let mut found = vec![Vec::new(); frames];
        FrameWriter::new(&spec, 0).unwrap().write(&mut found, 0, false);
        found.into_iter().map(|frame| frame[24..].to_vec()).collect()
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// What stands between the IPv6 header and UDP.
    fn extension(json: Value, len: usize) -> String {
        hex(&sent(json!({}), json, 1)[0][16..16 + len])
    }

    #[test]
    fn segments_are_addresses() {
        // Nothing given: no segments.
        assert_eq!(extension(json!({}), 8), "1100040000000000");
        let list = json!({"choice": "routing", "routing": {"choice": "segment_routing", "segment_routing": {
            "flags": {"protected": {"value": 1}, "alert": {"value": 1}},
            "tag": {"value": 0x0102},
            "segment_list": [{"segment": {"value": "::3"}}, {"segment": {"choice": "value", "value": "fd00::4"}}],
        }}});
        let wanted = [
            "1104040201500102",
            "00000000000000000000000000000003",
            "fd000000000000000000000000000004",
        ];
        assert_eq!(extension(list, 40), wanted.concat());
        let own = json!({
            "next_header": {"value": 59}, "hdr_ext_len": {"values": [7, 8]},
            "routing": {"segment_routing": {"segments_left": {"value": 9}, "last_entry": {"increment": {"start": 4}}}},
        });
        assert_eq!(extension(own, 8), "3b07040904000000");
        let turns = json!({"routing": {"segment_routing": {"segment_list": [
            {"segment": {"increment": {"start": "fd00::ffff", "step": "::1", "count": 3}}},
        ]}}});
        let last = |frame: Vec<u8>| u32::from_be_bytes(frame[36..40].try_into().unwrap());
        let found: Vec<u32> = sent(json!({}), turns, 4).into_iter().map(last).collect();
        assert_eq!(found, [0xffff, 0x1_0000, 0x1_0001, 0xffff]);
    }

    #[test]
    fn padding_fills_words() {
        let padded = |tlv: Value| json!({"routing": {"segment_routing": {"pad_tlv": tlv}}});
        assert_eq!(extension(padded(json!({})), 16), "11010400000000000406000000000000");
        let own = padded(json!({"type": {"value": 5}, "length": {"value": 3}}));
        assert_eq!(extension(own, 16), "11010400000000000503000000000000");
        let long = padded(json!({"length": {"value": 7}}));
        assert_eq!(extension(long, 24), "110204000000000004070000000000000000000000000000");
        let auto = padded(json!({"type": {"choice": "auto"}, "length": {"choice": "auto"}}));
        assert_eq!(extension(auto, 10), "11010400000000000406");
    }

    #[test]
    fn identifiers_are_packed_behind_their_locator() {
        let list =
            |list: Value| json!({"routing": {"segment_routing_usid": {"segment_list": list}}});
        let two = list(json!([
            {"locator": {"value": "fc00:1:ffff::"}, "usids": ["0001", "0002"]},
            {"locator": {"value": "fc00::"}, "locator_length": {"value": 48}, "usids": ["00050005"]},
        ]));
        let wanted = [
            "1104040101000000",
            "fc000001000100020000000000000000",
            "fc000000000000050005000000000000",
        ];
        assert_eq!(extension(two, 40), wanted.concat());
        let packed = list(json!([
            {"locator_length": {"value": 0}, "usids": ["00000000", "00000000", "00030004", "00010002"]},
        ]));
        assert_eq!(extension(packed, 24)[16..], *"00000000000000000003000400010002");
        let counted = list(json!([{
            "locator": {"decrement": {"start": "fc00:2::", "step": "0:1::", "count": 3}}, "usids": ["0007"],
        }]));
        let found: Vec<String> =
            sent(json!({}), counted, 3).iter().map(|frame| hex(&frame[24..36])).collect();
        let wanted = ["fc000002000700000000", "fc000001000700000000", "fc000000000700000000"];
        assert_eq!(found, wanted.map(|start| format!("{start}0000")));
    }

    #[test]
    fn checksums_are_those_of_the_last_hop() {
        let checksum = |ipv6: Value, list: Value| {
            let routing = json!({"routing": {"segment_routing": list}});
            let frame = sent(ipv6, routing, 1).remove(0);
            let udp = 24 + 8 * usize::from(frame[17]);
            u16::from_be_bytes([frame[udp + 6], frame[udp + 7]])
        };
        let to = |address: &str| json!({"dst": {"value": address}});
        let via = |address: &str| json!({"segment_list": [{"segment": {"value": address}}, {"segment": {"value": "::9"}}]});
        assert_eq!(checksum(to("::1"), via("::5")), checksum(to("::2"), via("::5")));
        assert_ne!(checksum(to("::1"), via("::5")), checksum(to("::1"), via("::6")));
        // The same length without segments, and with the last hop's address.
        let ids = json!({"dst_usids": {"locator": {"value": "fc00::"}, "usids": ["0001", "0002", "0003"]}});
        assert_eq!(checksum(ids, json!({})), checksum(to("fc00:0:3::"), json!({})));
    }

    #[test]
    fn a_destination_of_identifiers() {
        let ipv6 = json!({"dst_usids": {
            "locator": {"choice": "values", "values": ["fc00::", "fc01::1"]}, "usids": ["0001", "0002", "0003"],
        }});
        let found: Vec<String> =
            sent(ipv6, json!({}), 2).iter().map(|frame| hex(&frame[..16])).collect();
        let ids = "0000000100020003000000000000";
        assert_eq!(found, [format!("fc00{ids}"), format!("fc01{ids}")]);
        let both = json!([{"ipv6": {"dst": {"value": "::1"}, "dst_usids": {"locator": {"value": "fc00::"}}}}]);
        let (_, warnings) = stack(&both).unwrap();
        assert_eq!(warnings, ["[0].ipv6.dst: ignored: dst_usids give the destination"]);
    }

    #[test]
    fn what_cannot_be_is_named() {
        let routing = |json: Value| json!([{"ipv6_extension_header": {"routing": json}}]);
        let srh = |json: Value| routing(json!({"segment_routing": json}));
        let usid = |json: Value| routing(json!({"segment_routing_usid": {"segment_list": [json]}}));
        let ipv6 = |json: Value| json!([{"ipv6": {"dst_usids": json}}]);
        let segments = vec![json!({}); 128];
        let some = json!({"value": "fc00::"});
        for (json, wanted) in [
            (
                json!([{"ipv6_extension_header": {"fragment": {}}}]),
                "extension_header.fragment: not supported",
            ),
            (
                json!([{"ipv6_extension_header": {"choice": "fragment"}}]),
                "choice: \"fragment\" is not",
            ),
            (routing(json!({"choice": "rpl"})), "routing.choice: \"rpl\" is not"),
            (srh(json!({"flags": {"hmac": {}}})), "flags.hmac: not supported"),
            (
                srh(json!({"tag": {"value": 65_536}})),
                "tag.value: must be a whole number from 0 to 65535",
            ),
            (srh(json!({"segment_list": segments})), "segment_list: 128 entries; at most 127"),
            (
                srh(json!({"segment_list": segments[1..], "pad_tlv": {"length": {"value": 7}}})),
                "2048 bytes of",
            ),
            (
                srh(json!({"segment_list": [{"segment": {"value": "1.2.3.4"}}]})),
                "[0].segment.value: \"1.2.3.4\" is not",
            ),
            (
                srh(json!({"pad_tlv": {"length": {"values": [1, 2]}}})),
                "pad_tlv.length: must be one value",
            ),
            (
                routing(json!({"segment_routing_usid": {"flags": {"alert": {}}}})),
                "flags.alert: not supported",
            ),
            (
                usid(json!({"locator_length": {"value": 113}})),
                "locator_length: 113 is not supported: 0 to 112",
            ),
            (
                usid(json!({"locator_length": {"values": [16, 32]}})),
                "locator_length: must be one value",
            ),
            (
                usid(json!({"usids": ["0001", "00000002"]})),
                "usids: must have 4 hexadecimal digits each",
            ),
            (usid(json!({"usids": ["01"]})), "usids: must have 4 hexadecimal digits each"),
            (usid(json!({"usids": ["0001", "0000"]})), "usids: 0 marks the end"),
            (
                usid(json!({"usids": vec!["0001"; 7]})),
                "usids: 7 identifiers of 16 bits behind a locator of 32",
            ),
            (usid(json!({"usids": vec!["0001"; 9]})), "usids: 9 entries; at most 8"),
            (
                usid(json!({"locator_length": {"value": 0}, "usids": ["0001"]})),
                "usids: 1 identifiers of 16 bits: without a locator, 8 fill",
            ),
            (
                usid(json!({"locator_length": {"value": 0}})),
                "usids: must be there without a locator",
            ),
            (
                usid(
                    json!({"locator": {"increment": {"start": "fc00::ffff:ffff:ffff:ffff:ffff:ffff", "count": 2}}}),
                ),
                "locator: the step counts",
            ),
            (
                usid(json!({"locator": {"decrement": {"start": "fc00::", "count": 2}}})),
                "locator: the step counts in bits behind",
            ),
            (usid(json!({"locator": {"random": {}}})), "locator: random locators are not"),
            (ipv6(json!({"usids": ["0001"]})), "dst_usids.locator: is missing"),
            (
                ipv6(json!({"locator": some, "locator_length": {"value": 0}})),
                "locator_length: 0 is not supported: 1 to 112",
            ),
        ] {
            let error = stack(&json).unwrap_err();
            assert!(error.contains(wanted), "{wanted}: {error}");
        }
    }
}
