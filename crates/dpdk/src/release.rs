// SPDX-License-Identifier: BSD-3-Clause
//! The release of the running DPDK.

use std::ffi::CStr;
use std::sync::OnceLock;

/// A release of DPDK. Releases are ordered by date.
///
/// ```
/// use dpdk::Release;
/// assert!(Release::V22_11 < Release { year: 23, month: 3 });
/// assert!(Release::running() >= Release::V22_11);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Release {
    /// The year, two digits.
    pub year: u16,
    /// The month.
    pub month: u16,
}

impl Release {
    /// 22.11, the oldest that is supported.
    pub const V22_11: Self = Self { year: 22, month: 11 };
    /// Newer than every other.
    const UNKNOWN: Self = Self { year: u16::MAX, month: 0 };

    /// The release of the running library, which may be newer than the one that the program was
    /// built with. A version that cannot be read counts as newer than all others.
    #[must_use]
    pub fn running() -> Self {
        static RUNNING: OnceLock<Release> = OnceLock::new();
        *RUNNING.get_or_init(|| Self::parse(&version()).unwrap_or(Self::UNKNOWN))
    }

    /// Parses a version such as `DPDK 22.11.8` or `DPDK 25.11.0-rc1`.
    fn parse(version: &str) -> Option<Self> {
        let mut numbers = version.strip_prefix("DPDK ")?.split('.');
        Some(Self { year: numbers.next()?.parse().ok()?, month: numbers.next()?.parse().ok()? })
    }
}

/// The version string of the running DPDK library (`rte_version`).
#[must_use]
pub fn version() -> String {
    // SAFETY: returns a static C string.
    unsafe { CStr::from_ptr(dpdk_sys::rte_version()) }.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::Release;

    #[test]
    fn versions_are_read_as_dpdk_writes_them() {
        for (version, release) in [
            ("DPDK 22.11.8", Some(Release::V22_11)),
            ("DPDK 24.11.0-rc1", Some(Release { year: 24, month: 11 })),
            ("DPDK 26.3.0", Some(Release { year: 26, month: 3 })),
            ("22.11", None),
            ("DPDK 22", None),
            ("DPDK twenty.two", None),
        ] {
            assert_eq!(Release::parse(version), release, "{version}");
        }
        assert!(Release::UNKNOWN > Release { year: 99, month: 11 });
    }
}
