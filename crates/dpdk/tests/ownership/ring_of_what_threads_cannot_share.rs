// SPDX-License-Identifier: BSD-3-Clause
// expect: E0277
//! A ring that would bring to another thread a value which must not go there.

#[cfg(fault)]
use std::rc::Rc as Counted;
#[cfg(not(fault))]
use std::sync::Arc as Counted;

use dpdk::ring::Ring;

pub fn send(ring: &Ring<'_, Counted<u64>>) {
    std::thread::scope(|threads| {
        threads.spawn(|| ring.dequeue());
    });
}
