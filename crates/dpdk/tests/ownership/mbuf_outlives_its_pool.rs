// SPDX-License-Identifier: BSD-3-Clause
// expect: E0505
//! An mbuf after its pool has ended with DPDK.

use dpdk::{Eal, Mempool, PoolConfig};

pub fn keep(eal: Eal) {
    let Ok(pool) = Mempool::packet_pool(&eal, &PoolConfig::named("packets")) else { return };
    let mbuf = pool.alloc();
    #[cfg(not(fault))]
    drop(mbuf);
    drop(eal);
    #[cfg(fault)]
    drop(mbuf);
}
