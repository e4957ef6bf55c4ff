// SPDX-License-Identifier: BSD-3-Clause
//! Telemetry values as JSON, so that a file and the telemetry socket say the same.

use dpdk::telemetry::Value;
use serde::ser::{Serialize, SerializeMap, Serializer};

/// A telemetry value that serde can write; dictionaries keep their order.
pub struct Json<'v>(pub &'v Value);

impl Serialize for Json<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::U64(number) => serializer.serialize_u64(*number),
            Value::String(text) | Value::Text(text) => serializer.serialize_str(text),
            Value::Numbers(numbers) => serializer.collect_seq(numbers),
            Value::List(values) => serializer.collect_seq(values.iter().map(Json)),
            Value::Dict(entries) => {
                let mut map = serializer.serialize_map(Some(entries.len()))?;
                for (name, value) in entries {
                    map.serialize_entry(name, &Json(value))?;
                }
                map.end()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_in_their_order() {
        let value = Value::dict([
            ("z", Value::List(vec![Value::dict([("n", u64::MAX.into())])])),
            ("a", Value::Numbers(vec![1, 2])),
            ("s", "a \"quoted\"\nline".into()),
        ]);
        assert_eq!(
            serde_json::to_string(&Json(&value)).unwrap(),
            r#"{"z":[{"n":18446744073709551615}],"a":[1,2],"s":"a \"quoted\"\nline"}"#
        );
    }
}
