// SPDX-License-Identifier: BSD-3-Clause
//! Values as JSON, so that a file and the telemetry socket say the same.

use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::value::Value;
#[cfg(feature = "server")]
use crate::value::pieces;

/// For a file: a long text is one string. Dictionaries keep their order.
impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::U64(number) => serializer.serialize_u64(*number),
            Value::String(text) | Value::Text(text) => serializer.serialize_str(text),
            Value::Numbers(numbers) => serializer.collect_seq(numbers),
            Value::List(values) => serializer.collect_seq(values),
            Value::Dict(entries) => dictionary(serializer, entries, |value| value),
        }
    }
}

#[cfg(feature = "server")]
/// For the socket, in DPDK's form: a long text is a list of strings.
pub struct Told<'v>(pub &'v Value);

#[cfg(feature = "server")]
impl Serialize for Told<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Text(text) => serializer.collect_seq(pieces(text)),
            Value::List(values) => serializer.collect_seq(values.iter().map(Told)),
            Value::Dict(entries) => dictionary(serializer, entries, Told),
            plain => plain.serialize(serializer),
        }
    }
}

fn dictionary<'v, S: Serializer, T: Serialize>(
    serializer: S,
    entries: &'v [(String, Value)],
    written: impl Fn(&'v Value) -> T,
) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(entries.len()))?;
    for (name, value) in entries {
        map.serialize_entry(name, &written(value))?;
    }
    map.end()
}

#[cfg(all(test, feature = "server"))]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_one_string_in_a_file_and_several_on_the_socket() {
        let value = Value::List(vec![Value::dict([("t", Value::Text("x".repeat(128)))])]);
        let x = "x".repeat(127);
        assert_eq!(serde_json::to_string(&value).unwrap(), format!(r#"[{{"t":"{x}x"}}]"#));
        assert_eq!(
            serde_json::to_string(&Told(&value)).unwrap(),
            format!(r#"[{{"t":["{x}","x"]}}]"#)
        );
    }

    #[test]
    fn values_are_written_in_their_order() {
        let value = Value::dict([
            ("z", Value::List(vec![Value::dict([("n", u64::MAX.into())])])),
            ("a", Value::Numbers(vec![1, 2])),
            ("s", "a \"quoted\"\nline".into()),
        ]);
        assert_eq!(
            serde_json::to_string(&value).unwrap(),
            r#"{"z":[{"n":18446744073709551615}],"a":[1,2],"s":"a \"quoted\"\nline"}"#
        );
    }
}
