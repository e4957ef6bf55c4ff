// SPDX-License-Identifier: BSD-3-Clause
//! What the forwarders' command lines have in common: their errors, and values parsed as the C
//! examples parse them (numbers by `strtoul`).

use std::ffi::{OsStr, OsString};

use crate::getopt::{Getopt, GetoptError, Opt};

/// A program's options, set one after the other from its command line.
pub trait CommandLine: Default {
    /// The usage text, printed after every error.
    const USAGE: &'static str;
    /// The existing options.
    const OPTIONS: &'static [Opt];

    /// Sets one of them to its value (empty if it takes none).
    ///
    /// # Errors
    /// [`OptionsError::Value`].
    fn set(&mut self, option: &'static str, value: &OsStr) -> Result<(), OptionsError>;

    /// Parses the arguments after EAL's.
    ///
    /// # Errors
    /// See [`OptionsError`].
    fn parse<I>(arguments: I) -> Result<Self, OptionsError>
    where
        I: IntoIterator,
        I::Item: Into<OsString>,
    {
        let mut options = Self::default();
        let mut getopt = Getopt::new(Self::OPTIONS, arguments);
        while let Some((option, value)) = getopt.next()? {
            options.set(option, &value)?;
        }
        Ok(options)
    }
}

/// An error in a command line.
#[derive(Debug, thiserror::Error)]
pub enum OptionsError {
    /// An invalid value of an option.
    #[error("{complaint}: {option} takes {takes}, not {given:?}")]
    Value {
        /// The message of the C examples.
        complaint: &'static str,
        /// The option.
        option: &'static str,
        /// The valid values.
        takes: &'static str,
        /// The given value.
        given: String,
    },
    /// Something that this program, this machine or the installed library does not support.
    #[error("{option}: {reason}")]
    Unsupported {
        /// The option, with its value if that matters.
        option: String,
        /// Why it is not supported.
        reason: String,
    },
    /// No such option, or a value that is missing or not allowed.
    #[error(transparent)]
    Getopt(#[from] GetoptError),
}

/// An error that names the option and the given value.
#[must_use]
pub fn wrong(
    complaint: &'static str,
    option: &'static str,
    takes: &'static str,
    given: &OsStr,
) -> OptionsError {
    let given = given.to_string_lossy().into_owned();
    OptionsError::Value { complaint, option, takes, given }
}

/// Parses an unsigned number at the start of `text` as `strtoul` does (blanks, sign, `0x` or `0`
/// with `radix` 16 or 0, wrapping minus, saturation) and returns it with the rest of the text.
/// `None` if there are no digits.
#[must_use]
pub fn strtoul(text: &str, radix: u32) -> Option<(u64, &str)> {
    let Number { negative, magnitude, rest } = number(text, radix)?;
    let number = magnitude.map_or(u64::MAX, |n| if negative { n.wrapping_neg() } else { n });
    Some((number, rest))
}

/// As [`strtoul`], but signed and saturating both ways, as `strtol`.
#[must_use]
pub fn strtol(text: &str, radix: u32) -> Option<(i64, &str)> {
    let Number { negative, magnitude, rest } = number(text, radix)?;
    let signed = magnitude
        .and_then(|n| if negative { 0i64.checked_sub_unsigned(n) } else { n.try_into().ok() });
    Some((signed.unwrap_or(if negative { i64::MIN } else { i64::MAX }), rest))
}

/// The parts of a number in a text.
struct Number<'t> {
    negative: bool,
    /// `None` if it does not fit.
    magnitude: Option<u64>,
    rest: &'t str,
}

fn number(text: &str, radix: u32) -> Option<Number<'_>> {
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
    let (digits, rest) = digits.split_at(end);
    let magnitude = u64::from_str_radix(digits, radix).ok();
    (end > 0).then_some(Number { negative, magnitude, rest })
}

/// The text in each pair of brackets, as the C examples find it: text between two pairs is skipped.
/// `None` if one is not closed, or holds `limit` bytes or more.
#[must_use]
pub fn in_brackets(text: &str, limit: usize) -> Option<Vec<&str>> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find('(') {
        let inner = &rest[start + 1..];
        let end = inner.find(')').filter(|end| *end < limit)?;
        found.push(&inner[..end]);
        rest = &inner[end..];
    }
    Some(found)
}

/// The value of `-p`: a hexadecimal mask of ports that is not 0. Longer ones are truncated to 32
/// bits, as in C.
///
/// # Errors
/// [`OptionsError::Value`].
pub fn port_mask(value: &OsStr) -> Result<u32, OptionsError> {
    match strtoul(&value.to_string_lossy(), 16) {
        Some((mask, "")) if mask as u32 != 0 => Ok(mask as u32),
        _ => {
            Err(wrong("invalid portmask", "-p", "a hexadecimal mask of ports that is not 0", value))
        }
    }
}

/// The value of `-T`: seconds between statistics, 0 to 86,399. Larger numbers are truncated to 32
/// bits, as in C.
///
/// # Errors
/// [`OptionsError::Value`].
pub fn period(value: &OsStr) -> Result<u32, OptionsError> {
    const MAX_TIMER_PERIOD: i32 = 86_400;
    match strtol(&value.to_string_lossy(), 10) {
        // As in C: a long converted to an int.
        Some((n, "")) if (0..MAX_TIMER_PERIOD).contains(&(n as i32)) => Ok(n as u32),
        _ => Err(wrong("invalid timer period", "-T", "0 to 86399 seconds", value)),
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
        assert_eq!(strtol("-12 s", 10), Some((-12, " s")));
        assert_eq!(strtol("9223372036854775808", 10), Some((i64::MAX, "")));
        assert_eq!(strtol("-9223372036854775808", 10), Some((i64::MIN, "")));
        assert_eq!(strtol("-99999999999999999999999", 10), Some((i64::MIN, "")));
        assert_eq!(strtoul("", 10), None);
        assert_eq!(strtoul("x", 10), None);
        assert_eq!(strtoul("ä", 16), None);
    }

    #[test]
    fn brackets_are_found_wherever_they_are() {
        assert_eq!(in_brackets("(a),x(b)", 9), Some(vec!["a", "b"]));
        assert_eq!(in_brackets("none", 9), Some(vec![]));
        assert_eq!(in_brackets("(a)(b", 9), None);
        assert_eq!(in_brackets("(abc)", 4), Some(vec!["abc"]));
        assert_eq!(in_brackets("(abc)", 3), None);
    }

    #[test]
    fn masks_are_hexadecimal_and_not_empty() {
        let read = |text: &str| port_mask(OsStr::new(text)).ok();
        assert_eq!(read("3"), Some(3));
        assert_eq!(read("0x10"), Some(16));
        for wrong in ["", "0", "3x", "=3", "g", "100000000"] {
            assert_eq!(read(wrong), None, "{wrong:?}");
        }
        assert_eq!(ports_of(0b1010).collect::<Vec<_>>(), [1, 3]);
    }
}
