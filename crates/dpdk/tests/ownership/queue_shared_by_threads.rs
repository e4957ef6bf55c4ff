// SPDX-License-Identifier: BSD-3-Clause
// expect: E0277
//! A queue used by another thread while its owner has it: queues are `Send` and not `Sync`.

use dpdk::TxQueue;

pub fn look(queue: TxQueue<'_>) {
    std::thread::scope(|threads| {
        #[cfg(not(fault))]
        threads.spawn(move || queue.port());
        #[cfg(fault)]
        threads.spawn(|| queue.port());
    });
}
