// SPDX-License-Identifier: BSD-3-Clause
//! The length of answers and its limit: DPDK silently omits parts of a longer answer.

use crate::value::{Value, pieces};

/// Longest answer in bytes, as DPDK announces it to clients.
pub(crate) const LONGEST_ANSWER: usize = 16 * 1024;

/// Bytes that the answer to `command` has for its value, as JSON.
#[must_use]
pub fn room(command: &str) -> usize {
    // DPDK's strings end with a NUL.
    (LONGEST_ANSWER - 1).saturating_sub(r#"{"":}"#.len() + command.len())
}

impl Value {
    /// Returns true if the answer to `command` has room for this value.
    #[must_use]
    pub fn fits(&self, command: &str) -> bool {
        self.size() <= room(command)
    }

    /// Bytes that the value takes on the socket as JSON; perhaps less, if a text has control
    /// characters.
    #[must_use]
    pub fn size(&self) -> usize {
        match self {
            Self::U64(number) => digits(*number),
            Self::String(text) => quoted(text),
            Self::Text(text) => listed(pieces(text).map(quoted)),
            Self::Numbers(numbers) => listed(numbers.iter().map(|number| digits(*number))),
            Self::List(values) => listed(values.iter().map(Self::size)),
            Self::Dict(entries) => {
                listed(entries.iter().map(|(name, value)| quoted(name) + 1 + value.size()))
            }
        }
    }
}

/// Brackets around, and commas between.
fn listed(sizes: impl Iterator<Item = usize>) -> usize {
    let (count, sum) = sizes.fold((0, 0), |(count, sum), size| (count + 1, sum + size));
    2 + sum + usize::saturating_sub(count, 1)
}

fn quoted(text: &str) -> usize {
    let escaped = |byte: u8| match byte {
        b'"' | b'\\' => 2,
        // As \u0007.
        0..0x20 => 6,
        _ => 1,
    };
    2 + text.bytes().map(escaped).sum::<usize>()
}

fn digits(number: u64) -> usize {
    number.checked_ilog10().unwrap_or(0) as usize + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_of_the_greatest_length_fits_and_one_byte_more_does_not() {
        let command = "/linerate/x";
        let of = |length: usize| {
            // Pieces of 127 with quotes and commas, and a last one that fills it up.
            let text = |length| Value::dict([("t", Value::Text("x".repeat(length)))]);
            let length = (0..=length).rev().find(|most| text(*most).size() <= length).unwrap();
            text(length)
        };
        let most = room(command);
        assert_eq!(format!("{{\"{command}\":}}").len() + most + 1, LONGEST_ANSWER);
        assert_eq!(of(most).size(), most);
        assert!(of(most).fits(command));
        assert!(!of(most).fits("/linerate/xy"));
        assert!(!Value::Numbers(vec![u64::MAX; 1000]).fits(command));
        assert_eq!(room(&"x".repeat(LONGEST_ANSWER)), 0);
    }

    #[cfg(feature = "server")]
    #[test]
    fn a_size_is_that_of_the_json() {
        use crate::json::Told;
        let values = [
            Value::U64(0),
            Value::U64(9),
            Value::U64(10),
            Value::U64(u64::MAX),
            Value::String(String::new()),
            Value::String("a \"quoted\" \\ \u{7} ä".to_owned()),
            Value::Text(String::new()),
            Value::Text("x".repeat(127)),
            Value::Text("ä".repeat(200)),
            Value::Numbers(vec![]),
            Value::Numbers(vec![1, 22, 333]),
            Value::List(vec![]),
            Value::Dict(vec![]),
            Value::List(vec![
                Value::dict([("a", 1.into()), ("b", "x".into())]),
                Value::dict([("c", Value::List(vec![Value::Numbers(vec![1])]))]),
            ]),
        ];
        for value in values {
            let json = serde_json::to_string(&Told(&value)).unwrap();
            assert_eq!(value.size(), json.len(), "{json}");
        }
        // A character with a short escape is a little shorter.
        let json = serde_json::to_string(&Told(&Value::String("\n".to_owned()))).unwrap();
        assert!(Value::String("\n".to_owned()).size() > json.len());
    }
}
