// SPDX-License-Identifier: BSD-3-Clause
// expect: E0382
//! An mbuf used after it went into a burst to be sent.

use dpdk::{Burst, Mbuf, TxQueue};

pub fn send<'m>(queue: &mut TxQueue<'m>, mbuf: Mbuf<'m>) -> usize {
    let mut burst = Burst::<1>::new();
    let len = mbuf.packet_len();
    let _ = burst.push(mbuf);
    queue.send(&mut burst);
    #[cfg(fault)]
    let len = mbuf.packet_len();
    len
}
