// SPDX-License-Identifier: BSD-3-Clause
// expect: E0499
//! A queue that two threads poll.

use dpdk::{Burst, RxQueue};

pub fn poll(queue: &mut RxQueue<'_>) {
    std::thread::scope(|threads| {
        threads.spawn(|| queue.receive(&mut Burst::<32>::new()));
        #[cfg(fault)]
        threads.spawn(|| queue.receive(&mut Burst::<32>::new()));
    });
}
