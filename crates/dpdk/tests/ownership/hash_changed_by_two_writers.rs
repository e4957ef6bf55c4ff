// SPDX-License-Identifier: BSD-3-Clause
// expect: E0499
//! Two writers of a shared table.

use dpdk::hash::SharedHash;

pub fn write(table: &mut SharedHash<'_, u32, u32>) {
    let (mut first, _) = table.split();
    #[cfg(fault)]
    let (mut second, _) = table.split();
    let _ = first.insert(&1, 1);
    #[cfg(fault)]
    let _ = second.insert(&2, 2);
}
