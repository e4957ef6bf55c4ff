// SPDX-License-Identifier: BSD-3-Clause
//! What the programs' options have in common.

use std::ffi::OsStr;
use std::ops::RangeInclusive;
use std::str::FromStr;

use forwarders_common::getopt::{Opt, flag};
use forwarders_common::l2fwd;
use forwarders_common::options::{OptionsError, wrong};

use crate::xdp::Mode;

/// A program's own options and l2fwd's.
pub(crate) const fn all<const OWN: usize, const ALL: usize>(own: &[Opt; OWN]) -> [Opt; ALL] {
    assert!(ALL == OWN + l2fwd::OPTIONS.len());
    let mut all = [flag(""); ALL];
    let mut at = 0;
    while at < ALL {
        all[at] = if at < OWN { own[at] } else { l2fwd::OPTIONS[at - OWN] };
        at += 1;
    }
    all
}

/// The value of an option that is one of a few words.
pub(crate) fn one_of<T: Copy>(
    option: &'static str,
    takes: &'static str,
    known: &[(&str, T)],
    value: &OsStr,
) -> Result<T, OptionsError> {
    known
        .iter()
        .find(|(name, _)| value == *name)
        .map(|(_, meaning)| *meaning)
        .ok_or_else(|| wrong("invalid value", option, takes, value))
}

/// The value of `--idle`: true if lcores poll all the time.
pub(crate) fn idle(value: &OsStr) -> Result<bool, OptionsError> {
    one_of("--idle", "wait or spin", &[("wait", false), ("spin", true)], value)
}

/// The value of `--mode`: the mode of an XDP program.
pub(crate) fn mode(value: &OsStr) -> Result<Mode, OptionsError> {
    let known = [("native", Mode::Native), ("generic", Mode::Generic)];
    one_of("--mode", "native or generic", &known, value)
}

/// A sampling rate, one in this many, or 0 for none.
pub(crate) fn one_in(option: &'static str, value: &OsStr) -> Result<u32, OptionsError> {
    // Rarer than this is effectively never.
    number(option, "a number from 0 to 1073741824", 0..=1 << 30, value)
}

/// A decimal number without a sign, within a range.
pub(crate) fn number<T: FromStr + PartialOrd>(
    option: &'static str,
    takes: &'static str,
    range: RangeInclusive<T>,
    value: &OsStr,
) -> Result<T, OptionsError> {
    // Not only parse(), which accepts a sign.
    value
        .to_str()
        .filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))
        .and_then(|text| text.parse().ok())
        .filter(|number| range.contains(number))
        .ok_or_else(|| wrong("invalid value", option, takes, value))
}
