// SPDX-License-Identifier: BSD-3-Clause
//! `rte_mempool_get_bulk` and `rte_mempool_put_bulk`: the per-lcore cache natively, the backend in C.

use std::ffi::c_void;
use std::ptr::copy_nonoverlapping;

use dpdk_sys::{layout, rte_mempool};

use crate::lcore;

type Object = *mut c_void;

#[inline(always)]
unsafe fn field<T: Copy>(pool: *const rte_mempool, offset: usize) -> T {
    // SAFETY: the caller passes an offset of a T in the struct.
    unsafe { pool.cast::<u8>().add(offset).cast::<T>().read() }
}

/// A per-lcore cache of a pool. Only the lcore itself touches it.
#[derive(Clone, Copy)]
struct Cache(*mut u8);

impl Cache {
    /// `rte_mempool_default_cache`: none for pools without caches, and for threads that are no
    /// lcore.
    #[inline(always)]
    unsafe fn of(pool: *const rte_mempool) -> Option<Self> {
        let lcore = lcore::current_id() as usize;
        // SAFETY: `pool` is a pool; it has a cache for each possible lcore when its cache size is not 0.
        unsafe {
            if lcore >= layout::MAX_LCORE || field::<u32>(pool, layout::MEMPOOL_CACHE_SIZE) == 0 {
                return None;
            }
            let caches: *mut u8 = field(pool, layout::MEMPOOL_LOCAL_CACHE);
            Some(Self(caches.add(lcore * layout::CACHE_STRIDE)))
        }
    }

    #[inline(always)]
    unsafe fn read(self, offset: usize) -> usize {
        // SAFETY: the caller passes the offset of one of the cache's 32-bit counters.
        unsafe { self.0.add(offset).cast::<u32>().read() as usize }
    }

    #[inline(always)]
    unsafe fn len(self) -> usize {
        // SAFETY: as named.
        unsafe { self.read(layout::CACHE_LEN) }
    }

    #[inline(always)]
    unsafe fn set_len(self, len: usize) {
        // SAFETY: as named.
        unsafe { self.0.add(layout::CACHE_LEN).cast::<u32>().write(len as u32) }
    }

    #[inline(always)]
    fn objects(self) -> *mut Object {
        // SAFETY: inside the cache.
        unsafe { self.0.add(layout::CACHE_OBJS).cast() }
    }
}

/// `rte_mempool_put_bulk`.
///
/// # Safety
/// `objects` holds `n` objects of this pool that the caller owns and gives up.
#[inline(always)]
pub(crate) unsafe fn put_bulk(pool: *mut rte_mempool, objects: *const Object, n: usize) {
    // SAFETY: the contract is the caller's; the cache is this lcore's own, and holds `flushthresh`
    // objects at most, for which it has room.
    unsafe {
        let cache = match Cache::of(pool) {
            Some(cache) if n <= cache.read(layout::CACHE_FLUSHTHRESH) => cache,
            _ => return put_backend(pool, objects, n),
        };
        let len = cache.len();
        let at = if len + n <= cache.read(layout::CACHE_FLUSHTHRESH) {
            cache.set_len(len + n);
            cache.objects().add(len)
        } else {
            put_backend(pool, cache.objects(), len);
            cache.set_len(n);
            cache.objects()
        };
        copy_nonoverlapping(objects, at, n);
    }
}

#[cold]
unsafe fn put_backend(pool: *mut rte_mempool, objects: *const Object, n: usize) {
    // SAFETY: the contract is the caller's. The backend has room for every object of its pool.
    unsafe { dpdk_sys::lr_mempool_ops_enqueue_bulk(pool, objects, n as u32) };
}

/// `rte_mempool_get_bulk`: `n` objects, the most recently used first, or none and `false`.
///
/// # Safety
/// `objects` has room for `n` pointers.
#[inline(always)]
pub(crate) unsafe fn get_bulk(pool: *mut rte_mempool, objects: *mut Object, n: usize) -> bool {
    // SAFETY: the contract is the caller's; the cache is this lcore's own.
    unsafe {
        let Some(cache) = Cache::of(pool) else {
            return get_backend(pool, objects, n);
        };
        let len = cache.len();
        if n > len {
            return get_refill(pool, cache, objects, n);
        }
        let mut top = cache.objects().add(len);
        for index in 0..n {
            top = top.sub(1);
            objects.add(index).write(top.read());
        }
        cache.set_len(len - n);
        true
    }
}

/// The cache has too few: takes those, refills it from the backend, and takes the rest.
#[cold]
unsafe fn get_refill(pool: *mut rte_mempool, cache: Cache, objects: *mut Object, n: usize) -> bool {
    // SAFETY: the contract is the caller's. The cache's array holds twice CACHE_MAX_SIZE objects, so
    // its size plus what is missing fits.
    unsafe {
        let len = cache.len();
        let missing = n - len;
        for index in 0..len {
            objects.add(index).write(cache.objects().add(len - 1 - index).read());
        }
        let size = cache.read(layout::CACHE_SIZE);
        // The objects just taken may be overwritten only once the request is certain to succeed:
        // ask for the missing ones first, because the cache may not be refilled as well.
        let rest = objects.add(len);
        if missing > layout::CACHE_MAX_SIZE {
            if !get_backend(pool, rest, missing) {
                return false;
            }
            cache.set_len(0);
            return true;
        }
        if dpdk_sys::lr_mempool_ops_dequeue_bulk(pool, cache.objects(), (size + missing) as u32) < 0
        {
            if !get_backend(pool, rest, missing) {
                return false;
            }
            cache.set_len(0);
            return true;
        }
        let mut top = cache.objects().add(size + missing);
        for index in 0..missing {
            top = top.sub(1);
            rest.add(index).write(top.read());
        }
        cache.set_len(size);
        true
    }
}

#[cold]
unsafe fn get_backend(pool: *mut rte_mempool, objects: *mut Object, n: usize) -> bool {
    // A ring reports too few objects when it is asked for none.
    // SAFETY: the contract is the caller's.
    n == 0 || unsafe { dpdk_sys::lr_mempool_ops_dequeue_bulk(pool, objects, n as u32) == 0 }
}
