// SPDX-License-Identifier: BSD-3-Clause
// expect: E0505
//! A received packet that waits in a ring while its port stops.

use dpdk::ring::{Ring, RingConfig};
use dpdk::{Burst, Eal, Port, Started};

pub fn keep(eal: &Eal, mut port: Port<'_, Started>) {
    let Ok(ring) = Ring::new(eal, &RingConfig::named("packets")) else { return };
    let mut burst = Burst::<32>::new();
    port.queues().rx[0].receive(&mut burst);
    ring.enqueue_burst(&mut burst);
    drop(burst);
    #[cfg(not(fault))]
    drop(ring);
    let _ = port.stop();
    #[cfg(fault)]
    drop(ring);
}
