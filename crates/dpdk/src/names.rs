// SPDX-License-Identifier: BSD-3-Clause
//! Names of objects in DPDK's lists.

use std::ffi::CString;

/// A name as C takes it: 1 to `most` bytes and no NUL byte, else `refused` of it and `most`. DPDK cuts some longer ones, and takes
/// two things for one.
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
