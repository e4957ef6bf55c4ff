// SPDX-License-Identifier: BSD-3-Clause
//! Bytes written in hexadecimal.

use super::walk::Node;

/// Pairs of digits; `0x` before them, and blanks and colons between the digits, are allowed.
pub fn read(node: &Node<'_>) -> Option<Vec<u8>> {
    let text = node.text()?;
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text);
    let nibbles: Option<Vec<u8>> = digits
        .chars()
        .filter(|c| !matches!(c, ' ' | ':'))
        .map(|c| c.to_digit(16).map(|digit| digit as u8))
        .collect();
    match nibbles {
        Some(nibbles) if nibbles.len() % 2 == 0 => {
            Some(nibbles.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect())
        }
        _ => node.fault("must be pairs of hexadecimal digits"),
    }
}
