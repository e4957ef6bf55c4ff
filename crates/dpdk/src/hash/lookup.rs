// SPDX-License-Identifier: BSD-3-Clause
//! Lookups of one key or of many.

use std::ffi::c_void;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr::{self, NonNull};

use dpdk_sys::rte_hash;

use super::{LookupError, Plain, pack, unpack};
use crate::debug::impl_debug;

/// `RTE_HASH_LOOKUP_BULK_MAX`: the number of bits in a mask.
pub(super) const MOST: usize = 64;
/// The most keys in one call for extendable and shared tables. There C looks further (into chained
/// buckets, or whether the table has changed) unless it has found all keys. It tests that by
/// `hits == (1 << keys) - 1`, which for 64 keys is also true when it has found none.
pub(super) const MOST_WITH_MORE_TO_DO: usize = 32;

/// The lookups of a table: a [`Hash`](super::Hash), or a [`SharedHash`](super::SharedHash) for as
/// long as a reader is [`Online`](crate::qsbr::Online) and not quiescent. It is only ever borrowed.
pub struct Lookups<K, V> {
    raw: NonNull<rte_hash>,
    /// The most keys that C looks up correctly in one call.
    at_once: usize,
    types: PhantomData<(K, V)>,
}

impl_debug!([K, V] Lookups<K, V>, lookups => at_once: lookups.at_once);

// SAFETY: a table belongs to no thread, and holds plain data.
unsafe impl<K: Plain, V: Plain> Send for Lookups<K, V> {}
// SAFETY: it is only read, by functions that write nothing and take no lock: see the module's
// documentation. Concurrent writers use atomic stores.
unsafe impl<K: Plain, V: Plain> Sync for Lookups<K, V> {}

impl<K, V> Lookups<K, V> {
    pub(super) fn new(raw: NonNull<rte_hash>, at_once: usize) -> Self {
        Self { raw, at_once, types: PhantomData }
    }

    /// Returns another reference to the same table, for callers that ensure that the table outlives
    /// it.
    pub(super) fn another(&self) -> Self {
        Self::new(self.raw, self.at_once)
    }

    #[inline]
    pub(super) fn as_ptr(&self) -> *mut rte_hash {
        self.raw.as_ptr()
    }
}

impl<K: Plain, V: Plain> Lookups<K, V> {
    /// A key's hash, for the functions whose names end in `_hashed` (`rte_hash_hash`). The same in every table
    /// with that function and seed. Its upper 16 bits are never all 0: DPDK would take an empty place for a key of zeros.
    #[inline]
    #[must_use]
    pub fn hash_of(&self, key: &K) -> u32 {
        // SAFETY: the table lives, and a key's bytes are read.
        unsafe { dpdk_sys::rte_hash_hash(self.as_ptr(), ptr::from_ref(key).cast()) }
    }

    /// A key's value (`rte_hash_lookup_data`).
    #[inline]
    #[must_use]
    pub fn get(&self, key: &K) -> Option<V> {
        let mut value = ptr::null_mut();
        // SAFETY: the table is not changed while it is borrowed; a key's bytes are read. The
        // "pointer" that it stores is a value.
        unsafe {
            let (table, key) = (self.as_ptr(), ptr::from_ref(key).cast());
            let position = dpdk_sys::rte_hash_lookup_data(table, key, &raw mut value);
            (position >= 0).then(|| unpack(value))
        }
    }

    /// [`get`](Self::get), with the key's hash (`rte_hash_lookup_with_hash_data`).
    #[inline]
    #[must_use]
    pub fn get_hashed(&self, key: &K, hash: u32) -> Option<V> {
        let mut value = ptr::null_mut();
        // SAFETY: as in `get`.
        unsafe {
            let (table, key) = (self.as_ptr(), ptr::from_ref(key).cast());
            let position =
                dpdk_sys::rte_hash_lookup_with_hash_data(table, key, marked(hash), &raw mut value);
            (position >= 0).then(|| unpack(value))
        }
    }

    /// Returns true if the table has the key (`rte_hash_lookup`).
    #[inline]
    #[must_use]
    pub fn contains(&self, key: &K) -> bool {
        self.get(key).is_some()
    }

    /// Looks up any number of keys (`rte_hash_lookup_bulk_data`, 64 at a time, or 32 in extendable
    /// and shared tables). Writes their values, and `missed` for keys that are not there. Returns
    /// the number of keys found.
    ///
    /// # Errors
    /// [`LookupError`] if `values` is not as long as `keys`.
    #[inline]
    pub fn lookup_bulk(
        &self,
        keys: &[K],
        values: &mut [V],
        missed: V,
    ) -> Result<usize, LookupError> {
        same("places for values", keys.len(), values.len())?;
        let n = self.at_once;
        let found = keys.chunks(n).zip(values.chunks_mut(n)).map(|(keys, values)| {
            // SAFETY: the table is not changed while it is borrowed; a piece has 64 keys at most.
            unsafe { fill(self.as_ptr(), keys, None, values, missed) }
        });
        Ok(found.sum())
    }

    /// [`lookup_bulk`](Self::lookup_bulk), with the keys' hashes (`rte_hash_lookup_with_hash_bulk_data`).
    ///
    /// # Errors
    /// [`LookupError`] if `hashes` or `values` is not as long as `keys`.
    #[inline]
    pub fn lookup_bulk_hashed(
        &self,
        keys: &[K],
        hashes: &[u32],
        values: &mut [V],
        missed: V,
    ) -> Result<usize, LookupError> {
        same("hashes", keys.len(), hashes.len())?;
        same("places for values", keys.len(), values.len())?;
        let n = self.at_once;
        let pieces = keys.chunks(n).zip(hashes.chunks(n)).zip(values.chunks_mut(n));
        let found = pieces.map(|((keys, hashes), values)| {
            // SAFETY: as in `lookup_bulk`, and there are as many hashes.
            unsafe { fill(self.as_ptr(), keys, Some(hashes), values, missed) }
        });
        Ok(found.sum())
    }

    /// Looks up at most 64 keys: bit `n` of the result is 1 if the `n`th key is there
    /// (`rte_hash_lookup_bulk_data`). The values of missing keys are left unchanged.
    ///
    /// # Errors
    /// [`LookupError`] if there are more keys, or if `values` is not as long as `keys`.
    #[inline]
    pub fn lookup_mask(&self, keys: &[K], values: &mut [V]) -> Result<u64, LookupError> {
        if keys.len() > MOST {
            return Err(LookupError::TooMany(keys.len()));
        }
        same("places for values", keys.len(), values.len())?;
        let (n, mut mask) = (self.at_once, 0);
        for (piece, (keys, values)) in keys.chunks(n).zip(values.chunks_mut(n)).enumerate() {
            let mut found = [const { MaybeUninit::<*mut c_void>::uninit() }; MOST];
            // SAFETY: the table is not changed while it is borrowed; 64 keys at most.
            let hits = unsafe { lookup(self.as_ptr(), keys, None, found.as_mut_ptr().cast()) };
            for (index, (value, found)) in values.iter_mut().zip(&found).enumerate() {
                if hits >> index & 1 != 0 {
                    // SAFETY: C has written the value of a hit, which was put there as such.
                    *value = unsafe { unpack(found.assume_init()) };
                }
            }
            mask |= hits << (piece * n);
        }
        Ok(mask)
    }
}

fn same(what: &'static str, keys: usize, others: usize) -> Result<(), LookupError> {
    if keys == others { Ok(()) } else { Err(LookupError::Lengths { keys, what, others }) }
}

/// A hash as DPDK takes it. If its upper 16 bits were 0, an insertion would compare with empty
/// places too, where a key of zeros seems to be, and would insert such a key twice.
#[inline(always)]
pub(super) fn marked(hash: u32) -> u32 {
    hash | u32::from(hash >> 16 == 0) << 16
}

/// Returns the values of at most 64 keys, `missed` for missing ones, and the number of keys found.
///
/// # Safety
/// As [`lookup`]; the table has values of type `V`.
#[inline]
unsafe fn fill<K: Plain, V: Plain>(
    table: *const rte_hash,
    keys: &[K],
    hashes: Option<&[u32]>,
    values: &mut [V],
    missed: V,
) -> usize {
    // C writes where it finds, and nowhere else.
    let mut found = [pack(missed); MOST];
    // SAFETY: the contract is the caller's.
    let hits = unsafe { lookup(table, keys, hashes, found.as_mut_ptr()) };
    for (value, found) in values.iter_mut().zip(&found) {
        // SAFETY: `missed`, or a value that was put there as such.
        *value = unsafe { unpack(*found) };
    }
    hits.count_ones() as usize
}

/// Calls C. The values of missing keys are left unchanged.
///
/// # Safety
/// The table lives, has keys of type `K`, and is changed meanwhile only by functions that allow
/// concurrent readers. There are at most 64 keys, as many hashes if any, and room for 64 values.
#[inline]
unsafe fn lookup<K: Plain>(
    table: *const rte_hash,
    keys: &[K],
    hashes: Option<&[u32]>,
    found: *mut *mut c_void,
) -> u64 {
    if keys.is_empty() {
        return 0; // C takes none for an error.
    }
    let mut pointers = [const { MaybeUninit::uninit() }; MOST];
    for (pointer, key) in pointers.iter_mut().zip(keys) {
        pointer.write(ptr::from_ref(key).cast::<c_void>());
    }
    let (n, mut hits) = (keys.len() as u32, 0);
    // SAFETY: the contract is the caller's; C reads as many pointers and hashes as the count says,
    // and writes at most as many values.
    unsafe {
        let pointers = pointers.as_mut_ptr().cast();
        match hashes {
            None => dpdk_sys::rte_hash_lookup_bulk_data(table, pointers, n, &raw mut hits, found),
            Some(hashes) => {
                let mut all = [0; MOST];
                for (to, hash) in all.iter_mut().zip(hashes) {
                    *to = marked(*hash);
                }
                let hashes = all.as_mut_ptr();
                dpdk_sys::rte_hash_lookup_with_hash_bulk_data(
                    table,
                    pointers,
                    hashes,
                    n,
                    &raw mut hits,
                    found,
                )
            }
        };
    }
    hits
}
