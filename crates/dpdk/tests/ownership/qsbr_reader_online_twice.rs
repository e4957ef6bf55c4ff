// SPDX-License-Identifier: BSD-3-Clause
// expect: E0499
//! A reader that reports a quiescent state in one place while it reads in another.

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
