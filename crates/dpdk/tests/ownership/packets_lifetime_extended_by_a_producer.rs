// SPDX-License-Identifier: BSD-3-Clause
// expect: lifetime may not live long enough
//! A packet enqueued by a producer of a ring whose packets live longer.

use dpdk::Mbuf;
use dpdk::ring::Producer;

pub fn extend<'long: 'short, 'short>(producer: Producer<'short, Mbuf<'long>>, mbuf: Mbuf<'short>) {
    #[cfg(not(fault))]
    let _ = (producer, mbuf);
    #[cfg(fault)]
    {
        let mut shorter: Producer<'short, Mbuf<'short>> = producer;
        let _ = shorter.enqueue(mbuf);
    }
}
