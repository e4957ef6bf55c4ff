// SPDX-License-Identifier: BSD-3-Clause
//! The arguments of a virtual device as EAL reads them, and values that EAL or a driver would
//! misread.

use std::fmt::{self, Display};
use std::path::Path;

/// Why a device's arguments were refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VdevError {
    /// EAL finds the driver by the prefix of the name.
    #[error(
        "device name {name:?}: must be {driver} followed by letters, digits or _, at most {most} bytes",
        most = most(driver)
    )]
    Name {
        /// The name.
        name: String,
        /// The prefix that the name must have.
        driver: &'static str,
    },
    /// A value that EAL or the driver would read as something else.
    #[error("device {name}: {key}={value:?} is refused: {why}")]
    Value {
        /// The device.
        name: String,
        /// The argument.
        key: &'static str,
        /// Its value.
        value: String,
        /// The reason.
        why: &'static str,
    },
    /// A required argument is missing.
    #[error("device {name}: {what}")]
    Missing {
        /// The device.
        name: String,
        /// What to set.
        what: &'static str,
    },
}

/// The longest name, in bytes. `RTE_ETH_NAME_MAX_LEN` is 64, and some drivers put the name into messages and into names of
/// 64 bytes. Names of DPDK's rings have 29, to which net_ring adds a few of its own.
fn most(driver: &str) -> usize {
    if driver == "net_ring" { 20 } else { 40 }
}

/// Bytes of a Unix socket's path (`sun_path` and its NUL). libvhost cuts longer ones.
const MAX_SOCKET_PATH: usize = 107;

/// A virtual device of a driver that is known to be safe.
pub trait Vdev: Display + sealed::Sealed {}

pub(super) mod sealed {
    /// The content of a device's arguments. Sealed: a driver is added here after its handling of
    /// arguments was reviewed.
    pub trait Sealed {
        const DRIVER: &'static str;
        fn arguments(&self) -> &super::Arguments;
        /// Refuses values that this driver would misread, beyond the checks of every value.
        fn check(&self) -> Result<(), super::VdevError> {
            Ok(())
        }
    }
}

/// A name and arguments in the order in which they were set.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Arguments {
    name: String,
    list: Vec<(&'static str, String)>,
}

impl Arguments {
    pub(super) fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), list: Vec::new() }
    }

    /// Sets an argument, replacing its old value.
    pub(super) fn set(&mut self, key: &'static str, value: impl Display) {
        self.list.retain(|(set, _)| *set != key);
        self.list.push((key, value.to_string()));
    }

    pub(super) fn set_flag(&mut self, key: &'static str, on: bool) {
        self.set(key, u8::from(on));
    }

    /// A path that is not UTF-8 becomes a value that is refused.
    pub(super) fn set_path(&mut self, key: &'static str, path: impl AsRef<Path>) {
        self.set(key, path.as_ref().to_string_lossy());
    }

    pub(super) fn set_mac(&mut self, key: &'static str, mac: [u8; 6]) {
        self.set(key, mac.map(|byte| format!("{byte:02x}")).join(":"));
    }

    pub(super) fn get(&self, key: &'static str) -> Option<&str> {
        self.list.iter().find(|(set, _)| *set == key).map(|(_, value)| value.as_str())
    }

    pub(super) fn refuse(&self, key: &'static str, value: &str, why: &'static str) -> VdevError {
        VdevError::Value { name: self.name.clone(), key, value: value.to_owned(), why }
    }

    /// Refuses a socket's path that is too long for the kernel.
    pub(super) fn check_socket(&self, key: &'static str) -> Result<(), VdevError> {
        match self.get(key) {
            Some(path) if path.len() > MAX_SOCKET_PATH => {
                Err(self.refuse(key, path, "a socket's path has 107 bytes at most"))
            }
            _ => Ok(()),
        }
    }

    /// Refuses a number outside a range that the driver does not check, or rejects without a
    /// reason.
    pub(super) fn check_range(
        &self,
        key: &'static str,
        range: std::ops::RangeInclusive<u64>,
        why: &'static str,
    ) -> Result<(), VdevError> {
        match self.get(key) {
            Some(value) if !value.parse().is_ok_and(|n: u64| range.contains(&n)) => {
                Err(self.refuse(key, value, why))
            }
            _ => Ok(()),
        }
    }

    /// Refuses a device for which this was not set.
    pub(super) fn need(&self, key: &'static str, what: &'static str) -> Result<(), VdevError> {
        match self.get(key) {
            Some(_) => Ok(()),
            None => Err(VdevError::Missing { name: self.name.clone(), what }),
        }
    }

    pub(super) fn check(&self, driver: &'static str) -> Result<(), VdevError> {
        let rest = self.name.strip_prefix(driver);
        let plain = |rest: &str| rest.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        if self.name.len() > most(driver) || !rest.is_some_and(plain) {
            return Err(VdevError::Name { name: self.name.clone(), driver });
        }
        self.list.iter().try_for_each(|(key, value)| match misread(value) {
            Some(why) => Err(self.refuse(key, value, why)),
            None => Ok(()),
        })
    }
}

/// Why EAL would read something else.
fn misread(value: &str) -> Option<&'static str> {
    if value.is_empty() {
        return Some("it is empty");
    }
    if value.contains(',') {
        return Some("it contains a comma, which begins another argument");
    }
    if value.contains('=') {
        return Some("it contains =, and EAL ignores the rest");
    }
    // Any [ without a ] after it: commas up to the next ] do not separate arguments. `a[1]` is read
    // correctly.
    if value.starts_with('[') || value.rfind('[') > value.rfind(']') {
        return Some("it contains [, which begins a list");
    }
    if value.contains(char::REPLACEMENT_CHARACTER) {
        return Some("it is not UTF-8");
    }
    // NUL ends the string for C; line ends, and spaces at an end, are lost in EAL's logs and in
    // shells.
    if value.chars().any(char::is_control) || value.trim() != value {
        return Some("it contains control characters, or begins or ends with a space");
    }
    None
}

impl Display for Arguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        self.list.iter().try_for_each(|(key, value)| write!(f, ",{key}={value}"))
    }
}

/// Implements [`Vdev`] for a device over its [`Arguments`], of the driver whose `DRIVER` is in scope.
macro_rules! vdev {
    ($device:ident $(, $check:expr)?) => {
        impl std::fmt::Display for $device {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }

        impl crate::port::arguments::sealed::Sealed for $device {
            const DRIVER: &'static str = DRIVER.name;
            fn arguments(&self) -> &crate::port::arguments::Arguments {
                &self.0
            }
            $(fn check(&self) -> Result<(), crate::port::arguments::VdevError> {
                use crate::port::arguments::{Arguments, VdevError};
                let check: fn(&Arguments) -> Result<(), VdevError> = $check;
                check(&self.0)
            })?
        }

        impl crate::port::arguments::Vdev for $device {}
    };
}
pub(super) use vdev;
