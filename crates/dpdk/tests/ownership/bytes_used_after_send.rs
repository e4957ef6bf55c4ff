// SPDX-License-Identifier: BSD-3-Clause
// expect: E0502
//! The bytes of a packet, used after the driver may have freed it.

use dpdk::{Burst, TxQueue};

pub fn send<'m>(queue: &mut TxQueue<'m>, burst: &mut Burst<'m, 32>) -> usize {
    let bytes = burst.as_slice()[0].data();
    let len = bytes.len();
    queue.send(burst);
    #[cfg(fault)]
    let len = bytes.len();
    len
}
