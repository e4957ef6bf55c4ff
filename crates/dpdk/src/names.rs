// SPDX-License-Identifier: BSD-3-Clause
//! Names of objects in DPDK's lists.

use std::ffi::CString;
use std::sync::atomic::{AtomicU64, Ordering};

/// A name for C: 1 to `most` bytes and no NUL byte; otherwise the error that `refused` makes of the
/// name and `most`. DPDK cuts some longer names, and would take two objects for the same one.
pub(crate) fn c_name<E>(
    name: &str,
    most: usize,
    refused: impl FnOnce(String, usize) -> E,
) -> Result<CString, E> {
    match CString::new(name) {
        Ok(c_name) if (1..=most).contains(&name.len()) => Ok(c_name),
        _ => Err(refused(name.to_owned(), most)),
    }
}

/// A name that no other object of the process got from here: a number stands behind it.
pub(crate) fn unique(name: impl Into<String>) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("{}.{:x}", name.into(), NEXT.fetch_add(1, Ordering::Relaxed))
}
