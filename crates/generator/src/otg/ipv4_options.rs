// SPDX-License-Identifier: BSD-3-Clause
//! OTG's IPv4 options as bytes (RFC 791, section 3.1): the same in every frame.

use packet::frame::FieldValue;
use packet::headers::{Auto, FieldKind, Format, IPV4, Transit};

use super::walk::{Node, Object};
use super::{hex, pattern};

/// Most options of a header: each has a byte at least.
const MAX_OPTIONS: usize = 40;
const END_OF_OPTIONS: u8 = 0;
const TIMESTAMP: u8 = 68;
/// Router alert (RFC 2113): type, length and "examine the packet".
const ROUTER_ALERT: [u8; 4] = [148, 4, 0, 0];

const fn number(name: &'static str, bits: u32) -> FieldKind {
    FieldKind {
        name,
        offset_bits: 0,
        bits,
        format: Format::Number,
        default: 0,
        default_is_auto: false,
        auto: Auto::Default,
        transit: Transit::Rewritten,
    }
}

const COPIED_FLAG: FieldKind = number("copied_flag", 1);
const OPTION_CLASS: FieldKind = number("option_class", 2);
const OPTION_NUMBER: FieldKind = number("option_number", 5);
const OVERFLOW: FieldKind = number("overflow", 4);
const TIME: FieldKind = number("timestamp", 32);
const ADDRESS: FieldKind = FieldKind { format: Format::Ipv4, ..number("address", 32) };

/// The options of a list, one behind the other.
pub fn read(node: &Node<'_>) -> Option<Vec<u8>> {
    let list = node.list_of(MAX_OPTIONS)?;
    let options: Vec<Option<Vec<u8>>> = list.iter().map(option).collect();
    let bytes = options.into_iter().collect::<Option<Vec<_>>>()?.concat();
    match bytes.len() <= IPV4.max_options {
        true => Some(bytes),
        false => {
            node.fault(format!("{} bytes of options; at most {}", bytes.len(), IPV4.max_options))
        }
    }
}

fn option(node: &Node<'_>) -> Option<Vec<u8>> {
    const KINDS: [&str; 4] = ["router_alert", "custom", "timestamp", "end_of_options"];
    let object = node.object(&["choice", "custom", "timestamp"])?;
    match object.choice(&KINDS, Some("router_alert"))? {
        "custom" => custom(&object.inner("custom", &["type", "length", "value"])?),
        "timestamp" => timestamp(&object.inner("timestamp", &["pointer", "overflow", "format"])?),
        "end_of_options" => Some(vec![END_OF_OPTIONS]),
        _ => Some(ROUTER_ALERT.to_vec()),
    }
}

/// A field that is the same in every frame.
fn constant(object: &Object<'_>, kind: &FieldKind) -> Option<u32> {
    let Some(node) = object.get(kind.name) else { return Some(0) };
    match pattern::read(&node, kind)? {
        FieldValue::Pattern(pattern) if pattern.is_constant() => pattern.first().try_into().ok(),
        _ => node.fault("must be one value: options are the same in every frame"),
    }
}

fn custom(object: &Object<'_>) -> Option<Vec<u8>> {
    let kind = object.inner("type", &["copied_flag", "option_class", "option_number"])?;
    let (copied, class, number) = (
        constant(&kind, &COPIED_FLAG),
        constant(&kind, &OPTION_CLASS),
        constant(&kind, &OPTION_NUMBER),
    );
    let value = object.get("value").map_or(Some(vec![0, 0]), |node| hex::read(&node))?;
    let length = object.inner("length", &["choice", "auto", "value"])?;
    let auto = (value.len() + 2) as u64;
    let length = match length.choice(&["auto", "value"], Some("auto"))? {
        "auto" => auto,
        _ => length.get("value").map_or(Some(0), |node| node.integer(0, 255))?,
    };
    let kind = copied? << 7 | class? << 5 | number?;
    Some([&[kind as u8, length as u8][..], &value].concat())
}

fn timestamp(object: &Object<'_>) -> Option<Vec<u8>> {
    let overflow = constant(object, &OVERFLOW);
    let pointer = object.inner("pointer", &["choice", "auto", "value"])?;
    let pointer = match pointer.choice(&["auto", "value"], Some("auto"))? {
        "auto" => 5,
        _ => pointer.get("value").map_or(Some(5), |node| node.integer(5, 40))?,
    };
    let kinds = ["timestamps", "address_and_timestamps", "prespecified_address_and_timestamps"];
    let format = object.inner("format", &[&["choice"][..], &kinds].concat())?;
    let chosen = format.choice(&kinds, Some("timestamps"))?;
    let flag = match chosen {
        "timestamps" => 0,
        "address_and_timestamps" => 1,
        _ => 3,
    };
    let list = format.get(chosen).map_or(Some(Vec::new()), |node| node.list_of(MAX_OPTIONS))?;
    let mut data = Vec::new();
    for node in &list {
        let fields: &[&str] = if flag == 0 { &["timestamp"] } else { &["address", "timestamp"] };
        let entry = node.object(fields)?;
        if flag != 0 {
            data.extend(constant(&entry, &ADDRESS)?.to_be_bytes());
        }
        data.extend(constant(&entry, &TIME)?.to_be_bytes());
    }
    let head = [TIMESTAMP, (data.len() + 4) as u8, pointer as u8, (overflow? << 4 | flag) as u8];
    Some([&head[..], &data].concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::otg::walk::Faults;
    use serde_json::{Value, json};

    fn options(json: Value) -> Result<Vec<u8>, String> {
        let faults = Faults::default();
        let bytes = read(&Node::root(&json, &faults));
        faults.finish(bytes).map_err(|error| error.errors.join("; "))
    }

    #[test]
    fn options_are_as_rfc_791_has_them() {
        assert_eq!(options(json!([])), Ok(vec![]));
        assert_eq!(options(json!([{}, {"choice": "end_of_options"}])), Ok(vec![148, 4, 0, 0, 0]));
        let security = json!([{"choice": "custom", "custom": {
            "type": {"copied_flag": {"value": 1}, "option_class": {"value": 2}, "option_number": {"value": 2}},
            "length": {"choice": "auto", "auto": 0}, "value": "0102",
        }}]);
        assert_eq!(options(security), Ok(vec![0b1100_0010, 4, 1, 2]));
        let wrong = json!([{"custom": {"length": {"value": 9}, "value": ""}}]);
        assert_eq!(options(wrong), Ok(vec![0, 9]));
        let stamps = json!([{"choice": "timestamp", "timestamp": {
            "pointer": {"choice": "value", "value": 13}, "overflow": {"value": 2},
            "format": {"choice": "address_and_timestamps", "address_and_timestamps": [
                {"address": {"value": "10.0.0.1"}, "timestamp": {"value": 7}},
            ]},
        }}]);
        assert_eq!(options(stamps), Ok(vec![68, 12, 13, 0x21, 10, 0, 0, 1, 0, 0, 0, 7]));
        assert_eq!(options(json!([{"timestamp": {}}])), Ok(vec![68, 4, 5, 0]));
    }

    #[test]
    fn what_cannot_be_is_named() {
        for (json, wanted) in [
            (json!(vec![json!({}); 11]), "44 bytes of options; at most 40"),
            (json!([{"choice": "nop"}]), "[0].choice: \"nop\" is not supported"),
            (json!([{"custom": {"value": "0"}}]), "[0].custom.value: must be pairs"),
            (
                json!([{"custom": {"type": {"option_number": {"values": [1, 2]}}}}]),
                "[0].custom.type.option_number: must be one value",
            ),
            (
                json!([{"timestamp": {"pointer": {"value": 4}}}]),
                "[0].timestamp.pointer.value: must",
            ),
        ] {
            let error = options(json).unwrap_err();
            assert!(error.contains(wanted), "{wanted}: {error}");
        }
    }
}
