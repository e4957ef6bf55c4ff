// SPDX-License-Identifier: BSD-3-Clause
// expect: E0499
//! A callback that polls the queue that it is on.

use dpdk::{Burst, RxQueue};

pub fn poll<'p>(queue: &'p mut RxQueue<'p>, other: &'p mut RxQueue<'p>) {
    #[cfg(fault)]
    let other = (other, &mut *queue).1;
    let _ = queue.add_callback(move |_| {
        other.receive(&mut Burst::<32>::new());
    });
}
