// SPDX-License-Identifier: BSD-3-Clause
// expect: E0521
//! A callback that keeps a reference to a packet of its burst.

use dpdk::RxQueue;

pub fn keep(queue: &mut RxQueue<'_>) {
    let mut last = None;
    let _ = queue.add_callback(move |packets| {
        #[cfg(not(fault))]
        {
            last = packets.iter().last().map(|packet| packet.packet_len());
        }
        #[cfg(fault)]
        {
            last = packets.iter().last();
        }
        let _ = &last;
    });
}
