// SPDX-License-Identifier: BSD-3-Clause
// expect: E0382
//! A queue in two places: queues are not `Copy`.

use dpdk::{Burst, RxQueue};

pub fn twice(queue: RxQueue<'_>) {
    let mut first = queue;
    first.receive(&mut Burst::<32>::new());
    #[cfg(fault)]
    let mut second = queue;
    #[cfg(fault)]
    second.receive(&mut Burst::<32>::new());
}
