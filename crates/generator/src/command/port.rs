// SPDX-License-Identifier: BSD-3-Clause
//! `--port` and `--capture`.

use std::path::PathBuf;
use std::str::FromStr;

use packet::headers::{self, FieldKind, Format};
use serde_json::{Map, Value, json};

use super::items::{self, Item};
use super::{SpecError, field, quantity, stack};

/// A port on the command line: `[NAME=]LOCATION`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortSpec {
    /// Its name.
    pub name: Option<String>,
    /// Its location.
    pub location: String,
}

impl FromStr for PortSpec {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // The text before a location's own `=` contains a colon or a comma.
        let is_name = |name: &&str| {
            !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || "_-.".contains(c))
        };
        let named = text.split_once('=').filter(|(name, _)| is_name(name));
        Ok(match named {
            Some((name, location)) => {
                PortSpec { name: Some(name.to_owned()), location: location.to_owned() }
            }
            None => PortSpec { name: None, location: text.to_owned() },
        })
    }
}

/// A capture on the command line: `PORT=FILE[,filter...]`.
#[derive(Clone, Debug, PartialEq)]
pub struct CaptureSpec {
    /// Name of the port.
    pub port: String,
    /// The file.
    pub path: PathBuf,
    /// Snap length.
    pub snap: Option<u64>,
    /// The filters, in OTG's model; all must match.
    pub filters: Value,
}

impl FromStr for CaptureSpec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let is_word = |word: &str| FILTERS.iter().any(|(name, _)| header(word) == Some(*name));
        let items = items::split(text, is_word, |_| false)?;
        let (first, filters) = items.split_first().ok_or(SpecError::Empty)?;
        let path = PathBuf::from(first.value()?);
        match path.extension().and_then(|ending| ending.to_str()) {
            Some("pcapng" | "pcap") => {}
            _ => return Err(SpecError::Ending { path }),
        }
        let mut spec =
            CaptureSpec { port: first.key.clone(), path, snap: None, filters: json!([]) };
        let mut headers: Vec<(String, Map<String, Value>)> = Vec::new();
        for item in filters {
            match item.key.as_str() {
                "snap" => spec.snap = Some(quantity::count("snap", item.value()?)?),
                _ => filter(item, &mut headers)?,
            }
        }
        // Tags are counted, so that they stay in order.
        headers
            .sort_by_key(|(name, _)| FILTERS.iter().position(|(known, _)| name.starts_with(known)));
        let entries = headers.into_iter().map(|(name, fields)| {
            let kind = header(&name).unwrap_or("ethernet");
            json!({ "choice": kind, kind: fields })
        });
        spec.filters = entries.collect();
        Ok(spec)
    }
}

/// Headers that captures filter by, with their fields.
const FILTERS: [(&str, &[&str]); 4] = [
    ("ethernet", &["dst", "src", "ether_type"]),
    ("vlan", &["priority", "cfi", "id", "protocol"]),
    (
        "ipv4",
        &[
            "version",
            "header_length",
            "priority",
            "total_length",
            "identification",
            "reserved",
            "dont_fragment",
            "more_fragments",
            "fragment_offset",
            "time_to_live",
            "protocol",
            "header_checksum",
            "src",
            "dst",
        ],
    ),
    (
        "ipv6",
        &[
            "version",
            "traffic_class",
            "flow_label",
            "payload_length",
            "next_header",
            "hop_limit",
            "src",
            "dst",
        ],
    ),
];

/// The name of a header that captures filter by; `vlan` for `vlan2` too.
fn header(word: &str) -> Option<&'static str> {
    let (kind, _) = stack::named(word)?;
    FILTERS.iter().map(|(name, _)| *name).find(|name| *name == kind.name)
}

/// Adds a comparison: `HEADER.FIELD=VALUE[/MASK]`, with `!=` for "differs", or a header without a
/// field.
fn filter(item: &Item, headers: &mut Vec<(String, Map<String, Value>)>) -> Result<(), SpecError> {
    let key = item.key.as_str();
    let unknown = || SpecError::UnknownKey {
        key: key.chars().take(60).collect(),
        known: format!(
            "snap, and HEADER or HEADER.FIELD of {}",
            FILTERS.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
        ),
    };
    let (path, negate) = match key.strip_suffix('!') {
        Some(path) => (path, true),
        None => (key, false),
    };
    let (word, name) = match path.split_once('.') {
        Some((word, name)) => (word, Some(name)),
        None => (path, None),
    };
    let (kind, _) = stack::named(word).ok_or_else(unknown)?;
    let (_, fields) = FILTERS.iter().find(|(name, _)| *name == kind.name).ok_or_else(unknown)?;
    let at = match headers.iter().position(|(header, _)| header == word) {
        Some(at) => at,
        None => {
            headers.push((word.to_owned(), Map::new()));
            headers.len() - 1
        }
    };
    let Some(name) = name else {
        return match item.value {
            Some(_) => Err(unknown()),
            None => Ok(()),
        };
    };
    let name = match stack::field_name(kind, name) {
        // The model's filter has only the whole byte.
        "priority.raw" => "priority",
        name => name,
    };
    if !fields.contains(&name) {
        let (key, known) = (key.to_owned(), fields.join(", "));
        return Err(SpecError::UnknownField { key, header: kind.name, known });
    }
    let whole = FieldKind { bits: 8, ..IPV4_PRIORITY };
    let field = kind.field(name).unwrap_or(&whole);
    let (value, mask) = match item.value()?.split_once('/') {
        Some((value, mask)) => (value, field::single(key, field, mask)?),
        // A mask of zeros means no mask: to compare with 0, all bits must be set.
        None => (item.value()?, field.max()),
    };
    let value = field::single(key, field, value)?;
    let wanted =
        json!({ "value": format!("{value:x}"), "mask": format!("{mask:x}"), "negate": negate });
    match headers.get_mut(at).and_then(|(_, fields)| fields.insert(name.to_owned(), wanted)) {
        Some(_) => Err(SpecError::Twice { key: key.to_owned() }),
        None => Ok(()),
    }
}

/// The field kind of a byte that has no table of its own.
const IPV4_PRIORITY: FieldKind = FieldKind {
    name: "priority",
    offset_bits: 8,
    bits: 8,
    format: Format::Number,
    default: 0,
    default_is_auto: false,
    auto: headers::Auto::Default,
    transit: headers::Transit::Rewritten,
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_may_have_names() {
        let read = |text: &str| text.parse::<PortSpec>().unwrap();
        for (text, name, location) in [
            ("ring:r", None, "ring:r"),
            ("west=ring:r", Some("west"), "ring:r"),
            ("memif:/tmp/s,role=client", None, "memif:/tmp/s,role=client"),
            ("p.1=memif:/tmp/s,role=client", Some("p.1"), "memif:/tmp/s,role=client"),
            ("null,size=60", None, "null,size=60"),
            ("eth0", None, "eth0"),
            ("w=eth0", Some("w"), "eth0"),
        ] {
            let port = read(text);
            assert_eq!((port.name.as_deref(), port.location.as_str()), (name, location), "{text}");
        }
    }

    #[test]
    fn captures_have_filters() {
        let read = |text: &str| text.parse::<CaptureSpec>().unwrap();
        let plain = read("p0=/tmp/a.pcapng");
        assert_eq!((plain.port.as_str(), plain.filters), ("p0", json!([])));
        let spec = read(
            "p0=a.pcap,snap=96,ipv4.proto=17,vlan.id=7/0xff,vlan2,ipv4.src!=198.18.0.1,ethernet.type=0",
        );
        assert_eq!(spec.snap, Some(96));
        let field = |value: &str, mask: &str, negate: bool| json!({"value": value, "mask": mask, "negate": negate});
        assert_eq!(
            spec.filters,
            json!([
                {"choice": "ethernet", "ethernet": {"ether_type": field("0", "ffff", false)}},
                {"choice": "vlan", "vlan": {"id": field("7", "ff", false)}},
                {"choice": "vlan", "vlan": {}},
                {"choice": "ipv4", "ipv4": {
                    "protocol": field("11", "ff", false),
                    "src": field("c6120001", "ffffffff", true),
                }},
            ])
        );
        let tos = read("p0=a.pcap,ipv4.tos=184").filters;
        assert_eq!(tos[0]["ipv4"]["priority"], field("b8", "ff", false));
    }

    #[test]
    fn every_fault_of_a_capture_names_its_key() {
        for (text, wanted) in [
            ("p0", "p0: has no value; write p0=VALUE"),
            ("p0=a.txt", "a.txt: give the file a name that ends in .pcapng or .pcap"),
            ("p0=a.pcap,snap=0", "snap: \"0\" is not"),
            ("p0=a.pcap,tcp", "\"tcp\" is no key; the keys are snap"),
            ("p0=a.pcap,udp.dst_port=5", "\"udp.dst_port\" is no key; the keys are snap"),
            ("p0=a.pcap,vlan.frob=5", "vlan.frob: vlan has no field of this name; its fields are"),
            ("p0=a.pcap,vlan.id=4096", "vlan.id: \"4096\" is not at most 4095"),
            ("p0=a.pcap,vlan.id=1,vlan.id=2", "vlan.id: given twice"),
            ("p0=a.pcap,vlan.id=", "vlan.id: has no value"),
            ("p0=a.pcap,vlan=5", "\"vlan\" is no key"),
        ] {
            let error = text.parse::<CaptureSpec>().unwrap_err().to_string();
            assert!(error.starts_with(wanted), "{wanted}: {error}");
        }
    }
}
