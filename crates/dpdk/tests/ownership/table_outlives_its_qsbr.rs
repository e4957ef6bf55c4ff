// SPDX-License-Identifier: BSD-3-Clause
// expect: E0505
//! A table whose readers nobody can ask any more.

use dpdk::qsbr::{Qsbr, Replaceable};

pub fn keep(qsbr: Qsbr) {
    let table = Replaceable::new(&qsbr, 7);
    #[cfg(not(fault))]
    drop(table);
    drop(qsbr);
    #[cfg(fault)]
    drop(table);
}
