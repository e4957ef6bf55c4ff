// SPDX-License-Identifier: BSD-3-Clause
//! The values of answers.

/// An answer, or a part of one. Values that DPDK's format cannot represent are answered as `null`:
/// a number as the whole answer (put it into a [`Dict`](Self::Dict)), and numbers together with
/// texts in a [`List`](Self::List).
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// A number, in a dictionary.
    U64(u64),
    /// A text; at most 8191 bytes alone, 127 inside a list or dictionary.
    String(String),
    /// A longer text inside a dictionary: a list of strings that are the text when they are joined, each
    /// of at most 127 bytes (characters are not cut), at most 512.
    Text(String),
    /// Numbers; at most 512.
    Numbers(Vec<u64>),
    /// Lists or dictionaries, nothing else; at most 512.
    List(Vec<Value>),
    /// Named values, at most 256; names of letters, digits, `_` and `/`.
    Dict(Vec<(String, Value)>),
}

impl Value {
    /// A dictionary.
    #[must_use]
    pub fn dict<const N: usize>(entries: [(&str, Value); N]) -> Self {
        Self::Dict(entries.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }
}

/// Cuts a text into strings of at most 127 bytes, which fit into a telemetry list.
pub fn pieces(text: &str) -> impl Iterator<Item = &str> {
    const LONGEST: usize = 127;
    let mut rest = text;
    std::iter::from_fn(move || {
        let mut end = rest.len().min(LONGEST);
        while !rest.is_char_boundary(end) {
            end -= 1;
        }
        let (piece, after) = rest.split_at(end);
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::U64(number)
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::String(text)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::String(text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn long_texts_are_cut_between_characters() {
        let text = format!("{}ä{}", "x".repeat(126), "y".repeat(300));
        let pieces: Vec<&str> = super::pieces(&text).collect();
        assert_eq!(pieces.concat(), text);
        assert_eq!(pieces.iter().map(|piece| piece.len()).collect::<Vec<_>>(), [126, 127, 127, 48]);
        assert_eq!(super::pieces("").count(), 0);
    }
}
