// SPDX-License-Identifier: BSD-3-Clause
// expect: E0505
//! A reader that outlives its table.

use dpdk::lpm::SharedLpm;
use dpdk::qsbr::Online;

pub fn keep(mut shared: SharedLpm<'_>, online: &Online<'_>) -> Option<u32> {
    let (_, reader) = shared.split();
    #[cfg(fault)]
    drop(shared);
    reader.now(online).lookup(1)
}
