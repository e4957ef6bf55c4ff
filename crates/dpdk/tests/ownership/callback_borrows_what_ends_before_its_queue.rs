// SPDX-License-Identifier: BSD-3-Clause
// expect: E0597
//! A callback that borrows a value which is dropped before its queue.

use std::sync::atomic::{AtomicU64, Ordering};

use dpdk::RxQueue;

pub fn count(mut queue: RxQueue<'_>) -> RxQueue<'_> {
    #[cfg(not(fault))]
    static COUNT: AtomicU64 = AtomicU64::new(0);
    #[cfg(fault)]
    let count = AtomicU64::new(0);
    #[cfg(not(fault))]
    let count = &COUNT;
    #[cfg(fault)]
    let count = &count;
    let _ = queue.add_callback(move |_| {
        count.fetch_add(1, Ordering::Relaxed);
    });
    queue
}
