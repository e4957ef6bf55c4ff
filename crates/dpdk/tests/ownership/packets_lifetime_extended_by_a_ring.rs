// SPDX-License-Identifier: BSD-3-Clause
// expect: lifetime may not live long enough
//! A packet put into a ring whose packets live longer.

use dpdk::Mbuf;
use dpdk::ring::Ring;

pub fn extend<'long: 'short, 'short>(ring: &Ring<'long, Mbuf<'long>>, mbuf: Mbuf<'short>) {
    #[cfg(not(fault))]
    let _ = (ring, mbuf);
    #[cfg(fault)]
    {
        let shorter: &Ring<'long, Mbuf<'short>> = ring;
        let _ = shorter.enqueue(mbuf);
    }
}
