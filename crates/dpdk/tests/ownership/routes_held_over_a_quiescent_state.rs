// SPDX-License-Identifier: BSD-3-Clause
// expect: E0502
//! Lookups in a shared table that continue after the reader has reported a quiescent state.

use dpdk::lpm::LpmReader;
use dpdk::qsbr::Online;

pub fn turn(reader: LpmReader<'_>, online: &mut Online<'_>) -> Option<u32> {
    let routes = reader.now(online);
    #[cfg(fault)]
    online.quiescent();
    let hop = routes.lookup(1);
    online.quiescent();
    hop
}
