// SPDX-License-Identifier: BSD-3-Clause
//! DPDK's error numbers.

use std::fmt;

/// A positive `errno` value as DPDK returned it (as `-errno` or in `rte_errno`). Its `Display` is
/// the system's text and the number; so is its `Debug`, which a `main` that returns an error
/// prints. DPDK's own two (`E_RTE_SECONDARY`, `E_RTE_NO_CONFIG`) have the text of `rte_strerror`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Errno(pub i32);

/// Linux error numbers that DPDK returns most often.
impl Errno {
    /// No such device, table or entry.
    pub const ENOENT: Self = Self(2);
    /// Not enough memory: EAL's `-m` or `--socket-mem` gives more.
    pub const ENOMEM: Self = Self(12);
    /// In use.
    pub const EBUSY: Self = Self(16);
    /// There is one already, often of that name.
    pub const EEXIST: Self = Self(17);
    /// Invalid argument.
    pub const EINVAL: Self = Self(22);
    /// No room left.
    pub const ENOSPC: Self = Self(28);
    /// Outside the range.
    pub const ERANGE: Self = Self(34);
    /// A name that is too long.
    pub const ENAMETOOLONG: Self = Self(36);
    /// Not implemented.
    pub const ENOSYS: Self = Self(38);
    /// Not supported, by a driver or by the device.
    pub const ENOTSUP: Self = Self(95);
    /// An address that is in use.
    pub const EADDRINUSE: Self = Self(98);
}

impl Errno {
    /// The calling thread's `rte_errno`.
    pub(crate) fn last() -> Self {
        // SAFETY: reads a thread-local integer.
        Self(unsafe { dpdk_sys::lr_errno() })
    }

    /// `Err` when a DPDK function returned `-errno`.
    pub(crate) fn check(code: i32) -> Result<i32, Self> {
        if code < 0 { Err(Self(-code)) } else { Ok(code) }
    }
}

impl fmt::Debug for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Errno({self})")
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Numbers that the system does not know.
        match u32::try_from(self.0) {
            Ok(dpdk_sys::E_RTE_SECONDARY) => f.write_str("Invalid call in secondary process"),
            Ok(dpdk_sys::E_RTE_NO_CONFIG) => f.write_str("Missing rte_config structure"),
            _ => write!(f, "{}", std::io::Error::from_raw_os_error(self.0)),
        }
    }
}

impl std::error::Error for Errno {}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // A test may.
mod tests {
    use std::ffi::CStr;

    use super::Errno;

    #[test]
    fn debug_says_what_the_number_means() {
        assert_eq!(format!("{:?}", Errno(12)), "Errno(Cannot allocate memory (os error 12))");
    }

    #[test]
    fn numbers_of_dpdk_alone_are_in_its_words() {
        for errno in [dpdk_sys::E_RTE_SECONDARY, dpdk_sys::E_RTE_NO_CONFIG] {
            // SAFETY: a C string of the calling thread's, which the next call overwrites.
            let text = unsafe { CStr::from_ptr(dpdk_sys::rte_strerror(errno as i32)) };
            assert_eq!(Errno(errno as i32).to_string(), text.to_str().unwrap());
        }
    }
}
