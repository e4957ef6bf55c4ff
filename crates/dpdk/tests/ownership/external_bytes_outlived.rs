// SPDX-License-Identifier: BSD-3-Clause
// expect: E0597
//! A packet with external bytes that may be freed before it.

use dpdk::{ExternalBuffer, ForeignMemory, Mbuf, Mempool};

pub fn borrow<'m>(right: ForeignMemory<'m>, pool: &Mempool<'m>) -> Option<Mbuf<'m>> {
    let bytes = vec![0u8; 64];
    #[cfg(not(fault))]
    let lent = bytes;
    #[cfg(fault)]
    let lent: &'static [u8] = &bytes;
    ExternalBuffer::foreign(right, lent).packet(pool, ..).ok()
}
