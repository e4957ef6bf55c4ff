// SPDX-License-Identifier: BSD-3-Clause
// expect: E0502
//! A key removed while the table is walked.

use dpdk::hash::Hash;

pub fn remove(table: &mut Hash<'_, u32, u32>) {
    for (key, _) in table.iter() {
        #[cfg(fault)]
        table.remove(&key);
        let _ = key;
    }
}
