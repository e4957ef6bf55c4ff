// SPDX-License-Identifier: BSD-3-Clause
//! The headers of a flow: implied by their fields, in the usual order, or given by a list.

use packet::headers::{self, HeaderKind};
use serde_json::{Map, Value, json};

use super::{SpecError, field};

/// The order of headers that are only implied by their fields. Others need `headers=`.
const ORDER: [&str; 14] = [
    "ethernet",
    "vlan",
    "mpls",
    "arp",
    "ethernetpause",
    "pfcpause",
    "ipv4",
    "ipv6",
    "icmp",
    "icmpv6",
    "igmpv1",
    "tcp",
    "udp",
    "vxlan",
];

/// Headers that need no further header after them.
const ENDS: [&str; 8] =
    ["arp", "ethernetpause", "pfcpause", "icmp", "icmpv6", "igmpv1", "tcp", "udp"];

/// Headers whose contents have no words here: bytes, and lists of segments.
const OTHERS: [&HeaderKind; 2] = [&headers::CUSTOM, &headers::IPV6_EXTENSION_HEADER];

/// Aliases of headers.
const HEADERS: [(&str, &str); 5] =
    [("eth", "ethernet"), ("dot1q", "vlan"), ("ip", "ipv4"), ("ip4", "ipv4"), ("ip6", "ipv6")];

/// Aliases of fields.
const FIELDS: [(&str, &str, &str); 22] = [
    ("ethernet", "type", "ether_type"),
    ("vlan", "pcp", "priority"),
    ("vlan", "dei", "cfi"),
    ("vlan", "vid", "id"),
    ("ipv4", "ttl", "time_to_live"),
    ("ipv4", "dscp", "priority.dscp.phb"),
    ("ipv4", "ecn", "priority.dscp.ecn"),
    ("ipv4", "tos", "priority.raw"),
    ("ipv4", "proto", "protocol"),
    ("ipv4", "id", "identification"),
    ("ipv4", "df", "dont_fragment"),
    ("ipv4", "checksum", "header_checksum"),
    ("ipv6", "hlim", "hop_limit"),
    ("ipv6", "ttl", "hop_limit"),
    ("ipv6", "tc", "traffic_class"),
    ("ipv6", "flow", "flow_label"),
    ("udp", "sport", "src_port"),
    ("udp", "dport", "dst_port"),
    ("tcp", "sport", "src_port"),
    ("tcp", "dport", "dst_port"),
    ("tcp", "seq", "seq_num"),
    ("tcp", "ack", "ack_num"),
];

/// Defaults of fields: addresses of RFC 2544 and RFC 5180, which are reserved for such tests,
/// locally administered MAC addresses, and the port of the discard service.
const DEFAULTS: [(&str, &str, &str); 10] = [
    ("ethernet", "src", "02:00:00:00:00:01"),
    ("ethernet", "dst", "02:00:00:00:00:02"),
    ("ipv4", "src", "198.18.0.1"),
    ("ipv4", "dst", "198.19.0.1"),
    ("ipv6", "src", "2001:2::1"),
    ("ipv6", "dst", "2001:2:0:8000::1"),
    ("udp", "src_port", "49152"),
    ("udp", "dst_port", "9"),
    ("tcp", "src_port", "49152"),
    ("tcp", "dst_port", "9"),
];

/// A header, and its number among those of its kind, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    kind: &'static HeaderKind,
    nth: usize,
}

/// A field that was given.
#[derive(Clone, Debug)]
struct Given {
    key: String,
    place: Place,
    field: &'static str,
    pattern: Value,
}

/// The headers that were given so far.
#[derive(Clone, Debug, Default)]
pub struct Stack {
    listed: Option<Vec<&'static HeaderKind>>,
    alone: Vec<(String, Place)>,
    fields: Vec<Given>,
}

/// A header by its name or alias.
fn kind(name: &str) -> Option<&'static HeaderKind> {
    let lower = name.to_ascii_lowercase();
    let other = HEADERS.iter().find(|(other, _)| *other == lower);
    headers::kind(other.map_or(lower.as_str(), |(_, name)| name))
        .filter(|kind| !OTHERS.contains(kind))
}

/// `vlan` is the first of its kind, `vlan2` the second.
fn place(name: &str) -> Option<Place> {
    if let Some(kind) = kind(name) {
        return Some(Place { kind, nth: 1 });
    }
    let numbered = |other: &str| {
        let nth = name.strip_prefix(other)?.parse().ok().filter(|nth| (2..=16).contains(nth))?;
        Some((other.len(), Place { kind: kind(other)?, nth }))
    };
    let own = headers::KINDS.iter().map(|kind| kind.name);
    let names = own.chain(HEADERS.iter().map(|(other, _)| *other));
    // Names may end in digits themselves: `ipv42` is the second ipv4.
    names.filter_map(numbered).max_by_key(|(len, _)| *len).map(|(_, place)| place)
}

/// The header with that name, and its number among those of its kind, from 1.
pub fn named(word: &str) -> Option<(&'static HeaderKind, usize)> {
    place(word).map(|place| (place.kind, place.nth))
}

/// The model's name of a field, which may have an alias.
pub fn field_name<'a>(kind: &HeaderKind, name: &'a str) -> &'a str {
    let other = FIELDS.iter().find(|(header, other, _)| *header == kind.name && *other == name);
    other.map_or(name, |(.., name)| name)
}

/// Returns true if a single word is a header.
pub fn is_header(word: &str) -> bool {
    place(word).is_some()
}

/// The names of all headers.
pub fn names() -> String {
    let known = headers::KINDS.iter().filter(|kind| !OTHERS.contains(kind));
    known.map(|kind| kind.name).collect::<Vec<_>>().join(", ")
}

impl Stack {
    /// Returns true if nothing was given.
    pub fn is_empty(&self) -> bool {
        self.listed.is_none() && self.alone.is_empty() && self.fields.is_empty()
    }

    /// Adds a header given by a single word.
    pub fn add(&mut self, word: &str) {
        self.alone.extend(place(word).map(|place| (word.to_owned(), place)));
    }

    /// All headers, in order: `ethernet/vlan/ipv4/udp`.
    ///
    /// # Errors
    /// [`SpecError::UnknownHeader`].
    pub fn list(&mut self, key: &str, text: &str) -> Result<(), SpecError> {
        let read = |name: &str| {
            kind(name.trim()).ok_or_else(|| SpecError::UnknownHeader {
                key: key.to_owned(),
                header: name.chars().take(60).collect(),
                known: names(),
            })
        };
        self.listed = Some(text.split('/').map(read).collect::<Result<_, _>>()?);
        Ok(())
    }

    /// Sets a field, whose key is HEADER.FIELD. `None` if there is no such header.
    ///
    /// # Errors
    /// [`SpecError`] that names the key.
    pub fn set(&mut self, key: &str, text: &str) -> Result<Option<()>, SpecError> {
        let Some((header, name)) = key.split_once('.') else { return Ok(None) };
        let Some(place) = place(header) else { return Ok(None) };
        let name = field_name(place.kind, name);
        let Some(field) = place.kind.field(name) else {
            let known: Vec<&str> = place.kind.fields.iter().map(|field| field.name).collect();
            return Err(SpecError::UnknownField {
                key: key.to_owned(),
                header: place.kind.name,
                known: known.join(", "),
            });
        };
        if self.fields.iter().any(|given| given.place == place && given.field == field.name) {
            return Err(SpecError::Twice { key: key.to_owned() });
        }
        let pattern = field::pattern(key, field, text)?;
        self.fields.push(Given { key: key.to_owned(), place, field: field.name, pattern });
        Ok(Some(()))
    }

    /// The list in OTG's model.
    ///
    /// # Errors
    /// [`SpecError`] if headers cannot be combined.
    pub fn to_otg(&self) -> Result<Value, SpecError> {
        let kinds = match &self.listed {
            Some(listed) => {
                self.check_listed(listed)?;
                listed.clone()
            }
            None => self.inferred()?,
        };
        let mut seen: Vec<&str> = Vec::new();
        let mut packet = Vec::new();
        for kind in kinds {
            seen.push(kind.name);
            let nth = seen.iter().filter(|name| **name == kind.name).count();
            packet
                .push(json!({ "choice": kind.name, kind.name: self.header(Place { kind, nth }) }));
        }
        Ok(Value::Array(packet))
    }

    fn places(&self) -> impl Iterator<Item = (&String, Place)> {
        let alone = self.alone.iter().map(|(key, place)| (key, *place));
        alone.chain(self.fields.iter().map(|given| (&given.key, given.place)))
    }

    fn check_listed(&self, listed: &[&'static HeaderKind]) -> Result<(), SpecError> {
        for (key, place) in self.places() {
            let there = listed.iter().filter(|kind| **kind == place.kind).count();
            if there < place.nth {
                return Err(SpecError::Conflict {
                    key: key.clone(),
                    other: "headers=".to_owned(),
                    advice: "which does not list this header: add it there",
                });
            }
        }
        Ok(())
    }

    fn inferred(&self) -> Result<Vec<&'static HeaderKind>, SpecError> {
        let most = |name: &str| {
            self.places()
                .filter(|(_, place)| place.kind.name == name)
                .map(|(_, place)| place.nth)
                .max()
        };
        for (key, place) in self.places() {
            if !ORDER.contains(&place.kind.name) {
                return Err(SpecError::Needs {
                    key: key.clone(),
                    other: "headers=, such as headers=ethernet/ipv4/gre/ipv4/udp,",
                });
            }
        }
        let ip = match (most("ipv4"), most("ipv6")) {
            (Some(_), Some(_)) => {
                return Err(SpecError::Conflict {
                    key: "ipv6".to_owned(),
                    other: "ipv4".to_owned(),
                    advice: "give their order by headers=",
                });
            }
            (None, Some(_)) => "ipv6",
            (Some(_), None) => "ipv4",
            (None, None) if most("icmpv6").is_some() => "ipv6",
            (None, None) => "ipv4",
        };
        let ends = |name: &&str| most(name).is_some();
        let udp = most("vxlan").is_some() || !ENDS.iter().any(&ends);
        let on_ip = udp || ["icmp", "icmpv6", "igmpv1", "tcp", "udp"].iter().any(ends);
        let needed = |name: &str| match name {
            "ethernet" => 1,
            "udp" if udp => 1,
            _ if name == ip && on_ip => 1,
            _ => 0,
        };
        let mut kinds = Vec::new();
        for name in ORDER {
            let count = most(name).unwrap_or(0).max(needed(name));
            kinds.extend(
                headers::kind(name).into_iter().flat_map(|kind| std::iter::repeat_n(kind, count)),
            );
        }
        Ok(kinds)
    }

    /// The fields of one header.
    fn header(&self, place: Place) -> Value {
        let mut object = Map::new();
        let given: Vec<&Given> = self.fields.iter().filter(|given| given.place == place).collect();
        for (_, name, text) in DEFAULTS.iter().filter(|(kind, ..)| *kind == place.kind.name) {
            let set = given.iter().any(|given| given.field == *name);
            let field = place.kind.field(name).filter(|_| !set);
            if let Some(Ok(pattern)) = field.map(|field| field::pattern(name, field, text)) {
                insert(&mut object, name, pattern);
            }
        }
        for given in given {
            insert(&mut object, given.field, given.pattern.clone());
        }
        Value::Object(object)
    }
}

/// Sets a field whose path contains dots.
fn insert(object: &mut Map<String, Value>, path: &str, value: Value) {
    match path.split_once('.') {
        None => {
            object.insert(path.to_owned(), value);
        }
        Some((first, rest)) => {
            let child = object.entry(first).or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(child) = child {
                insert(child, rest, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names_of(
        fields: &[(&str, &str)],
        alone: &[&str],
        listed: Option<&str>,
    ) -> Result<String, String> {
        let mut stack = Stack::default();
        let build = |stack: &mut Stack| -> Result<Value, SpecError> {
            if let Some(listed) = listed {
                stack.list("headers", listed)?;
            }
            for (key, text) in fields {
                assert!(stack.set(key, text)?.is_some(), "{key}");
            }
            alone.iter().for_each(|word| stack.add(word));
            stack.to_otg()
        };
        let packet = build(&mut stack).map_err(|error| error.to_string())?;
        let name = |header: &Value| header["choice"].as_str().unwrap().to_owned();
        Ok(packet.as_array().unwrap().iter().map(name).collect::<Vec<_>>().join("/"))
    }

    #[test]
    fn headers_follow_from_their_fields() {
        for (fields, alone, wanted) in [
            (&[][..], &[][..], "ethernet/ipv4/udp"),
            (&[("eth.src", "02:00:00:00:00:09")], &[], "ethernet/ipv4/udp"),
            (&[("vlan.id", "7")], &[], "ethernet/vlan/ipv4/udp"),
            (&[("vlan2.id", "7")], &["tcp"], "ethernet/vlan/vlan/ipv4/tcp"),
            (&[("ipv6.dst", "fd00::1")], &[], "ethernet/ipv6/udp"),
            (&[("tcp.dport", "80"), ("ip6.src", "fd00::1")], &[], "ethernet/ipv6/tcp"),
            (&[("vxlan.vni", "5")], &["vlan"], "ethernet/vlan/ipv4/udp/vxlan"),
            (&[], &["icmp"], "ethernet/ipv4/icmp"),
            (&[], &["icmpv6"], "ethernet/ipv6/icmpv6"),
            (&[], &["arp", "vlan"], "ethernet/vlan/arp"),
            (&[("mpls.label", "16")], &[], "ethernet/mpls/ipv4/udp"),
        ] {
            assert_eq!(names_of(fields, alone, None), Ok(wanted.to_owned()));
        }
        let listed = "ethernet/ipv4/gre/ipv4/tcp";
        assert_eq!(
            names_of(&[("ipv42.src", "10.0.0.1")], &[], Some(listed)),
            Ok(listed.to_owned())
        );
    }

    #[test]
    fn what_does_not_go_together_is_named() {
        for (fields, listed, wanted) in [
            (&[("ipv4.ttl", "9"), ("ipv6.hlim", "9")][..], None, "ipv6: does not go with ipv4"),
            (&[("gre.protocol", "9")], None, "gre.protocol: needs headers="),
            (
                &[("tcp.dport", "9")],
                Some("ethernet/ipv4/udp"),
                "tcp.dport: does not go with headers=",
            ),
            (&[("vlan2.id", "9")], Some("ethernet/vlan"), "vlan2.id: does not go with headers="),
            (&[], Some("ethernet/ip9"), "headers: there is no header \"ip9\"; the headers are"),
            (
                &[("udp.port", "9")],
                None,
                "udp.port: udp has no field of this name; its fields are src_port",
            ),
            (&[("udp.dport", "9"), ("udp.dst_port", "9")], None, "udp.dst_port: given twice"),
            (&[("vlan.id", "4096")], None, "vlan.id: \"4096\" is not at most 4095"),
        ] {
            let error = names_of(fields, &[], listed).unwrap_err();
            assert!(error.starts_with(wanted), "{wanted}: {error}");
        }
        assert!(Stack::default().set("frob.x", "1").unwrap().is_none());
        assert!(Stack::default().set("udp", "1").unwrap().is_none());
        assert!(!is_header("custom") && is_header("eth") && !is_header("vlan1") && !is_header("2"));
    }

    #[test]
    fn fields_have_their_places_and_defaults() {
        let mut stack = Stack::default();
        stack.set("ip.dscp", "46").unwrap().unwrap();
        stack.set("ip.src", "10.0.0.1+5").unwrap().unwrap();
        let packet = stack.to_otg().unwrap();
        assert_eq!(packet[1]["ipv4"]["priority"]["dscp"]["phb"], json!({"value": 46}));
        assert_eq!(packet[1]["ipv4"]["src"]["increment"]["count"], 5);
        assert_eq!(packet[1]["ipv4"]["dst"], json!({"value": "198.19.0.1"}));
        assert_eq!(packet[0]["ethernet"]["src"], json!({"value": "02:00:00:00:00:01"}));
        for (kind, field, text) in DEFAULTS {
            assert!(
                field::pattern(field, headers::kind(kind).unwrap().field(field).unwrap(), text)
                    .is_ok()
            );
        }
        for (kind, other, name) in FIELDS {
            assert!(headers::kind(kind).unwrap().field(name).is_some(), "{kind}.{other}");
        }
    }
}
