// SPDX-License-Identifier: BSD-3-Clause
// expect: E0505
//! Routes of IPv6 whose memory, DPDK's, is gone.

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
