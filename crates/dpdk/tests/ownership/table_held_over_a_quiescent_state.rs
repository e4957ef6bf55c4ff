// SPDX-License-Identifier: BSD-3-Clause
// expect: E0502
//! A reference from a table, used after the reader has reported a quiescent state.

use dpdk::qsbr::{Online, Replaceable};

pub fn turn(table: &Replaceable<'_, Vec<u32>>, online: &mut Online<'_>) -> usize {
    let held = table.read(online);
    #[cfg(fault)]
    online.quiescent();
    let len = held.len();
    online.quiescent();
    len
}
