// SPDX-License-Identifier: BSD-3-Clause
// expect: E0502
//! Bytes that are changed while a reader borrows them.

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
