// SPDX-License-Identifier: BSD-3-Clause
// expect: E0499
//! A view of a packet kept over a change of its shape.

use dpdk::Mbuf;

pub fn strip(mbuf: &mut Mbuf<'_>) -> bool {
    let Some(bytes) = mbuf.data_mut() else { return false };
    bytes.fill(0);
    let stripped = mbuf.adj(4);
    #[cfg(fault)]
    bytes.fill(1);
    stripped
}
