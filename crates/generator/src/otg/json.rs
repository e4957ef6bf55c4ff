// SPDX-License-Identifier: BSD-3-Clause
//! JSON read strictly: a key given twice is an error, not a choice of the parser's.

use std::cell::Cell;
use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::ApiError;
use crate::plan::MAX_FLOWS;

/// Reads a request's body, which must be one JSON object.
///
/// # Errors
/// A 400 that says where the text is wrong.
pub fn parse(body: &[u8]) -> Result<Value, ApiError> {
    let left = Cell::new(MAX_OBJECTS);
    let mut reader = serde_json::Deserializer::from_slice(body);
    let value = Strict { left: &left }.deserialize(&mut reader);
    match value.and_then(|value| reader.end().map(|()| value)) {
        Ok(value @ Value::Object(_)) => Ok(value),
        Ok(_) => Err(ApiError::request(400, "the body must be a JSON object")),
        Err(error) => Err(ApiError::request(400, format!("the body is not valid JSON: {error}"))),
    }
}

/// Most objects and lists of a body: 64 for each of the most flows; one of UDP has 25. An object of few bytes takes hundreds
/// in memory, and reading a body of nothing else would hold up all other requests for a second.
const MAX_OBJECTS: usize = 64 * MAX_FLOWS;

#[derive(Clone, Copy)]
struct Strict<'a> {
    /// Objects and lists that may still come.
    left: &'a Cell<usize>,
}

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Strict<'_> {
    fn one_more<E: de::Error>(self) -> Result<(), E> {
        let left = self.left.get().checked_sub(1);
        self.left.set(left.ok_or_else(|| {
            E::custom(format!("there are more than {MAX_OBJECTS} objects and lists"))
        })?);
        Ok(())
    }
}

impl<'de> Visitor<'de> for Strict<'_> {
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
        self.one_more()?;
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        self.one_more()?;
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            let value = entries.next_value_seed(self)?;
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
        // As many as fit into a body would take most of a gigabyte.
        for item in ["{}", "[]"] {
            let items = vec![item; MAX_OBJECTS].join(",");
            let error = parse(format!("{{\"a\":[{items}]}}").as_bytes()).unwrap_err();
            assert!(error.errors[0].contains("more than 1048576 objects and lists"), "{item}");
        }
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
