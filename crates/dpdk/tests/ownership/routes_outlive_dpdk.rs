// SPDX-License-Identifier: BSD-3-Clause
// expect: E0505
//! IPv6 routes after DPDK, which owns their memory, has ended.

use dpdk::Eal;
use dpdk::lpm::{Lpm6, LpmConfig};

pub fn keep(eal: Eal) {
    let routes = Lpm6::new(&eal, &LpmConfig::named("routes"));
    #[cfg(not(fault))]
    drop(routes);
    drop(eal);
    #[cfg(fault)]
    drop(routes);
}
