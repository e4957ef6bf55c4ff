// SPDX-License-Identifier: BSD-3-Clause
//! OTG's patterns: what a header's field holds in successive frames.
//!
//! Any field may have any kind of pattern, random values too, which the model gives to some only.

use std::net::{Ipv4Addr, Ipv6Addr};

use packet::MacAddr;
use packet::field::Pattern;
use packet::frame::{Checksum, FieldValue};
use packet::headers::{Auto, FieldKind, Format};

use super::walk::{Node, Object};

/// Most values of a list.
const MAX_VALUES: usize = 65_536;
/// Longest round of a counter or of random numbers, and largest seed.
const MAX_COUNT: u64 = u32::MAX as u64;

/// The value of a field that has no metric tags here.
pub fn read(node: &Node<'_>, kind: &FieldKind) -> Option<FieldValue> {
    let tags = node.get("metric_tags").filter(|tags| !tags.is_empty());
    if let Some(tags) = tags.filter(|_| !kind.is_checksum()) {
        return tags.fault("not supported");
    }
    read_tagged(node, kind)
}

/// The value of a field whose metric tags, if any, are read by [`super::tags`].
pub fn read_tagged(node: &Node<'_>, kind: &FieldKind) -> Option<FieldValue> {
    if kind.is_checksum() {
        return checksum(node).map(FieldValue::Checksum);
    }
    let words: &[&str] = match has_auto(kind) {
        true => &["value", "values", "increment", "decrement", "random", "auto"],
        false => &["value", "values", "increment", "decrement", "random"],
    };
    let default = if has_auto(kind) { "auto" } else { "value" };
    let address = matches!(kind.format, Format::Ipv4 | Format::Ipv6);
    let more: &[&str] = if address { &["auto"] } else { &[] };
    let object = node.object(&[&["choice", "metric_tags"], words, more].concat())?;
    if address && object.get("auto").is_some() {
        return object.child_fault(
            "auto",
            "not supported: addresses by DHCP; leave the field out, and in flows between devices it has their addresses",
        );
    }
    let chosen = object.choice(words, Some(default))?;
    let given = object.get(chosen);
    let pattern = match chosen {
        "auto" => {
            // What stands there is the model's word for "automatic", not a value.
            given.map_or(Some(0), |node| value(&node, kind))?;
            return Some(FieldValue::Auto);
        }
        "value" => Pattern::Value(given.map_or(Some(kind.default), |node| value(&node, kind))?),
        "values" => match given {
            Some(node) => Pattern::Values(values(&node, kind)?),
            None => Pattern::Value(kind.default),
        },
        "random" => random(&object.inner("random", &["min", "max", "seed", "count"])?, kind)?,
        _ => {
            let counter = object.inner(chosen, &["start", "step", "count"])?;
            let start = field(&counter, "start", kind, kind.default);
            let step = field(&counter, "step", kind, 1);
            let count = count(&counter);
            let (start, step, count) = (start?, step?, count?);
            match chosen {
                "increment" => Pattern::Increment { start, step, count },
                _ => Pattern::Decrement { start, step, count },
            }
        }
    };
    Some(FieldValue::Pattern(pattern))
}

/// Whether the model has "auto" for a field.
fn has_auto(kind: &FieldKind) -> bool {
    match kind.auto {
        // The model says "auto" and means its default.
        Auto::Default => match kind.format {
            Format::Mac => kind.name == "dst",
            Format::Number => matches!(kind.name, "vni" | "label" | "pad_type"),
            Format::Ipv4 | Format::Ipv6 => false,
        },
        Auto::UdpPort | Auto::Checksum(_) => false,
        _ => !kind.default_is_auto,
    }
}

fn field(object: &Object<'_>, key: &str, kind: &FieldKind, default: u128) -> Option<u128> {
    object.get(key).map_or(Some(default), |node| value(&node, kind))
}

fn count(object: &Object<'_>) -> Option<u64> {
    object.get("count").map_or(Some(1), |node| node.integer(1, MAX_COUNT))
}

fn values(node: &Node<'_>, kind: &FieldKind) -> Option<Vec<u128>> {
    let list = node.list_of(MAX_VALUES)?;
    if list.is_empty() {
        return node.fault("must have at least one value");
    }
    let values: Vec<Option<u128>> = list.iter().map(|node| value(node, kind)).collect();
    values.into_iter().collect()
}

fn random(object: &Object<'_>, kind: &FieldKind) -> Option<Pattern> {
    let min = field(object, "min", kind, 0);
    let max = field(object, "max", kind, kind.max());
    let seed = object.get("seed").map_or(Some(1), |node| node.integer(0, MAX_COUNT));
    let count = count(object);
    let (min, max) = (min?, max?);
    if min > max {
        return object.fault("min must not be above max");
    }
    Some(Pattern::Random { min, max, seed: seed?, count: count? })
}

/// One value, written as the field's values are.
pub fn value(node: &Node<'_>, kind: &FieldKind) -> Option<u128> {
    match kind.format {
        Format::Number if kind.bits == 0 => match node.integer(0, MAX_COUNT)? {
            0 => Some(0),
            other => node.fault(format!(
                "{other} is not supported: the field is not in a frame; leave it out or at 0"
            )),
        },
        Format::Number => {
            node.integer(0, u64::try_from(kind.max()).unwrap_or(u64::MAX)).map(u128::from)
        }
        Format::Mac => node.parse::<MacAddr>().map(|mac| mac.to_u64().into()),
        Format::Ipv4 => address(node, "IPv4", |address: Ipv4Addr| u32::from(address).into()),
        Format::Ipv6 => address(node, "IPv6", |address: Ipv6Addr| address.into()),
    }
}

fn address<T: std::str::FromStr>(
    node: &Node<'_>,
    what: &str,
    number: impl Fn(T) -> u128,
) -> Option<u128> {
    let text = node.text()?;
    match text.parse() {
        Ok(address) => Some(number(address)),
        Err(_) => {
            let shown: String = text.chars().take(40).collect();
            node.fault(format!("{shown:?} is not an {what} address"))
        }
    }
}

fn checksum(node: &Node<'_>) -> Option<Checksum> {
    let object = node.object(&["choice", "generated", "custom"])?;
    match object.choice(&["generated", "custom"], Some("generated"))? {
        "generated" => {
            let good = |node: Node<'_>| node.word(&["good", "bad"]).map(|word| word == "good");
            let good = object.get("generated").map_or(Some(true), good)?;
            Some(if good { Checksum::Good } else { Checksum::Bad })
        }
        _ => {
            let custom = object.required("custom")?.integer(0, 0xffff)?;
            u16::try_from(custom).ok().map(Checksum::Custom)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::otg::walk::Faults;
    use packet::headers;
    use serde_json::{Value, json};

    fn read_as(header: &str, field: &str, json: Value) -> Result<FieldValue, String> {
        let faults = Faults::default();
        let kind = headers::kind(header).unwrap().field(field).unwrap();
        let value = read(&Node::root(&json, &faults), kind);
        faults.finish(value).map_err(|error| error.errors.join("; "))
    }

    #[test]
    fn every_kind_of_pattern_is_read_in_every_format() {
        let pattern = |pattern| Ok(FieldValue::Pattern(pattern));
        let v6 = |text: &str| text.parse::<Ipv6Addr>().map(u128::from).unwrap();
        for (header, field, json, wanted) in [
            ("udp", "src_port", json!({"choice": "value", "value": 7}), Pattern::Value(7)),
            ("udp", "src_port", json!({"value": "65535"}), Pattern::Value(65535)),
            ("udp", "dst_port", json!({}), Pattern::Value(0)),
            ("ipv4", "time_to_live", json!({"choice": "values"}), Pattern::Value(64)),
            ("tcp", "src_port", json!({"values": [1, 2]}), Pattern::Values(vec![1, 2])),
            (
                "ethernet",
                "src",
                json!({"increment": {"start": "02:00:00:00:00:fe", "step": "00:00:00:00:01:00", "count": 3}}),
                Pattern::Increment { start: 0x0200_0000_00fe, step: 256, count: 3 },
            ),
            (
                "ipv4",
                "src",
                json!({"choice": "decrement", "decrement": {"start": "10.0.0.9"}}),
                Pattern::Decrement { start: 0x0a00_0009, step: 1, count: 1 },
            ),
            (
                "ipv6",
                "dst",
                json!({"choice": "increment", "increment": {"start": "fd00::1", "step": "::1:0", "count": "4294967295"}}),
                Pattern::Increment { start: v6("fd00::1"), step: 0x1_0000, count: 4_294_967_295 },
            ),
            (
                "ipv4",
                "dst",
                json!({"choice": "random"}),
                Pattern::Random { min: 0, max: 0xffff_ffff, seed: 1, count: 1 },
            ),
            (
                "vlan",
                "id",
                json!({"random": {"min": 5, "max": 9, "seed": 3, "count": 100}}),
                Pattern::Random { min: 5, max: 9, seed: 3, count: 100 },
            ),
        ] {
            assert_eq!(read_as(header, field, json.clone()), pattern(wanted), "{json}");
        }
        for (header, field) in
            [("ethernet", "ether_type"), ("ethernet", "dst"), ("vxlan", "vni"), ("mpls", "label")]
        {
            assert_eq!(read_as(header, field, json!({})), Ok(FieldValue::Auto), "{field}");
        }
        let auto = json!({"choice": "auto", "auto": 65535});
        assert_eq!(read_as("ethernet", "ether_type", auto), Ok(FieldValue::Auto));
    }

    #[test]
    fn checksums_are_good_bad_or_custom() {
        let read = |json| read_as("udp", "checksum", json);
        for (json, wanted) in [
            (json!({}), Checksum::Good),
            (json!({"choice": "generated", "generated": "good"}), Checksum::Good),
            (json!({"generated": "bad"}), Checksum::Bad),
            (json!({"choice": "custom", "custom": 0xbeef}), Checksum::Custom(0xbeef)),
        ] {
            assert_eq!(read(json), Ok(FieldValue::Checksum(wanted)));
        }
        for (json, wanted) in [
            (json!({"generated": "ugly"}), "generated: \"ugly\" is not supported"),
            (json!({"choice": "custom"}), "custom: is missing"),
            (json!({"custom": 65536}), "custom: must be a whole number from 0 to 65535"),
            (json!({"value": 3}), "value: not supported"),
        ] {
            assert!(read(json).unwrap_err().contains(wanted), "{wanted}");
        }
    }

    #[test]
    fn what_is_no_pattern_is_named() {
        for (header, field, json, wanted) in [
            ("udp", "src_port", json!(7), "must be an object"),
            ("udp", "src_port", json!({"value": 65536}), "value: must be a whole number from 0"),
            ("udp", "src_port", json!({"value": -1}), "value: must be a whole number"),
            ("udp", "src_port", json!({"value": 1e300}), "value: must be a whole number"),
            ("udp", "src_port", json!({"auto": 1}), "auto: not supported"),
            ("udp", "src_port", json!({"values": []}), "values: must have at least one"),
            ("udp", "src_port", json!({"values": [1, "x"]}), "values[1]: must be a whole"),
            ("udp", "src_port", json!({"values": vec![1; 65_537]}), "values: 65537 entries; at"),
            ("udp", "src_port", json!({"increment": {"count": 0}}), "increment.count: must be"),
            ("udp", "src_port", json!({"increment": {"stop": 0}}), "increment.stop: not supported"),
            ("udp", "src_port", json!({"random": {"min": 2, "max": 1}}), "random: min must not"),
            ("udp", "src_port", json!({"value": 1, "values": [1]}), "choose only one of"),
            ("udp", "src_port", json!({"metric_tags": [{"name": "t"}]}), "metric_tags: not supp"),
            ("ipv4", "src", json!({"auto": {"choice": "dhcp"}}), "auto: not supported: addresses"),
            ("ipv4", "src", json!({"value": "1.2.3"}), "value: \"1.2.3\" is not an IPv4 address"),
            ("ipv6", "src", json!({"value": "1.2.3.4"}), "value: \"1.2.3.4\" is not an IPv6"),
            ("ethernet", "pfc_queue", json!({"value": 3}), "value: 3 is not supported: the field"),
        ] {
            let error = read_as(header, field, json).unwrap_err();
            assert!(error.starts_with(wanted) || error.contains(wanted), "{wanted}: {error}");
        }
        assert!(read_as("udp", "src_port", json!({"values": vec![1; 65_536]})).is_ok());
    }
}
