// SPDX-License-Identifier: BSD-3-Clause
// expect: E0521
//! A callback that keeps one of the packets to be sent: its port may stop before the port that
//! sends.

use dpdk::{Mempool, TxQueue};

pub fn keep<'m>(queue: &mut TxQueue<'m>, pool: Mempool<'m>) {
    let mut kept = Vec::new();
    let _ = queue.add_callback(move |packets| {
        #[cfg(not(fault))]
        kept.extend(packets.pop().and_then(|packet| packet.copy_into(&pool).ok()));
        #[cfg(fault)]
        kept.extend(packets.pop().filter(|_| !pool.is_full()));
    });
}
