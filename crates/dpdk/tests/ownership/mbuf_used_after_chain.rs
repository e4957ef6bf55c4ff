// SPDX-License-Identifier: BSD-3-Clause
// expect: E0382
//! A packet that has become segments of another.

use dpdk::Mbuf;

pub fn chain<'m>(head: &mut Mbuf<'m>, tail: Mbuf<'m>) -> usize {
    let len = tail.packet_len();
    let _ = head.chain(tail);
    #[cfg(fault)]
    let len = tail.packet_len();
    len
}
