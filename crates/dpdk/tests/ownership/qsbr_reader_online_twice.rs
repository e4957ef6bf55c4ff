// SPDX-License-Identifier: BSD-3-Clause
// expect: E0499
//! A reader that is quiescent in one place and reads in another.

use dpdk::qsbr::Reader;

pub fn twice(reader: &mut Reader<'_>) {
    let first = reader.online();
    #[cfg(not(fault))]
    drop(first);
    let second = reader.online();
    drop(second);
    #[cfg(fault)]
    drop(first);
}
