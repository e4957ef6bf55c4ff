// SPDX-License-Identifier: BSD-3-Clause
// expect: E0277
//! A callback with what must not leave its thread, on a queue that may.

#[cfg(fault)]
use std::rc::Rc as Count;
#[cfg(not(fault))]
use std::sync::Arc as Count;

use dpdk::RxQueue;

pub fn count(queue: &mut RxQueue<'_>) {
    let count = Count::new(());
    let _ = queue.add_callback(move |_| drop(Count::clone(&count)));
}
