// SPDX-License-Identifier: BSD-3-Clause
// expect: E0277
//! A ring's only consumer, used by another thread while its owner has it.

use dpdk::ring::Consumer;

pub fn look(consumer: Consumer<'_, u64>) {
    std::thread::scope(|threads| {
        #[cfg(not(fault))]
        threads.spawn(move || consumer.len());
        #[cfg(fault)]
        threads.spawn(|| consumer.len());
    });
}
