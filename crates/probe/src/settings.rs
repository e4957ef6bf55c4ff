// SPDX-License-Identifier: BSD-3-Clause
//! The user's settings of the probe: by environment variables, because EAL's `-d` takes only a
//! path, and later by telemetry.

use std::env;
use std::ffi::OsString;

const ONE_IN: &str = "LINERATE_PROBE_ONE_IN";
const POLLING: &str = "LINERATE_PROBE_POLLING";
const REQUIRED: &str = "LINERATE_PROBE_REQUIRED";
/// The default sampling rate: one received burst in this many is stamped.
const DEFAULT_ONE_IN: u32 = 64;
/// Rarer than this is effectively never.
const MAX_ONE_IN: u32 = 1 << 30;

/// What is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// True if there are callbacks at all.
    pub polling: bool,
    /// One received burst in this many is stamped; 0: none.
    pub one_in: u32,
}

/// A value that the probe does not understand.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum SettingsError {
    /// An invalid sampling rate.
    #[error("{0}={1:?} is not a whole number from 0 (no latency) to {MAX_ONE_IN}")]
    OneIn(&'static str, String),
    /// Not a switch.
    #[error("{0}={1:?} is neither on nor off")]
    Polling(&'static str, String),
    /// Not a setting.
    #[error("{0:?} is neither one_in=N nor polling=on or polling=off")]
    Unknown(String),
}

/// Returns true if the program must end if the probe cannot work in it.
pub fn required() -> bool {
    env::var_os(REQUIRED).is_some_and(|value| value == "1")
}

impl Settings {
    pub fn from_environment() -> Result<Self, SettingsError> {
        Self::new(env::var_os(ONE_IN), env::var_os(POLLING))
    }

    fn new(one_in: Option<OsString>, polling: Option<OsString>) -> Result<Self, SettingsError> {
        let text = |value: OsString| value.to_string_lossy().into_owned();
        Ok(Self {
            polling: polling.map_or(Ok(true), |value| switch(POLLING, text(value)))?,
            one_in: one_in.map_or(Ok(DEFAULT_ONE_IN), |value| rate(ONE_IN, text(value)))?,
        })
    }

    /// The settings after a change by the parameters of a telemetry command, such as `one_in=64`.
    pub fn changed(self, parameters: &str) -> Result<Self, SettingsError> {
        match parameters.split_once('=') {
            Some(("one_in", value)) => {
                Ok(Self { one_in: rate("one_in", value.to_owned())?, ..self })
            }
            Some(("polling", value)) => {
                Ok(Self { polling: switch("polling", value.to_owned())?, ..self })
            }
            _ => Err(SettingsError::Unknown(parameters.to_owned())),
        }
    }
}

fn rate(name: &'static str, value: String) -> Result<u32, SettingsError> {
    // Not only parse(), which accepts a sign.
    match value.parse() {
        Ok(rate) if rate <= MAX_ONE_IN && value.bytes().all(|byte| byte.is_ascii_digit()) => {
            Ok(rate)
        }
        _ => Err(SettingsError::OneIn(name, value)),
    }
}

fn switch(name: &'static str, value: String) -> Result<bool, SettingsError> {
    match value.as_str() {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(SettingsError::Polling(name, value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_is_read_strictly() {
        let read = |one_in: Option<&str>, polling: Option<&str>| {
            Settings::new(one_in.map(Into::into), polling.map(Into::into))
        };
        assert_eq!(read(None, None).unwrap(), Settings { polling: true, one_in: 64 });
        assert_eq!(read(Some("0"), Some("off")).unwrap(), Settings { polling: false, one_in: 0 });
        for bad in ["", "-1", "+1", "1.5", "1073741825", "4294967296", "one"] {
            let message = read(Some(bad), None).unwrap_err().to_string();
            assert!(message.starts_with(&format!("LINERATE_PROBE_ONE_IN={bad:?}")), "{message}");
        }
        assert!(read(None, Some("yes")).is_err());
    }

    #[test]
    fn telemetry_changes_one_setting() {
        let all = Settings { polling: true, one_in: 64 };
        assert_eq!(all.changed("one_in=1").unwrap(), Settings { one_in: 1, ..all });
        assert_eq!(all.changed("polling=off").unwrap(), Settings { polling: false, ..all });
        for bad in ["", "one_in", "one_in=", "one_in=x", "polling=1", "rate=3", "one_in=1,2"] {
            assert!(all.changed(bad).is_err(), "{bad}");
        }
    }
}
