// SPDX-License-Identifier: BSD-3-Clause
//! `rte_pktmbuf_alloc_bulk`, `rte_pktmbuf_free` and the fields of an mbuf.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU16, Ordering};

use dpdk_sys::{layout, rte_mbuf, rte_mempool};

use super::mempool;

/// Flags of an mbuf whose bytes other owners may see.
pub(crate) const SHARED: u64 = layout::MBUF_F_INDIRECT | layout::MBUF_F_EXTERNAL;

/// Flags that ask a device to write into a packet that it sends, or to segment it, at lengths in
/// the mbuf: all of `RTE_MBUF_F_TX_OFFLOAD_MASK` except the VLAN tag to be inserted.
///
/// Drivers do some of it in software and trust the lengths. So if one of these flags is set, the
/// first mbuf has one owner and bytes of its own, and the headers lie in its data: changes that
/// would violate this clear the flags, and clones and copies have none. Segments after the first
/// have none.
pub(crate) const REQUESTS: u64 = layout::MBUF_F_TX_OFFLOAD_MASK & !layout::MBUF_F_TX_VLAN;

/// Clears all [`REQUESTS`].
///
/// # Safety
/// `mbuf` is valid and the caller's alone.
#[inline(always)]
pub(crate) unsafe fn withdraw_requests(mbuf: *mut rte_mbuf) {
    // SAFETY: the contract is the caller's.
    unsafe {
        let flags: u64 = field(mbuf, layout::MBUF_OL_FLAGS);
        set_field(mbuf, layout::MBUF_OL_FLAGS, flags & !REQUESTS);
    }
}

/// Reads a field.
///
/// # Safety
/// `mbuf` is valid and has a `T` at `offset`.
#[inline(always)]
pub(crate) unsafe fn field<T: Copy>(mbuf: *const rte_mbuf, offset: usize) -> T {
    // SAFETY: the contract is the caller's.
    unsafe { mbuf.cast::<u8>().add(offset).cast::<T>().read() }
}

/// Writes a field.
///
/// # Safety
/// `mbuf` is valid, has a `T` at `offset`, and nobody else reads or writes it now.
#[inline(always)]
pub(crate) unsafe fn set_field<T: Copy>(mbuf: *mut rte_mbuf, offset: usize, value: T) {
    // SAFETY: the contract is the caller's.
    unsafe { mbuf.cast::<u8>().add(offset).cast::<T>().write(value) }
}

/// `rte_pktmbuf_mtod`.
///
/// # Safety
/// `mbuf` is valid.
#[inline(always)]
pub(crate) unsafe fn data_start(mbuf: *const rte_mbuf) -> *mut u8 {
    // SAFETY: the contract is the caller's. The pointer is used only with a length that `data_len`
    // found to be inside the buffer.
    unsafe {
        field::<*mut u8>(mbuf, layout::MBUF_BUF_ADDR)
            .wrapping_add(usize::from(field::<u16>(mbuf, layout::MBUF_DATA_OFF)))
    }
}

/// `rte_pktmbuf_data_len`, limited to the buffer: net_null, for example, writes its configured
/// length even into smaller mbufs.
///
/// # Safety
/// `mbuf` is valid.
#[inline(always)]
pub(crate) unsafe fn data_len(mbuf: *const rte_mbuf) -> usize {
    // SAFETY: the contract is the caller's.
    unsafe {
        // Widened before they are compared: to compare 16 bits the compiler loads 32, and a load that is wider than a
        // store just before it, as that of `prepend`, has to wait.
        let [offset, len, buffer] =
            [layout::MBUF_DATA_OFF, layout::MBUF_DATA_LEN, layout::MBUF_BUF_LEN]
                .map(|at| usize::from(field::<u16>(mbuf, at)));
        len.min(buffer.saturating_sub(offset))
    }
}

/// Returns true if the first segment has a header of `len` bytes, at most 64.
///
/// The end of the buffer is not checked. Valid mbufs end inside it. The driver that is known to
/// report more bytes than there are (see [`data_len`]) leaves the start of the data where the
/// headroom ends, and every pool has 64 bytes after that.
///
/// # Safety
/// `mbuf` is valid.
#[inline(always)]
pub(crate) unsafe fn has_header(mbuf: *const rte_mbuf, len: u16) -> bool {
    // SAFETY: the contract is the caller's.
    unsafe { field::<u16>(mbuf, layout::MBUF_DATA_LEN) >= len }
}

/// `rte_mbuf_refcnt_read`, with acquire ordering: a caller that finds a count of 1 may overwrite
/// bytes that other owners read before they gave up their references (a release, as in
/// `Arc::get_mut`).
///
/// # Safety
/// `mbuf` is valid.
#[inline(always)]
pub(crate) unsafe fn refcnt(mbuf: *const rte_mbuf) -> u16 {
    // SAFETY: the field is only ever accessed atomically.
    unsafe {
        AtomicU16::from_ptr(mbuf.cast::<u8>().add(layout::MBUF_REFCNT).cast_mut().cast())
            .load(Ordering::Acquire)
    }
}

/// `rte_pktmbuf_alloc_bulk`: `n` fresh packets, or none and `false`.
///
/// # Safety
/// `pool` is a pool of mbufs; `mbufs` has room for `n` pointers.
#[inline(always)]
pub(crate) unsafe fn alloc_bulk(
    pool: *mut rte_mempool,
    mbufs: *mut *mut rte_mbuf,
    n: usize,
) -> bool {
    // SAFETY: the contract is the caller's; mbufs from the pool have no other owner.
    unsafe {
        if !mempool::get_bulk(pool, mbufs.cast::<*mut c_void>(), n) {
            return false;
        }
        for index in 0..n {
            reset(*mbufs.add(index));
        }
        true
    }
}

// The fields that `reset` writes as one number are adjacent.
const _: () = {
    assert!(layout::MBUF_PORT == layout::MBUF_NB_SEGS + 2);
    assert!(layout::MBUF_PKT_LEN == layout::MBUF_PACKET_TYPE + 4);
    assert!(layout::MBUF_VLAN_TCI == layout::MBUF_DATA_LEN + 2);
    assert!(layout::MBUF_NB_SEGS % 4 == 0 && layout::MBUF_DATA_LEN % 4 == 0);
    assert!(layout::MBUF_PACKET_TYPE % 8 == 0);
};

/// `nb_segs` 1 and an invalid `port`, in the layout of an mbuf.
const ONE_SEGMENT_OF_NO_PORT: u32 = {
    let ([a, b], [c, d]) = (1u16.to_ne_bytes(), layout::MBUF_PORT_INVALID.to_ne_bytes());
    u32::from_ne_bytes([a, b, c, d])
};

/// `rte_pktmbuf_reset`, in half as many stores. Every buffer of these pools has the full headroom.
#[inline(always)]
unsafe fn reset(mbuf: *mut rte_mbuf) {
    // SAFETY: a fresh mbuf, the caller's own.
    unsafe {
        set_field(mbuf, layout::MBUF_NEXT, std::ptr::null_mut::<rte_mbuf>());
        set_field(mbuf, layout::MBUF_TX_OFFLOAD, 0u64);
        set_field(mbuf, layout::MBUF_VLAN_TCI_OUTER, 0u16);
        set_field(mbuf, layout::MBUF_NB_SEGS, ONE_SEGMENT_OF_NO_PORT);
        let flags: u64 = field(mbuf, layout::MBUF_OL_FLAGS);
        set_field(mbuf, layout::MBUF_OL_FLAGS, flags & layout::MBUF_F_EXTERNAL);
        // The packet's type and length, and the segment's length and VLAN tag.
        set_field(mbuf, layout::MBUF_PACKET_TYPE, 0u64);
        set_field(mbuf, layout::MBUF_DATA_LEN, 0u32);
        set_field(mbuf, layout::MBUF_DATA_OFF, layout::PKTMBUF_HEADROOM);
    }
}

/// `rte_pktmbuf_free`: frees every segment of a packet. Direct segments with no other owner are
/// returned to the pool natively, all others through C.
///
/// # Safety
/// `mbuf` is the first segment of a packet; the caller gives up its reference.
#[inline(always)]
pub(crate) unsafe fn free(mbuf: *mut rte_mbuf) {
    // SAFETY: the contract is the caller's.
    unsafe {
        if !is_plain(mbuf) {
            return free_in_c(mbuf);
        }
        let pool: *mut rte_mempool = field(mbuf, layout::MBUF_POOL);
        let object = mbuf.cast::<c_void>();
        mempool::put_bulk(pool, &raw const object, 1);
    }
}

/// `rte_pktmbuf_free_bulk`: adjacent packets from the same pool are returned together.
///
/// # Safety
/// `mbufs` holds `n` packets whose references the caller gives up.
#[inline]
pub(crate) unsafe fn free_bulk(mbufs: *mut *mut rte_mbuf, n: usize) {
    // The first of the waiting packets, and their pool; null if none wait.
    let (mut first, mut pool) = (0, std::ptr::null_mut::<rte_mempool>());
    // SAFETY: the contract is the caller's; the waiting packets are plain mbufs of `pool`.
    unsafe {
        for index in 0..n {
            let mbuf = *mbufs.add(index);
            let own: *mut rte_mempool = field(mbuf, layout::MBUF_POOL);
            let plain = is_plain(mbuf);
            if plain && own == pool {
                continue;
            }
            if !pool.is_null() {
                mempool::put_bulk(pool, mbufs.add(first).cast(), index - first);
            }
            (first, pool) = (index, own);
            if !plain {
                free_in_c(mbuf);
                pool = std::ptr::null_mut();
            }
        }
        if !pool.is_null() {
            mempool::put_bulk(pool, mbufs.add(first).cast(), n - first);
        }
    }
}

/// Returns true for one direct segment with no other owner: it can return to its pool as it is,
/// because a pool's mbufs have `next` null, `nb_segs` 1 and a count of 1.
#[inline(always)]
unsafe fn is_plain(mbuf: *const rte_mbuf) -> bool {
    // SAFETY: the contract is the caller's.
    unsafe {
        let next: *mut rte_mbuf = field(mbuf, layout::MBUF_NEXT);
        refcnt(mbuf) == 1
            && field::<u16>(mbuf, layout::MBUF_NB_SEGS) == 1
            && next.is_null()
            && field::<u64>(mbuf, layout::MBUF_OL_FLAGS) & SHARED == 0
    }
}

#[cold]
unsafe fn free_in_c(mbuf: *mut rte_mbuf) {
    // SAFETY: the contract is the caller's.
    unsafe { dpdk_sys::lr_pktmbuf_free(mbuf) }
}
