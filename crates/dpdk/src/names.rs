// SPDX-License-Identifier: BSD-3-Clause
//! Names of objects in DPDK's lists.

use std::ffi::CString;

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
