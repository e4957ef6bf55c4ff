// SPDX-License-Identifier: BSD-3-Clause
//! The values of a header's field, as users write them: a value, a list, a count, a range, or
//! random.
//!
//! | text | meaning |
//! |---|---|
//! | `80` | always this |
//! | `53,80,443` | these in turn |
//! | `10000+1000` | 1000 values from 10000 on; `10000+1000/2` in steps of 2 |
//! | `10000-10999` | from the first to the last, downwards if the last is less; `/STEP` too |
//! | `198.18.0.0/24` | all addresses of the prefix |
//! | `random`, `random:1024-65535` | random values; `@SEED` behind it for others |
//! | `good`, `bad`, `0xbeef` | of checksums |

use std::net::{Ipv4Addr, Ipv6Addr};

use packet::MacAddr;
use packet::headers::{FieldKind, Format};
use serde_json::{Value, json};

use super::SpecError;

/// How many random values are drawn before they repeat.
const DRAWN: u64 = 65_536;

/// The pattern of a field in OTG's model.
///
/// # Errors
/// [`SpecError::Value`] that names `key`.
pub fn pattern(key: &str, kind: &FieldKind, text: &str) -> Result<Value, SpecError> {
    let field = Field { key, kind };
    if kind.is_checksum() {
        return field.checksum(text);
    }
    if let Some(rest) = text.strip_prefix("random") {
        return field.random(text, rest);
    }
    if text.contains(',') {
        let values: Result<Vec<Value>, _> =
            text.split(',').map(|text| field.number(text).map(|n| field.json(n))).collect();
        return Ok(json!({ "values": values? }));
    }
    field.one(text)
}

/// A value of a field as a number.
///
/// # Errors
/// [`SpecError::Value`] that names `key`.
pub fn single(key: &str, kind: &FieldKind, text: &str) -> Result<u128, SpecError> {
    Field { key, kind }.number(text)
}

struct Field<'a> {
    key: &'a str,
    kind: &'a FieldKind,
}

impl Field<'_> {
    fn bad(&self, text: &str) -> SpecError {
        let what = match self.kind.format {
            Format::Number => "a number such as 80 or 0x50",
            Format::Mac => "an Ethernet address such as 02:00:00:00:00:01",
            Format::Ipv4 => "an IPv4 address such as 198.18.0.1",
            Format::Ipv6 => "an IPv6 address such as 2001:2::1",
        };
        let wanted = format!(
            "{what}, nor a list A,B, a count A+1000, a range A-B (either with /STEP), or random:A-B"
        );
        SpecError::value(self.key, text, wanted)
    }

    /// A value as a number.
    fn number(&self, text: &str) -> Result<u128, SpecError> {
        let text = text.trim();
        let number = match self.kind.format {
            Format::Number => number(text),
            Format::Mac => text.parse::<MacAddr>().ok().map(|mac| mac.to_u64().into()),
            Format::Ipv4 => text.parse::<Ipv4Addr>().ok().map(|ip| u32::from(ip).into()),
            Format::Ipv6 => text.parse::<Ipv6Addr>().ok().map(u128::from),
        };
        let number = number.ok_or_else(|| self.bad(text))?;
        match number <= self.kind.max() {
            true => Ok(number),
            false => {
                let wanted =
                    format!("at most {}, which fills its {} bits", self.kind.max(), self.kind.bits);
                Err(SpecError::value(self.key, text, wanted))
            }
        }
    }

    /// A number in the model's form for this field.
    fn json(&self, number: u128) -> Value {
        match self.kind.format {
            Format::Number => json!(u64::try_from(number).unwrap_or(u64::MAX)),
            Format::Mac => {
                let bytes = number.to_be_bytes();
                let pairs: Vec<String> =
                    bytes.iter().skip(10).map(|byte| format!("{byte:02x}")).collect();
                json!(pairs.join(":"))
            }
            Format::Ipv4 => json!(Ipv4Addr::from(number as u32).to_string()),
            Format::Ipv6 => json!(Ipv6Addr::from(number).to_string()),
        }
    }

    fn counter(&self, choice: &str, start: u128, step: u128, count: u128) -> Value {
        let count = count.clamp(1, u32::MAX.into()) as u64;
        json!({ choice: { "start": self.json(start), "step": self.json(step), "count": count } })
    }

    fn one(&self, text: &str) -> Result<Value, SpecError> {
        let (main, step) = match text.split_once('/') {
            Some((main, step)) => (main, Some(step)),
            None => (text, None),
        };
        let step_size = || match step {
            None => Ok(1),
            Some(step) => {
                number(step).filter(|step| (1..=self.kind.max()).contains(step)).ok_or_else(|| {
                    SpecError::value(
                        self.key,
                        step,
                        "a step: a number of at least 1 that fits the field",
                    )
                })
            }
        };
        if let Some((start, count)) = main.split_once('+') {
            let values = super::quantity::count(self.key, count)?;
            return Ok(self.counter("increment", self.number(start)?, step_size()?, values.into()));
        }
        if let Some((first, last)) = main.split_once('-') {
            let (first, last, step) = (self.number(first)?, self.number(last)?, step_size()?);
            let (choice, width) = match first <= last {
                true => ("increment", last - first),
                false => ("decrement", first - last),
            };
            return Ok(self.counter(choice, first, step, (width / step).saturating_add(1)));
        }
        let value = self.number(main)?;
        match (step, self.kind.format) {
            (None, _) => Ok(json!({ "value": self.json(value) })),
            (Some(len), Format::Ipv4 | Format::Ipv6) => self.prefix(text, value, len),
            (Some(_), _) => Err(self.bad(text)),
        }
    }

    fn prefix(&self, text: &str, address: u128, len: &str) -> Result<Value, SpecError> {
        let bits = self.kind.bits;
        let bad = || {
            let wanted = format!("a prefix: its length is a number from 1 to {bits}");
            SpecError::value(self.key, text, wanted)
        };
        let len = len.parse::<u32>().ok().filter(|len| (1..=bits).contains(len)).ok_or_else(bad)?;
        let host = match bits - len {
            0 => 0,
            free => u128::MAX >> (128 - free),
        };
        Ok(self.counter("increment", address & !host, 1, host.saturating_add(1)))
    }

    fn random(&self, text: &str, rest: &str) -> Result<Value, SpecError> {
        let (range, seed) = match rest.split_once('@') {
            Some((range, seed)) => (range, Some(seed)),
            None => (rest, None),
        };
        let (min, max) = match range.strip_prefix(':') {
            Some(range) => {
                let (min, max) = range.split_once('-').ok_or_else(|| self.bad(text))?;
                (self.number(min)?, self.number(max)?)
            }
            None if range.is_empty() => (0, self.kind.max()),
            None => return Err(self.bad(text)),
        };
        let seed = match seed {
            None => 1,
            Some(seed) => seed.parse::<u32>().map_err(|_| {
                SpecError::value(self.key, seed, "a seed: a number from 0 to 4294967295")
            })?,
        };
        Ok(json!({
            "random": { "min": self.json(min), "max": self.json(max), "seed": seed, "count": DRAWN }
        }))
    }

    fn checksum(&self, text: &str) -> Result<Value, SpecError> {
        match text {
            "good" | "bad" => Ok(json!({ "generated": text })),
            _ => match number(text).filter(|number| *number <= 0xffff) {
                Some(number) => Ok(json!({ "custom": number as u64 })),
                None => Err(SpecError::value(
                    self.key,
                    text,
                    "a checksum: good, bad or a number up to 0xffff",
                )),
            },
        }
    }
}

/// Parses a number, decimal or with the prefix 0x.
fn number(text: &str) -> Option<u128> {
    match text.strip_prefix("0x") {
        Some(digits) if digits.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
            u128::from_str_radix(digits, 16).ok()
        }
        Some(_) => None,
        None if text.bytes().all(|byte| byte.is_ascii_digit()) => text.parse().ok(),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use packet::headers;

    fn read(header: &str, field: &str, text: &str) -> Result<Value, String> {
        let kind = headers::kind(header).unwrap().field(field).unwrap();
        pattern("key", kind, text).map_err(|error| error.to_string())
    }

    #[test]
    fn every_form_is_read() {
        let counter = |start: Value, step: Value, count: u64| json!({"start": start, "step": step, "count": count});
        for (header, field, text, wanted) in [
            ("udp", "dst_port", "80", json!({"value": 80})),
            ("udp", "dst_port", "0x50", json!({"value": 80})),
            ("udp", "dst_port", "53,80", json!({"values": [53, 80]})),
            (
                "udp",
                "dst_port",
                "10000+1000",
                json!({"increment": counter(json!(10000), json!(1), 1000)}),
            ),
            (
                "udp",
                "dst_port",
                "10000+10/2",
                json!({"increment": counter(json!(10000), json!(2), 10)}),
            ),
            ("udp", "dst_port", "10-19", json!({"increment": counter(json!(10), json!(1), 10)})),
            ("udp", "dst_port", "10-19/3", json!({"increment": counter(json!(10), json!(3), 4)})),
            ("udp", "dst_port", "19-10", json!({"decrement": counter(json!(19), json!(1), 10)})),
            ("ipv4", "src", "198.18.0.1", json!({"value": "198.18.0.1"})),
            (
                "ipv4",
                "src",
                "198.18.0.1+1000",
                json!({"increment": counter(json!("198.18.0.1"), json!("0.0.0.1"), 1000)}),
            ),
            (
                "ipv4",
                "src",
                "198.18.1.7/24",
                json!({"increment": counter(json!("198.18.1.0"), json!("0.0.0.1"), 256)}),
            ),
            (
                "ipv4",
                "src",
                "1.2.3.4/32",
                json!({"increment": counter(json!("1.2.3.4"), json!("0.0.0.1"), 1)}),
            ),
            (
                "ipv6",
                "dst",
                "fd00::1-fd00::ff",
                json!({"increment": counter(json!("fd00::1"), json!("::1"), 255)}),
            ),
            (
                "ethernet",
                "src",
                "02:00:00:00:00:01+4/256",
                json!({"increment": counter(json!("02:00:00:00:00:01"), json!("00:00:00:00:01:00"), 4)}),
            ),
            (
                "udp",
                "src_port",
                "random:1024-65535@7",
                json!({"random": {"min": 1024, "max": 65535, "seed": 7, "count": DRAWN}}),
            ),
            (
                "vlan",
                "id",
                "random",
                json!({"random": {"min": 0, "max": 4095, "seed": 1, "count": DRAWN}}),
            ),
            ("udp", "checksum", "bad", json!({"generated": "bad"})),
            ("ipv4", "header_checksum", "0xbeef", json!({"custom": 0xbeef})),
        ] {
            assert_eq!(read(header, field, text), Ok(wanted), "{text}");
        }
    }

    #[test]
    fn what_is_no_value_is_named() {
        for (header, field, text, wanted) in [
            ("udp", "dst_port", "http", "is not a number such as"),
            ("udp", "dst_port", "65536", "is not at most 65535"),
            ("udp", "dst_port", "1,65536", "is not at most 65535"),
            ("udp", "dst_port", "1+0", "is not a number of at least 1"),
            ("udp", "dst_port", "1+5/0", "is not a step"),
            ("udp", "dst_port", "80/2", "is not a number such as"),
            ("udp", "dst_port", "", "is not a number such as"),
            ("udp", "dst_port", "randomly", "is not a number such as"),
            ("udp", "dst_port", "random:1-2@x", "is not a seed"),
            ("ipv4", "src", "198.18.0", "is not an IPv4 address"),
            ("ipv4", "src", "198.18.0.0/33", "is not a prefix"),
            ("ipv4", "src", "198.18.0.0/0", "is not a prefix"),
            ("ipv6", "src", "198.18.0.1", "is not an IPv6 address"),
            ("ethernet", "dst", "02:00", "is not an Ethernet address"),
            ("udp", "checksum", "ugly", "is not a checksum"),
            ("udp", "checksum", "0x10000", "is not a checksum"),
        ] {
            let error = read(header, field, text).unwrap_err();
            assert!(error.starts_with("key: ") && error.contains(wanted), "{text}: {error}");
        }
    }
}
