// SPDX-License-Identifier: BSD-3-Clause
// expect: E0515
//! A clone kept longer than the pool of its mbuf.

use dpdk::{Eal, Mbuf, Mempool, PoolConfig, SharedMbuf};

pub fn keep<'m>(packet: &SharedMbuf<'m>, mine: &Mempool<'m>, other: Eal) -> Option<Mbuf<'m>> {
    let Ok(theirs) = Mempool::packet_pool(&other, &PoolConfig::named("clones")) else {
        return None;
    };
    #[cfg(not(fault))]
    let pool = mine;
    #[cfg(fault)]
    let pool = &theirs;
    let _ = (mine, theirs.capacity());
    packet.clone_into(pool).ok()
}
