// SPDX-License-Identifier: BSD-3-Clause
// expect: E0596
//! A dynamic field written in a packet with several owners, one of which might be reading it.

use dpdk::dynfield::DynField;
use dpdk::{Mbuf, SharedMbuf};

pub fn mark<'m>(mut own: Mbuf<'m>, mut shared: SharedMbuf<'m>, field: &DynField<u32>) -> u32 {
    field.write(&mut own, 1);
    shared = shared.unshare().map_or_else(|shared| shared, Mbuf::share);
    #[cfg(fault)]
    field.write(&mut shared, 2);
    field.read(&own) + field.read(&shared)
}
