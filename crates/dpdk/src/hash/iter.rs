// SPDX-License-Identifier: BSD-3-Clause
//! All that is in a table.

use std::ptr;

use super::{Hash, Plain, unpack};
use crate::debug::impl_debug;

/// Keys and values of a [`struct@Hash`], in no order.
pub struct Iter<'h, K, V> {
    table: &'h Hash<'h, K, V>,
    next: u32,
}

impl_debug!([K: Plain, V: Plain] Iter<'_, K, V>, iter => table: iter.table);

impl<'h, K: Plain, V: Plain> Iter<'h, K, V> {
    pub(super) fn new(table: &'h Hash<'_, K, V>) -> Self {
        Self { table, next: 0 }
    }
}

impl<K: Plain, V: Plain> Iterator for Iter<'_, K, V> {
    type Item = (K, V);

    fn next(&mut self) -> Option<(K, V)> {
        let (mut key, mut value) = (ptr::null(), ptr::null_mut());
        // SAFETY: the table is not changed while it is borrowed. DPDK's pointer leads to one of its
        // keys, and the "pointer" that it stores is a value; both were stored as such.
        unsafe {
            let table = self.table.as_ptr();
            let (key_at, value_at) = (&raw mut key, &raw mut value);
            if dpdk_sys::rte_hash_iterate(table, key_at, value_at, &raw mut self.next) < 0 {
                return None;
            }
            Some((key.cast::<K>().read_unaligned(), unpack(value)))
        }
    }
}

impl<'h, K: Plain, V: Plain> IntoIterator for &'h Hash<'_, K, V> {
    type Item = (K, V);
    type IntoIter = Iter<'h, K, V>;

    fn into_iter(self) -> Iter<'h, K, V> {
        self.iter()
    }
}
