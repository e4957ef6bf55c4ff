// SPDX-License-Identifier: BSD-3-Clause
// expect: E0499
//! A reference to a packet's bytes, kept while the packet's shape changes.

use dpdk::Mbuf;

pub fn strip(mbuf: &mut Mbuf<'_>) -> bool {
    let Some(bytes) = mbuf.data_mut() else { return false };
    bytes.fill(0);
    let stripped = mbuf.adj(4);
    #[cfg(fault)]
    bytes.fill(1);
    stripped
}
