// SPDX-License-Identifier: BSD-3-Clause
// expect: lifetime may not live long enough
//! A reference into tables that are kept while the snapshot is renewed.

use dpdk::qsbr::Snapshot;

pub fn first(snapshot: &Snapshot<'_, '_, Vec<u32>>) -> u32 {
    #[cfg(not(fault))]
    let number = snapshot.with(|table| table[0]);
    #[cfg(fault)]
    let number = *snapshot.with(|table| &table[0]);
    snapshot.renew();
    number
}
