// SPDX-License-Identifier: BSD-3-Clause
// expect: E0599
//! A second handle on a queue: queues are not `Clone`.

use dpdk::{Burst, TxQueue};

pub fn twice(mut queue: TxQueue<'_>) -> usize {
    #[cfg(fault)]
    let mut second = queue.clone();
    #[cfg(fault)]
    second.send(&mut Burst::<32>::new());
    queue.send(&mut Burst::<32>::new())
}
