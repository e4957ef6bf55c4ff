// SPDX-License-Identifier: BSD-3-Clause
//! JSON read strictly: a key given twice is an error, not a choice of the parser's.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::ApiError;

/// Reads a request's body, which must be one JSON object.
///
/// # Errors
/// A 400 that says where the text is wrong.
pub fn parse(body: &[u8]) -> Result<Value, ApiError> {
    match serde_json::from_slice::<Strict>(body) {
        Ok(Strict(value @ Value::Object(_))) => Ok(value),
        Ok(_) => Err(ApiError::request(400, "the body must be a JSON object")),
        Err(error) => Err(ApiError::request(400, format!("the body is not valid JSON: {error}"))),
    }
}

struct Strict(Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StrictVisitor).map(Strict)
    }
}

struct StrictVisitor;

impl<'de> Visitor<'de> for StrictVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value)
            .map(Value::Number)
            .ok_or_else(|| E::custom("a number is not finite"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Strict(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some((key, Strict(value))) = entries.next_entry::<String, Strict>()? {
            if map.contains_key(&key) {
                return Err(de::Error::custom(format!("the key {key:?} is given twice")));
            }
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_a_clean_object_is_a_body() {
        for (body, wanted) in [
            ("", "EOF"),
            ("[]", "must be a JSON object"),
            ("{\"a\":1,\"a\":2}", "\"a\" is given twice"),
            ("{\"a\":{\"b\":[{\"c\":1,\"c\":1}]}}", "\"c\" is given twice"),
            ("{} {}", "trailing"),
            ("{\"a\":NaN}", "line 1"),
            ("{\"a\":1e999}", "out of range"),
        ] {
            let error = parse(body.as_bytes()).unwrap_err();
            assert!(error.status == 400 && error.errors[0].contains(wanted), "{body}: {error}");
        }
        let deep = "[".repeat(100_000);
        assert!(
            parse(format!("{{\"a\":{deep}").as_bytes()).unwrap_err().errors[0]
                .contains("recursion")
        );
        assert!(parse(b"{\"a\":\xff}").is_err());
    }

    proptest! {
        #[test]
        fn nothing_makes_it_panic(body in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&body);
        }

        #[test]
        fn it_reads_what_serde_json_reads(text in "[a-z]{0,6}", number: i64, quarters: i32) {
            let float = f64::from(quarters) / 4.0;
            let value = serde_json::json!({"t": text, "n": [number, float, null, true], "o": {"x": {}}});
            prop_assert_eq!(parse(value.to_string().as_bytes()), Ok(value));
        }
    }
}
