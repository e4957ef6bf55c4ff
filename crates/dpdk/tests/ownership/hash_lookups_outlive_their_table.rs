// SPDX-License-Identifier: BSD-3-Clause
// expect: E0505
//! Lookups in a table that is gone.

use dpdk::hash::{Hash, Lookups};

pub fn hold(table: Hash<'_, u32, u32>) -> Option<u32> {
    let lookups: &Lookups<u32, u32> = &table;
    #[cfg(not(fault))]
    let found = lookups.get(&1);
    drop(table);
    #[cfg(fault)]
    let found = lookups.get(&1);
    found
}
