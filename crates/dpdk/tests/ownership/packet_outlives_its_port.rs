// SPDX-License-Identifier: BSD-3-Clause
// expect: E0505
//! A received packet that is kept while its port stops.

use dpdk::{Burst, Port, Started};

pub fn keep(mut port: Port<'_, Started>) {
    let mut burst = Burst::<32>::new();
    port.queues().rx[0].receive(&mut burst);
    #[cfg(not(fault))]
    drop(burst);
    let _ = port.stop();
    #[cfg(fault)]
    drop(burst);
}
