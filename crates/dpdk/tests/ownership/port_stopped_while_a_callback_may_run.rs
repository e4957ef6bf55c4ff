// SPDX-License-Identifier: BSD-3-Clause
// expect: E0505
//! A queue with a callback that is dropped after its port has stopped.

use dpdk::{Port, Started};

pub fn stop(mut port: Port<'_, Started>) {
    let mut queues = port.queues();
    let _ = queues.rx[0].add_callback(|packets| packets.clear());
    #[cfg(not(fault))]
    drop(queues);
    let _ = port.stop();
}
