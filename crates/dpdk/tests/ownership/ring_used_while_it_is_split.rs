// SPDX-License-Identifier: BSD-3-Clause
// expect: E0502
//! A ring with a single producer, into which other code enqueues meanwhile.

use dpdk::ring::Ring;

pub fn both(ring: &mut Ring<'_, u64>) {
    let (mut producer, _consumer) = ring.split();
    #[cfg(fault)]
    let _ = ring.enqueue(1);
    let _ = producer.enqueue(2);
}
