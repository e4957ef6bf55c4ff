// SPDX-License-Identifier: BSD-3-Clause
// expect: E0502
//! Values from a shared table, read after the reader has reported a quiescent state.

use dpdk::hash::HashReader;
use dpdk::qsbr::Online;

pub fn hold(reader: &HashReader<'_, u32, u32>, online: &mut Online<'_>) -> Option<u32> {
    let table = reader.now(online);
    #[cfg(not(fault))]
    let found = table.get(&1);
    online.quiescent();
    #[cfg(fault)]
    let found = table.get(&1);
    found
}
