// SPDX-License-Identifier: BSD-3-Clause
// expect: E0505
//! A ring after DPDK, which owns its memory, has ended.

use dpdk::Eal;
use dpdk::ring::{Ring, RingConfig};

pub fn keep(eal: Eal) {
    let ring = Ring::<u64>::new(&eal, &RingConfig::named("ring"));
    #[cfg(not(fault))]
    drop(ring);
    drop(eal);
    #[cfg(fault)]
    drop(ring);
}
