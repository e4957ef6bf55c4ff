// SPDX-License-Identifier: BSD-3-Clause
//! Long texts, such as histograms, in the form of DPDK's telemetry.

/// Longest string of a telemetry answer, in bytes: 8192 with the NUL
/// (`RTE_TEL_MAX_SINGLE_STRING_LEN`).
pub const LONGEST: usize = 8191;

/// Cuts a text into strings of at most [`LONGEST`] bytes, whose concatenation is the text. One
/// empty string for the empty text.
/// DPDK truncates answers longer than 16 KiB in total: two full pieces do not fit into one.
/// DPDK drops an answer that is longer than 16 KiB as a whole: two full pieces do not fit into one.
///
/// ```
/// let text = "x".repeat(10_000);
/// let pieces = measure::text::pieces(&text);
/// assert_eq!(pieces.len(), 2);
/// assert_eq!(pieces.concat(), text);
/// ```
#[must_use]
pub fn pieces(text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while rest.len() > LONGEST {
        // A character has at most 4 bytes, so one of these is a boundary.
        let end = (LONGEST - 3..=LONGEST).rev().find(|end| rest.is_char_boundary(*end));
        let (piece, after) = rest.split_at(end.unwrap_or(LONGEST));
        pieces.push(piece);
        rest = after;
    }
    pieces.push(rest);
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_fits_is_one_piece() {
        assert_eq!(pieces(""), [""]);
        let full = "x".repeat(LONGEST);
        assert_eq!(pieces(&full), [&full]);
        let longer = "x".repeat(LONGEST + 1);
        assert_eq!(pieces(&longer), [&longer[..LONGEST], "x"]);
    }

    proptest! {
        #[test]
        fn pieces_are_short_and_joined_the_text(letters in prop::collection::vec("[aäあ𝄞]", 0..20)) {
            let text = letters.concat().repeat(700);
            let pieces = pieces(&text);
            prop_assert!(pieces.iter().all(|piece| piece.len() <= LONGEST));
            prop_assert!(pieces.len() <= text.len() / (LONGEST - 3) + 1);
            prop_assert_eq!(pieces.concat(), text);
        }
    }
}
