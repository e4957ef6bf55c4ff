// SPDX-License-Identifier: BSD-3-Clause
// expect: E0499
//! The queues of a port handed out twice.

use dpdk::{Port, Started};

pub fn twice(port: &mut Port<'_, Started>) {
    let first = port.queues();
    #[cfg(not(fault))]
    drop(first);
    let second = port.queues();
    drop(second);
    #[cfg(fault)]
    drop(first);
}
