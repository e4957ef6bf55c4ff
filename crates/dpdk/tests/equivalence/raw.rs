// SPDX-License-Identifier: BSD-3-Clause
//! What the comparisons read without the safe API.

use std::collections::HashMap;
use std::ops::Range;
use std::ptr::null_mut;

use dpdk::{Eal, Mbuf};
use dpdk_sys::{layout, rte_mbuf, rte_mempool};
use proptest::prelude::*;

/// The pointer inside an [`Mbuf`], which is transparent over it.
pub fn pointer(mbuf: &Mbuf<'_>) -> *mut rte_mbuf {
    // SAFETY: both are one pointer.
    unsafe { std::mem::transmute_copy(mbuf) }
}

/// A pool by its name.
pub fn pool(name: &str) -> *mut rte_mempool {
    let name = std::ffi::CString::new(name).unwrap();
    // SAFETY: looks a pool up by its name.
    let pool = unsafe { dpdk_sys::rte_mempool_lookup(name.as_ptr()) };
    assert!(!pool.is_null());
    pool
}

/// `n` packets from C, or none.
pub fn c_alloc(pool: *mut rte_mempool, n: usize) -> Option<Vec<*mut rte_mbuf>> {
    let mut raw = vec![null_mut(); n];
    // SAFETY: there is room for that many.
    let code = unsafe { dpdk_sys::lr_pktmbuf_alloc_bulk(pool, raw.as_mut_ptr(), n as u32) };
    (code == 0).then_some(raw)
}

/// Frees packets through C, in order.
pub fn c_free(mbufs: impl IntoIterator<Item = *mut rte_mbuf>) {
    for mbuf in mbufs {
        // SAFETY: the tests own these packets and give them up.
        unsafe { dpdk_sys::lr_pktmbuf_free(mbuf) };
    }
}

/// The main lcore's cache of a pool.
pub fn cache_len(eal: &Eal, name: &str) -> u32 {
    let lcore = eal.main_lcore().id() as usize;
    let pool = pool(name).cast::<u8>();
    // SAFETY: a pool whose cache size is not 0 has a cache for each lcore.
    unsafe {
        if *pool.add(layout::MEMPOOL_CACHE_SIZE).cast::<u32>() == 0 {
            return 0;
        }
        let caches = *pool.add(layout::MEMPOOL_LOCAL_CACHE).cast::<*mut u8>();
        *caches.add(lcore * layout::CACHE_STRIDE + layout::CACHE_LEN).cast::<u32>()
    }
}

/// Reads a field.
pub fn field<T: Copy>(mbuf: *const rte_mbuf, offset: usize) -> T {
    // SAFETY: the tests read fields of valid mbufs at C's offsets.
    unsafe { mbuf.cast::<u8>().add(offset).cast::<T>().read_unaligned() }
}

/// The bytes of a part of an mbuf.
pub fn bytes(mbuf: *const rte_mbuf, range: Range<usize>) -> Vec<u8> {
    // SAFETY: inside a valid mbuf.
    unsafe { std::slice::from_raw_parts(mbuf.cast::<u8>().add(range.start), range.len()) }.to_vec()
}

/// Overwrites all fields that an application may change in an mbuf before it returns to its pool.
pub fn scribble(mbuf: *mut rte_mbuf, seed: u8) {
    let fields = [
        (layout::MBUF_PORT, 2),
        (layout::MBUF_PACKET_TYPE, 4),
        (layout::MBUF_VLAN_TCI, 2),
        (layout::MBUF_VLAN_TCI_OUTER, 2),
        (layout::MBUF_HASH, layout::MBUF_HASH_SIZE),
        (layout::MBUF_TX_OFFLOAD, 8),
        (layout::MBUF_DYNFIELD1, layout::MBUF_DYNFIELD1_SIZE),
    ];
    for (place, (offset, len)) in (1u8..).zip(fields) {
        // SAFETY: plain data of an mbuf that the test owns.
        unsafe { mbuf.cast::<u8>().add(offset).write_bytes(seed.wrapping_mul(place), len) };
    }
    // Offload flags and dynamic flags, but none that say where the bytes are.
    let kept: u64 = field::<u64>(mbuf, layout::MBUF_OL_FLAGS)
        & (layout::MBUF_F_INDIRECT | layout::MBUF_F_EXTERNAL);
    // SAFETY: as above.
    unsafe { *mbuf.cast::<u8>().add(layout::MBUF_OL_FLAGS).cast() = kept | u64::from(seed) << 1 };
}

/// Which mbuf of the C side corresponds to which one of the native side. As both sides do the same,
/// the pools return their mbufs in the same order: a pair never changes.
#[derive(Default)]
pub struct Pairs {
    native_to_c: HashMap<usize, usize>,
    c_to_native: HashMap<usize, usize>,
}

impl Pairs {
    /// Returns true if the two are a pair, or become one now.
    pub fn are_paired<T>(&mut self, native: *const T, c: *const T) -> bool {
        let (native, c) = (native as usize, c as usize);
        *self.native_to_c.entry(native).or_insert(c) == c
            && *self.c_to_native.entry(c).or_insert(native) == native
    }
}

/// Compares two packets segment by segment: the bytes, and every field except the addresses, which
/// must be those of a pair.
pub fn compare(
    pairs: &mut Pairs,
    mut native: *mut rte_mbuf,
    mut c: *mut rte_mbuf,
) -> Result<(), TestCaseError> {
    for header in [1, 0, 0, 0, 0, 0, 0, 0] {
        prop_assert!(pairs.are_paired(native, c), "the pools' orders have come apart");
        // All fields from the addresses at the start up to the pool, except the port; then those
        // after the pool, except `next` and `shinfo`.
        for range in [
            layout::MBUF_DATA_OFF..layout::MBUF_PORT,
            layout::MBUF_PORT + 2..layout::MBUF_POOL,
            layout::MBUF_TX_OFFLOAD..layout::MBUF_SHINFO,
            layout::MBUF_SHINFO + 8..layout::MBUF_DYNFIELD1 + layout::MBUF_DYNFIELD1_SIZE,
        ] {
            prop_assert_eq!(bytes(native, range.clone()), bytes(c, range));
        }
        // The rings of later releases set the port: 0 on the native side, 1 on C's.
        let ports: (u16, u16) = (field(native, layout::MBUF_PORT), field(c, layout::MBUF_PORT));
        prop_assert!(ports.0 == ports.1 || ports == (0, 1), "{:?}", ports);
        let (buffer, c_buffer): (*const u8, *const u8) =
            (field(native, layout::MBUF_BUF_ADDR), field(c, layout::MBUF_BUF_ADDR));
        if field::<u64>(c, layout::MBUF_OL_FLAGS) & layout::MBUF_F_EXTERNAL == 0 {
            prop_assert!(pairs.are_paired(buffer, c_buffer), "another buffer");
        } else {
            let (shared, c_shared): (*const u16, *const u16) =
                (field(native, layout::MBUF_SHINFO), field(c, layout::MBUF_SHINFO));
            let count = layout::SHINFO_REFCNT / 2;
            // SAFETY: the reference counts of buffers that the test has attached.
            unsafe { prop_assert_eq!(*shared.add(count), *c_shared.add(count)) };
        }
        for mbuf in [native, c] {
            let mut reason = std::ptr::null();
            // SAFETY: checks a valid mbuf.
            let sane = unsafe { dpdk_sys::rte_mbuf_check(mbuf, header, &mut reason) } == 0;
            prop_assert!(sane, "not a sane mbuf, according to rte_mbuf_check");
        }
        let len = usize::from(field::<u16>(c, layout::MBUF_DATA_LEN));
        let offset = usize::from(field::<u16>(c, layout::MBUF_DATA_OFF));
        // SAFETY: rte_mbuf_check has found the data inside the buffers.
        unsafe {
            prop_assert_eq!(
                std::slice::from_raw_parts(buffer.add(offset), len),
                std::slice::from_raw_parts(c_buffer.add(offset), len)
            );
        }
        (native, c) = (field(native, layout::MBUF_NEXT), field(c, layout::MBUF_NEXT));
        prop_assert_eq!(native.is_null(), c.is_null());
        if c.is_null() {
            return Ok(());
        }
    }
    Err(TestCaseError::fail("more segments than the test makes"))
}
