// SPDX-License-Identifier: BSD-3-Clause
// expect: E0505
//! A reader that outlives the variable that holds its table.

use dpdk::qsbr::{Online, Replaceable};

pub fn keep(table: Replaceable<'_, u32>, online: &Online<'_>) -> u32 {
    let held = table.read(online);
    #[cfg(not(fault))]
    let held = &held.clone();
    drop(table);
    *held
}
