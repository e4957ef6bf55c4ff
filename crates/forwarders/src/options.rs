// SPDX-License-Identifier: BSD-3-Clause
//! Numbers on command lines, read as C's `strtoul` reads them, so that the C examples and these
//! programs accept the same words.

/// Reads an unsigned number at the start of `text` as `strtoul` does (blanks, sign, `0x` or `0` by
/// `radix` 16 or 0, wrapping minus, saturation) and returns it with the rest of the text. `None` when
/// there are no digits.
#[must_use]
pub fn strtoul(text: &str, radix: u32) -> Option<(u64, &str)> {
    let text = text.trim_start_matches([' ', '\t', '\n', '\u{b}', '\u{c}', '\r']);
    let (negative, digits) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let hex = digits
        .strip_prefix("0x")
        .or_else(|| digits.strip_prefix("0X"))
        .filter(|rest| rest.starts_with(|c: char| c.is_ascii_hexdigit()));
    let (radix, digits) = match (radix, hex) {
        (0 | 16, Some(rest)) => (16, rest),
        (0, None) if digits.starts_with('0') => (8, digits),
        (0, None) => (10, digits),
        (radix, _) => (radix, digits),
    };
    let end = digits.find(|c: char| !c.is_digit(radix)).unwrap_or(digits.len());
    if end == 0 {
        return None;
    }
    let number = u64::from_str_radix(&digits[..end], radix)
        .map_or(u64::MAX, |n| if negative { n.wrapping_neg() } else { n });
    Some((number, &digits[end..]))
}

/// A hexadecimal mask of ports that is not empty. Longer ones are cut to 32 bits, as in C.
#[must_use]
pub fn port_mask(text: &str) -> Option<u32> {
    match strtoul(text, 16) {
        Some((mask, "")) if mask as u32 != 0 => Some(mask as u32),
        _ => None,
    }
}

/// The ports of a mask.
pub fn ports_of(mask: u32) -> impl Iterator<Item = u16> {
    (0..32u16).filter(move |port| mask & (1 << port) != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_strtoul_reads_them() {
        assert_eq!(strtoul("ff zz", 16), Some((255, " zz")));
        assert_eq!(strtoul(" 0xFfg", 16), Some((255, "g")));
        assert_eq!(strtoul("0x", 16), Some((0, "x")));
        assert_eq!(strtoul("017", 0), Some((15, "")));
        assert_eq!(strtoul("0x1f", 0), Some((31, "")));
        assert_eq!(strtoul("19", 0), Some((19, "")));
        assert_eq!(strtoul("-1", 10), Some((u64::MAX, "")));
        assert_eq!(strtoul("99999999999999999999999", 10), Some((u64::MAX, "")));
        assert_eq!(strtoul("", 10), None);
        assert_eq!(strtoul("x", 10), None);
        assert_eq!(strtoul("ä", 16), None);
    }

    #[test]
    fn masks_are_hexadecimal_and_not_empty() {
        assert_eq!(port_mask("3"), Some(3));
        assert_eq!(port_mask("0x10"), Some(16));
        for wrong in ["", "0", "3x", "g", "100000000"] {
            assert_eq!(port_mask(wrong), None, "{wrong:?}");
        }
        assert_eq!(ports_of(0b1010).collect::<Vec<_>>(), [1, 3]);
    }
}
