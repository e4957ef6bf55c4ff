// SPDX-License-Identifier: BSD-3-Clause
// expect: E0505
//! A table that outlives the variable with its readers.

use dpdk::qsbr::{Qsbr, Replaceable};

pub fn keep(qsbr: Qsbr) {
    let table = Replaceable::new(&qsbr, 7);
    #[cfg(not(fault))]
    drop(table);
    drop(qsbr);
    #[cfg(fault)]
    drop(table);
}
