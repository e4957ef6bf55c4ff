// SPDX-License-Identifier: BSD-3-Clause
//! Rates, times, counts and sizes as users write them.

use serde_json::{Value, json};

use super::SpecError;

/// A rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rate {
    /// Frames per second.
    Frames(u64),
    /// Bits per second.
    Bits {
        /// The number of bits.
        bits: u64,
        /// True if preamble, delimiter and gap count, 20 bytes a frame.
        layer1: bool,
    },
    /// Percent of the line rate.
    Percent(f64),
}

impl Rate {
    /// The rate in OTG's model, which has bits only on layer 1.
    pub fn to_otg(self) -> Value {
        match self {
            Rate::Frames(frames) => json!({ "choice": "pps", "pps": frames.to_string() }),
            Rate::Bits { bits, .. } => json!({ "choice": "bps", "bps": bits.to_string() }),
            Rate::Percent(percent) => json!({ "choice": "percentage", "percentage": percent }),
        }
    }
}

/// A duration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Span {
    /// Until it is stopped.
    Continuous,
    /// This many frames.
    Frames(u64),
    /// This many nanoseconds.
    Nanoseconds(u64),
}

const RATES: &str = "a rate such as 10kpps, 1.5Mpps, 2Gbps (on layer 1), 2Gbps/l2 or 50%";
const SPANS: &str =
    "a duration such as 10s, 500ms, 2min, 1000000frames, or continuous (until Ctrl-C)";
const TIMES: &str = "a time such as 10s, 500ms, 20us or 2min";
const SIZES: &str = "a size such as 64, 64-1518 (random), 64-1518/1 (counting up by 1), imix \
    (or ipsec_imix, ipv6_imix, standard_imix, tcp_imix), or sizes with weights such as \
    64:7,594:4,1518:1";

/// Parses a number without a sign or an exponent, multiplied by a suffix `k`, `M` or `G`.
fn scaled(text: &str) -> Option<f64> {
    let (number, unit) = match text.bytes().last()? {
        b'k' => (text.get(..text.len() - 1)?, 1e3),
        b'm' => (text.get(..text.len() - 1)?, 1e6),
        b'g' => (text.get(..text.len() - 1)?, 1e9),
        _ => (text, 1.0),
    };
    let plain = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let value = number.parse::<f64>().ok().filter(|_| plain)?;
    Some(value * unit)
}

/// A whole number from 1 to `max`, in f64's exact range.
fn whole(value: f64, max: f64) -> Option<u64> {
    let rounded = value.round();
    ((rounded - value).abs() < 1e-6 * value.max(1.0) && (1.0..=max).contains(&rounded))
        .then_some(rounded as u64)
}

/// Parses a rate. Upper and lower case are equal.
///
/// # Errors
/// [`SpecError::Value`] with the valid forms.
pub fn rate(key: &str, text: &str) -> Result<Rate, SpecError> {
    let bad = || SpecError::value(key, text, RATES);
    let lower = text.trim().to_ascii_lowercase();
    if let Some(percent) = lower.strip_suffix('%') {
        let percent = scaled(percent).filter(|percent| *percent > 0.0 && *percent <= 100.0);
        return percent.map(Rate::Percent).ok_or_else(bad);
    }
    let (rate, layer1) = match (lower.strip_suffix("/l2"), lower.strip_suffix("/l1")) {
        (Some(rate), _) => (rate, false),
        (None, Some(rate)) => (rate, true),
        (None, None) => (lower.as_str(), true),
    };
    let bits = rate.strip_suffix("bps").or_else(|| rate.strip_suffix("bit/s"));
    if let Some(number) = bits {
        let bits = scaled(number).and_then(|bits| whole(bits, 1e15)).ok_or_else(bad)?;
        return Ok(Rate::Bits { bits, layer1 });
    }
    if rate.len() != lower.len() {
        return Err(bad());
    }
    let number = rate.strip_suffix("pps").unwrap_or(rate);
    let most = crate::pacing::MAX_FRAMES_PER_SECOND as f64;
    scaled(number).and_then(|frames| whole(frames, most)).map(Rate::Frames).ok_or_else(bad)
}

/// Parses a time, in nanoseconds.
///
/// # Errors
/// [`SpecError::Value`] with the valid forms.
pub fn time(key: &str, text: &str) -> Result<u64, SpecError> {
    nanoseconds(&text.trim().to_ascii_lowercase()).ok_or_else(|| SpecError::value(key, text, TIMES))
}

fn nanoseconds(text: &str) -> Option<u64> {
    const UNITS: [(&str, f64); 6] =
        [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("min", 60e9), ("h", 3600e9), ("s", 1e9)];
    let unit = UNITS.iter().find_map(|(unit, size)| Some((text.strip_suffix(unit)?, *size)));
    let (number, size) = unit.unwrap_or((text, 1e9));
    // A remaining letter would be a suffix.
    let digits = number.bytes().last().is_some_and(|byte| byte.is_ascii_digit());
    let value = scaled(number).filter(|_| digits)? * size;
    // The limit is a century.
    (1.0..=3.2e18).contains(&value).then_some(value.round() as u64)
}

/// Parses a duration. A number without a unit is in seconds.
///
/// # Errors
/// [`SpecError::Value`] with the valid forms.
pub fn span(key: &str, text: &str) -> Result<Span, SpecError> {
    let lower = text.trim().to_ascii_lowercase();
    let frames = lower.strip_suffix("frames").or_else(|| lower.strip_suffix("frame"));
    let read = match (lower.as_str(), frames) {
        ("continuous", _) => Some(Span::Continuous),
        (_, Some(frames)) => number(frames.trim()).map(Span::Frames),
        (time, None) => nanoseconds(time).map(Span::Nanoseconds),
    };
    read.ok_or_else(|| SpecError::value(key, text, SPANS))
}

fn number(text: &str) -> Option<u64> {
    let text = text.to_ascii_lowercase();
    match text.parse::<u64>() {
        Ok(number) => (number > 0 && !text.starts_with('+')).then_some(number),
        Err(_) => scaled(&text).and_then(|number| whole(number, 9e15)),
    }
}

/// Parses a count of at least 1, such as 1000, 10k or 1.5M.
///
/// # Errors
/// [`SpecError::Value`].
pub fn count(key: &str, text: &str) -> Result<u64, SpecError> {
    let wanted = "a number of at least 1, such as 1000, 10k or 1.5M";
    number(text).ok_or_else(|| SpecError::value(key, text, wanted))
}

/// Parses sizes, in OTG's model. The model's reader checks whether frames can have them.
///
/// # Errors
/// [`SpecError::Value`] with the valid forms.
pub fn size(key: &str, text: &str) -> Result<Value, SpecError> {
    sizes(text.trim()).ok_or_else(|| SpecError::value(key, text, SIZES))
}

fn sizes(text: &str) -> Option<Value> {
    if packet::size::Sizes::preset(text).is_some() {
        return Some(json!({ "weight_pairs": { "predefined": text } }));
    }
    let bytes = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<u32>().ok().filter(|_| digits)
    };
    if text.contains(':') {
        let pair = |pair: &str| {
            let (size, weight) = pair.split_once(':')?;
            let weight = scaled(weight.trim())?;
            Some(json!({ "size": bytes(size.trim())?, "weight": weight }))
        };
        let pairs: Vec<Value> = text.split(',').map(pair).collect::<Option<_>>()?;
        return Some(json!({ "weight_pairs": { "custom": pairs } }));
    }
    match text.split_once('-') {
        None => Some(json!({ "fixed": bytes(text)? })),
        Some((first, rest)) => match rest.split_once('/') {
            None => Some(json!({ "random": { "min": bytes(first)?, "max": bytes(rest)? } })),
            Some((last, step)) => Some(json!({
                "increment": { "start": bytes(first)?, "end": bytes(last)?, "step": bytes(step)? }
            })),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_the_forms_that_are_documented() {
        for (text, wanted) in [
            ("10kpps", Rate::Frames(10_000)),
            ("1.5Mpps", Rate::Frames(1_500_000)),
            ("1000", Rate::Frames(1000)),
            ("2Gbps", Rate::Bits { bits: 2_000_000_000, layer1: true }),
            ("2gbps/L1", Rate::Bits { bits: 2_000_000_000, layer1: true }),
            ("2Gbps/l2", Rate::Bits { bits: 2_000_000_000, layer1: false }),
            ("64kbit/s", Rate::Bits { bits: 64_000, layer1: true }),
            ("50%", Rate::Percent(50.0)),
            ("0.5%", Rate::Percent(0.5)),
        ] {
            assert_eq!(rate("rate", text).unwrap(), wanted, "{text}");
        }
        for text in [
            "", "fast", "-1pps", "0", "1e6", "101%", "0%", "1Tbps", "1pps/l2", "2G/l2", "nan",
            "infpps", "0.5pps",
        ] {
            let error = rate("rate", text).unwrap_err().to_string();
            assert!(error.starts_with("rate: ") && error.contains("10kpps"), "{text}: {error}");
        }
    }

    #[test]
    fn durations_have_the_forms_that_are_documented() {
        for (text, wanted) in [
            ("10s", Span::Nanoseconds(10_000_000_000)),
            ("10", Span::Nanoseconds(10_000_000_000)),
            ("500ms", Span::Nanoseconds(500_000_000)),
            ("20us", Span::Nanoseconds(20_000)),
            ("7ns", Span::Nanoseconds(7)),
            ("2min", Span::Nanoseconds(120_000_000_000)),
            ("1.5h", Span::Nanoseconds(5_400_000_000_000)),
            ("1000000frames", Span::Frames(1_000_000)),
            ("1Mframes", Span::Frames(1_000_000)),
            ("1 frame", Span::Frames(1)),
            ("continuous", Span::Continuous),
        ] {
            assert_eq!(span("duration", text).unwrap(), wanted, "{text}");
        }
        for text in ["", "s", "0s", "-1s", "10k", "1kms", "ten", "0frames", "1.5frames", "1e9s"] {
            let error = span("duration", text).unwrap_err().to_string();
            assert!(error.starts_with("duration: ") && error.contains("500ms"), "{text}: {error}");
        }
        assert_eq!(time("gap", "3us").unwrap(), 3000);
        assert!(time("gap", "continuous").unwrap_err().to_string().starts_with("gap: "));
    }

    #[test]
    fn sizes_become_those_of_the_model() {
        for (text, wanted) in [
            ("64", json!({"fixed": 64})),
            ("64-1518", json!({"random": {"min": 64, "max": 1518}})),
            ("64-1518/2", json!({"increment": {"start": 64, "end": 1518, "step": 2}})),
            ("imix", json!({"weight_pairs": {"predefined": "imix"}})),
            ("tcp_imix", json!({"weight_pairs": {"predefined": "tcp_imix"}})),
            (
                "64:7,594:4.5",
                json!({"weight_pairs": {"custom": [{"size": 64, "weight": 7.0}, {"size": 594, "weight": 4.5}]}}),
            ),
        ] {
            assert_eq!(size("size", text).unwrap(), wanted, "{text}");
        }
        for text in ["", "big", "64-", "64:", "64:7,", "-64", "64,128", "+64"] {
            let error = size("size", text).unwrap_err().to_string();
            assert!(error.starts_with("size: ") && error.contains("imix"), "{text}: {error}");
        }
    }

    #[test]
    fn counts_are_whole() {
        assert_eq!(count("burst", "10k").unwrap(), 10_000);
        assert_eq!(count("burst", "18446744073709551615").unwrap(), u64::MAX);
        for text in ["0", "", "1.5", "-3", "+3", "x"] {
            assert!(count("burst", text).unwrap_err().to_string().starts_with("burst: "), "{text}");
        }
    }
}
