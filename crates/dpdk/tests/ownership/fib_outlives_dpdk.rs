// SPDX-License-Identifier: BSD-3-Clause
// expect: E0505
//! A forwarding table whose memory, DPDK's, is gone.

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
