// SPDX-License-Identifier: BSD-3-Clause
// expect: E0505
//! A reference from a table, used after the reader went offline.

use dpdk::qsbr::{Reader, Replaceable};

pub fn turn(table: &Replaceable<'_, Vec<u32>>, reader: &mut Reader<'_>) -> usize {
    let online = reader.online();
    let held = table.read(&online);
    #[cfg(fault)]
    drop(online);
    held.len()
}
