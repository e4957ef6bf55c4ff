// SPDX-License-Identifier: BSD-3-Clause
// expect: E0277
//! A callback that owns a value which is not `Send`, on a queue that may change threads.

#[cfg(fault)]
use std::rc::Rc as Count;
#[cfg(not(fault))]
use std::sync::Arc as Count;

use dpdk::RxQueue;

pub fn count(queue: &mut RxQueue<'_>) {
    let count = Count::new(());
    let _ = queue.add_callback(move |_| drop(Count::clone(&count)));
}
