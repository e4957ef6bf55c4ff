// SPDX-License-Identifier: BSD-3-Clause
// expect: E0505
//! A packet that is shared while a reference for writing its bytes exists.

use dpdk::{Mbuf, SharedMbuf};

pub fn share(mut mbuf: Mbuf<'_>) -> Option<SharedMbuf<'_>> {
    let bytes = mbuf.data_mut()?;
    bytes.fill(0);
    #[cfg(fault)]
    let shared = mbuf.share();
    bytes.fill(1);
    #[cfg(not(fault))]
    let shared = mbuf.share();
    Some(shared)
}
