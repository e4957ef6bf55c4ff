// SPDX-License-Identifier: BSD-3-Clause
//! Splits `key=value,word,key=value,more`.
//!
//! A part without `=` that is not a word of its own belongs to the value before it, so that lists
//! need no quotes: `size=64:7,594:4,udp.dst_port=53,80`.

use super::SpecError;

/// A key with its value, or a single word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// The key, or the word.
    pub key: String,
    /// What follows the `=`.
    pub value: Option<String>,
}

impl Item {
    /// The value.
    ///
    /// # Errors
    /// [`SpecError::NoValue`] if there is none.
    pub fn value(&self) -> Result<&str, SpecError> {
        let value = self.value.as_deref().filter(|value| !value.is_empty());
        value.ok_or_else(|| SpecError::NoValue { key: self.key.clone() })
    }
}

/// The items of a text; `is_word` returns true for words without a value, `lists_names` for keys
/// whose lists contain names.
///
/// # Errors
/// [`SpecError::Empty`].
pub fn split(
    text: &str,
    is_word: impl Fn(&str) -> bool,
    lists_names: impl Fn(&str) -> bool,
) -> Result<Vec<Item>, SpecError> {
    let mut items: Vec<Item> = Vec::new();
    for part in text.split(',').map(str::trim) {
        if part.is_empty() {
            return Err(SpecError::Empty);
        }
        if let Some((key, value)) = part.split_once('=') {
            let (key, value) = (key.trim().to_owned(), Some(value.trim().to_owned()));
            items.push(Item { key, value });
            continue;
        }
        let before = items.last_mut().filter(|_| !is_word(part));
        let more = before.and_then(|item| {
            // A misspelt word has no digits: it is reported as unknown.
            let belongs = lists_names(&item.key) || part.contains(|c: char| c.is_ascii_digit());
            item.value.as_mut().filter(|_| belongs)
        });
        match more {
            Some(value) => {
                value.push(',');
                value.push_str(part);
            }
            None => items.push(Item { key: part.to_owned(), value: None }),
        }
    }
    Ok(items)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<(String, Option<String>)> {
        let items = split(text, |word| word == "vlan", |key| key == "to").unwrap();
        items.into_iter().map(|item| (item.key, item.value)).collect()
    }

    #[test]
    fn lists_go_on_behind_commas() {
        let some = |key: &str, value: &str| (key.to_owned(), Some(value.to_owned()));
        let word = |key: &str| (key.to_owned(), None);
        assert_eq!(read("a=1,b=2"), [some("a", "1"), some("b", "2")]);
        assert_eq!(read("s=64:7,594:4, x=1"), [some("s", "64:7,594:4"), some("x", "1")]);
        assert_eq!(read("to=left,right,vlan"), [some("to", "left,right"), word("vlan")]);
        assert_eq!(read("a=1,latancy"), [some("a", "1"), word("latancy")]);
        assert_eq!(read("vlan,7"), [word("vlan"), word("7")]);
        assert_eq!(read("f=a=b"), [some("f", "a=b")]);
    }

    #[test]
    fn empty_parts_and_values_are_faults() {
        for text in ["", ",", "a=1,", "a=1,,b=2"] {
            assert!(split(text, |_| false, |_| false).is_err(), "{text}");
        }
        let items = split("name=", |_| false, |_| false).unwrap();
        assert_eq!(
            items[0].value().unwrap_err().to_string(),
            "name: has no value; write name=VALUE"
        );
    }
}
