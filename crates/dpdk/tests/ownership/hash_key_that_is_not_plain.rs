// SPDX-License-Identifier: BSD-3-Clause
// expect: E0599
//! A key whose bytes are a pointer: a table would compare addresses.

use dpdk::hash::Hash;

#[cfg(not(fault))]
type Key = [u32; 4];
#[cfg(fault)]
type Key = &'static str;

pub fn len(table: &Hash<'_, Key, u32>) -> usize {
    table.len()
}
