// SPDX-License-Identifier: BSD-3-Clause
// expect: E0277
//! A snapshot that another thread reads: its own would be quiescent meanwhile.

use dpdk::qsbr::Snapshot;

pub fn read(snapshot: &Snapshot<'_, '_, u32>) -> u32 {
    #[cfg(not(fault))]
    return snapshot.with(|number| *number);
    #[cfg(fault)]
    std::thread::scope(|threads| {
        threads.spawn(|| snapshot.with(|number| *number)).join().unwrap_or_default()
    })
}
