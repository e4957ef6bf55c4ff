// SPDX-License-Identifier: BSD-3-Clause
//! DPDK's error numbers.

use std::fmt;

/// A positive `errno` value as DPDK returned it (as `-errno` or in `rte_errno`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Errno(pub i32);

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

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", std::io::Error::from_raw_os_error(self.0))
    }
}

impl std::error::Error for Errno {}
