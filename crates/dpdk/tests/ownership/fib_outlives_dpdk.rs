// SPDX-License-Identifier: BSD-3-Clause
// expect: E0505
//! A forwarding table after DPDK, which owns its memory, has ended.

use dpdk::Eal;
use dpdk::fib::{Fib6, FibConfig};

pub fn keep(eal: Eal) {
    let fib = Fib6::new(&eal, &FibConfig::named("routes"));
    #[cfg(not(fault))]
    drop(fib);
    drop(eal);
    #[cfg(fault)]
    drop(fib);
}
