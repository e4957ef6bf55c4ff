// SPDX-License-Identifier: BSD-3-Clause
//! DPDK's error numbers.

use std::fmt;

/// A positive `errno` value as DPDK returned it (as `-errno` or in `rte_errno`). Its `Display` is what `rte_strerror` says,
/// and its `Debug` too: a `main` that returns an error prints that.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Errno(pub i32);

/// Those of Linux that mean something of their own here.
impl Errno {
    pub(crate) const ENOENT: Self = Self(2);
    pub(crate) const ENOMEM: Self = Self(12);
    pub(crate) const EBUSY: Self = Self(16);
    pub(crate) const EEXIST: Self = Self(17);
    pub(crate) const EINVAL: Self = Self(22);
    pub(crate) const ENOSPC: Self = Self(28);
    pub(crate) const ERANGE: Self = Self(34);
    pub(crate) const ENOSYS: Self = Self(38);
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
        write!(f, "{}", std::io::Error::from_raw_os_error(self.0))
    }
}

impl std::error::Error for Errno {}

#[cfg(test)]
mod tests {
    use super::Errno;

    #[test]
    fn debug_says_what_the_number_means() {
        assert_eq!(format!("{:?}", Errno(12)), "Errno(Cannot allocate memory (os error 12))");
    }
}
