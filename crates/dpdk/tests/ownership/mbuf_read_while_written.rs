// SPDX-License-Identifier: BSD-3-Clause
// expect: E0502
//! Bytes that change under a reader.

use dpdk::Mbuf;

pub fn both(mbuf: &mut Mbuf<'_>) -> usize {
    #[cfg(fault)]
    let read = mbuf.data();
    if let Some(bytes) = mbuf.data_mut() {
        bytes.fill(0);
    }
    #[cfg(not(fault))]
    let read = mbuf.data();
    read.len()
}
