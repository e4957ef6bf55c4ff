// SPDX-License-Identifier: BSD-3-Clause
// expect: E0505
//! A port that is stopped while its queues can still be polled.

use dpdk::{Port, Started};

pub fn stop(mut port: Port<'_, Started>) {
    let queues = port.queues();
    #[cfg(not(fault))]
    drop(queues);
    let _ = port.stop();
    #[cfg(fault)]
    drop(queues);
}
