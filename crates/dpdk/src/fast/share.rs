// SPDX-License-Identifier: BSD-3-Clause
//! Several owners of the same bytes: `rte_pktmbuf_refcnt_update`, `rte_pktmbuf_attach`,
//! `rte_pktmbuf_attach_extbuf` and `rte_pktmbuf_clone`; a part of a packet, which DPDK lacks; and
//! the fields that clones and copies take over.
//!
//! They differ from C in three ways. Two are because callers hold `&self`: a count of 1 is raised
//! by an atomic addition too (C stores 2, so two threads that share one owner would lose a count),
//! and no count is raised beyond [`MAX_OWNERS`] (C lets its 16 bits overflow). And clones and
//! copies are made without [`REQUESTS`] to the sending device: a driver would write into bytes that
//! others read.

use std::ptr::{copy_nonoverlapping, null_mut};
use std::sync::atomic::{AtomicU16, Ordering};

use dpdk_sys::{layout, rte_mbuf, rte_mbuf_ext_shared_info, rte_mempool};

use super::mbuf::{REQUESTS, SHARED, alloc_bulk, data_len, field, free, set_field};
use super::shape::next;

/// Half of the counter's range: threads that raise it at the same moment overshoot by one each.
const MAX_OWNERS: u16 = u16::MAX / 2;

/// Why nothing was shared; nothing was changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refused {
    /// The pool has too few mbufs.
    Exhausted,
    /// A count is at its limit.
    TooManyOwners,
}

/// The reference count of an mbuf.
///
/// # Safety
/// `mbuf` is valid for `'a`.
unsafe fn count<'a>(mbuf: *mut rte_mbuf) -> &'a AtomicU16 {
    // SAFETY: the field is aligned and only ever accessed atomically.
    unsafe { AtomicU16::from_ptr(mbuf.cast::<u8>().add(layout::MBUF_REFCNT).cast()) }
}

/// Adds an owner. Relaxed, as in `Arc::clone`: the caller already is an owner.
fn raise(count: &AtomicU16) -> Result<(), Refused> {
    if count.fetch_add(1, Ordering::Relaxed) < MAX_OWNERS {
        return Ok(());
    }
    count.fetch_sub(1, Ordering::Relaxed);
    Err(Refused::TooManyOwners)
}

/// `rte_pktmbuf_refcnt_update(mbuf, 1)`: one more owner of every segment, or of none.
///
/// # Safety
/// `mbuf` is a valid packet that the caller owns a reference to. On success there is one more,
/// which must be given up later.
pub(crate) unsafe fn add_owner(mbuf: *mut rte_mbuf) -> Result<(), Refused> {
    // SAFETY: each segment of a valid packet is valid. Lowering ends at the segment that refused;
    // the caller's own reference keeps each count above 0.
    unsafe {
        let mut segment = mbuf;
        while !segment.is_null() {
            if let Err(refused) = raise(count(segment)) {
                let mut raised = mbuf;
                while raised != segment {
                    count(raised).fetch_sub(1, Ordering::Relaxed);
                    raised = next(raised);
                }
                return Err(refused);
            }
            segment = next(segment);
        }
        Ok(())
    }
}

/// `rte_pktmbuf_clone`: a new packet of mbufs from `pool` whose segments share the bytes of `mbuf`'s,
/// or none.
///
/// # Safety
/// `mbuf` is a valid packet that the caller owns a reference to and nobody changes meanwhile; `pool` is
/// a pool of mbufs with buffers of their own. The clone is the caller's.
pub(crate) unsafe fn clone(
    mbuf: *mut rte_mbuf,
    pool: *mut rte_mempool,
) -> Result<*mut rte_mbuf, Refused> {
    // SAFETY: the contract is the caller's; what comes out of the pool is nobody else's. The clone is a
    // whole packet after each step, so that it can be freed.
    unsafe {
        let head = attached(mbuf, pool)?;
        let (mut last, mut segments) = (head, 1u16);
        let mut segment = next(mbuf);
        while !segment.is_null() {
            match attached(segment, pool) {
                Ok(clone) => set_field(last, layout::MBUF_NEXT, clone),
                Err(refused) => {
                    free(head);
                    return Err(refused);
                }
            }
            last = next(last);
            segments = segments.wrapping_add(1);
            set_field(head, layout::MBUF_NB_SEGS, segments);
            segment = next(segment);
        }
        let len: u32 = field(mbuf, layout::MBUF_PKT_LEN);
        set_field(head, layout::MBUF_PKT_LEN, len);
        Ok(head)
    }
}

/// A fresh mbuf that shares the bytes of one segment.
unsafe fn attached(mbuf: *mut rte_mbuf, pool: *mut rte_mempool) -> Result<*mut rte_mbuf, Refused> {
    let mut fresh = null_mut();
    // SAFETY: the contract is `clone`'s; there is room for one pointer.
    unsafe {
        if !alloc_bulk(pool, &raw mut fresh, 1) {
            return Err(Refused::Exhausted);
        }
        if let Err(refused) = attach(fresh, mbuf) {
            free(fresh);
            return Err(refused);
        }
    }
    Ok(fresh)
}

/// `rte_pktmbuf_attach`: `clone` shares the buffer of `mbuf` from here on.
///
/// # Safety
/// As [`attach_bytes`].
unsafe fn attach(clone: *mut rte_mbuf, mbuf: *mut rte_mbuf) -> Result<(), Refused> {
    // SAFETY: the contract is the caller's.
    unsafe {
        attach_bytes(clone, mbuf)?;
        copy_metadata(clone, mbuf);
        let len: u16 = field(clone, layout::MBUF_DATA_LEN);
        set_field(clone, layout::MBUF_PKT_LEN, u32::from(len));
        Ok(())
    }
}

/// The part of `rte_pktmbuf_attach` that sets where the bytes are, and who owns them.
///
/// # Safety
/// `clone` is a fresh mbuf with a buffer of its own, the caller's alone; `mbuf` is a valid segment that
/// the caller owns a reference to and nobody changes meanwhile.
unsafe fn attach_bytes(clone: *mut rte_mbuf, mbuf: *mut rte_mbuf) -> Result<(), Refused> {
    // SAFETY: the contract is the caller's; a reference to a segment keeps the owner of its bytes
    // alive. Fields are copied whole, between different mbufs.
    unsafe {
        let shared = if field::<u64>(mbuf, layout::MBUF_OL_FLAGS) & layout::MBUF_F_EXTERNAL != 0 {
            let shared: *mut u8 = field(mbuf, layout::MBUF_SHINFO);
            raise(AtomicU16::from_ptr(shared.add(layout::SHINFO_REFCNT).cast()))?;
            set_field(clone, layout::MBUF_SHINFO, shared);
            layout::MBUF_F_EXTERNAL
        } else {
            raise(count(direct(mbuf)))?;
            copy(clone, mbuf, layout::MBUF_PRIV_SIZE, size_of::<u16>());
            layout::MBUF_F_INDIRECT
        };
        set_field(clone, layout::MBUF_OL_FLAGS, shared);
        for (offset, bytes) in [
            (layout::MBUF_IOVA, layout::MBUF_IOVA_SIZE),
            (layout::MBUF_DATA_OFF, size_of::<u16>()),
            (layout::MBUF_DATA_LEN, size_of::<u16>()),
            (layout::MBUF_BUF_ADDR, size_of::<*mut u8>()),
            (layout::MBUF_BUF_LEN, size_of::<u16>()),
        ] {
            copy(clone, mbuf, offset, bytes);
        }
        Ok(())
    }
}

/// One more owner of bytes outside of all mbufs (`rte_mbuf_ext_refcnt_update`).
///
/// # Safety
/// `shared` is valid, and the caller owns a reference to it. On success there is one more.
pub(crate) unsafe fn add_external_owner(
    shared: *mut rte_mbuf_ext_shared_info,
) -> Result<(), Refused> {
    // SAFETY: the contract is the caller's; the field is only ever accessed atomically.
    unsafe { raise(AtomicU16::from_ptr(shared.cast::<u8>().add(layout::SHINFO_REFCNT).cast())) }
}

/// Removes one owner. Returns true if it was the last, whose task is to call the function that
/// frees the bytes.
///
/// # Safety
/// `shared` is valid, and the caller gives up a reference to it.
pub(crate) unsafe fn drop_external_owner(shared: *mut rte_mbuf_ext_shared_info) -> bool {
    // SAFETY: as above. As in `Arc`: all accesses of other owners happen before the bytes are
    // freed.
    unsafe {
        AtomicU16::from_ptr(shared.cast::<u8>().add(layout::SHINFO_REFCNT).cast())
            .fetch_sub(1, Ordering::AcqRel)
            == 1
    }
}

/// `rte_pktmbuf_attach_extbuf` and `rte_pktmbuf_append` of all bytes: a packet of `len` bytes
/// outside of all mbufs.
///
/// # Safety
/// `mbuf` is a fresh mbuf with a buffer of its own, the caller's alone. `len` bytes lie at `bytes`, where devices
/// find them at `iova`, for as long as `shared` is owned; the reference given up here is the mbuf's.
pub(crate) unsafe fn attach_external(
    mbuf: *mut rte_mbuf,
    shared: *mut rte_mbuf_ext_shared_info,
    bytes: *const u8,
    iova: u64,
    len: u16,
) {
    // SAFETY: the contract is the caller's.
    unsafe {
        set_field(mbuf, layout::MBUF_BUF_ADDR, bytes);
        if layout::MBUF_IOVA_SIZE != 0 {
            set_field(mbuf, layout::MBUF_IOVA, iova);
        }
        set_field(mbuf, layout::MBUF_BUF_LEN, len);
        set_field(mbuf, layout::MBUF_DATA_OFF, 0u16);
        set_field(mbuf, layout::MBUF_DATA_LEN, len);
        set_field(mbuf, layout::MBUF_PKT_LEN, u32::from(len));
        let flags: u64 = field(mbuf, layout::MBUF_OL_FLAGS);
        set_field(mbuf, layout::MBUF_OL_FLAGS, flags | layout::MBUF_F_EXTERNAL);
        set_field(mbuf, layout::MBUF_SHINFO, shared);
    }
}

/// A new packet of mbufs from `pool` that shares `len` bytes of a packet after the first `skip`; or
/// none. It takes over the fields that [`copy_metadata`] copies.
///
/// # Safety
/// As [`clone`]; and the segments have `skip + len` bytes together, `len` of at least 1.
pub(crate) unsafe fn part(
    mbuf: *mut rte_mbuf,
    pool: *mut rte_mempool,
    mut skip: usize,
    len: usize,
) -> Result<*mut rte_mbuf, Refused> {
    // SAFETY: the contract is the caller's; what comes out of the pool is nobody else's. What was made so
    // far is a whole packet after each step, so that it can be freed.
    unsafe {
        let (mut head, mut last) = (null_mut::<rte_mbuf>(), null_mut::<rte_mbuf>());
        let (mut left, mut segments) = (len, 0u16);
        let mut segment = mbuf;
        while left > 0 && !segment.is_null() {
            let inside = data_len(segment);
            if skip < inside {
                let bytes = (inside - skip).min(left);
                let piece = match bytes_of(segment, pool, skip as u16, bytes as u16) {
                    Ok(piece) => piece,
                    Err(refused) => {
                        if !head.is_null() {
                            free(head);
                        }
                        return Err(refused);
                    }
                };
                if head.is_null() {
                    head = piece;
                } else {
                    set_field(last, layout::MBUF_NEXT, piece);
                }
                last = piece;
                segments = segments.wrapping_add(1);
                set_field(head, layout::MBUF_NB_SEGS, segments);
                left -= bytes;
            }
            skip = skip.saturating_sub(inside);
            segment = next(segment);
        }
        copy_metadata(head, mbuf);
        set_field(head, layout::MBUF_PKT_LEN, len as u32);
        Ok(head)
    }
}

/// A fresh mbuf that shares `len` bytes of a segment from `skip` on, which it has.
unsafe fn bytes_of(
    segment: *mut rte_mbuf,
    pool: *mut rte_mempool,
    skip: u16,
    len: u16,
) -> Result<*mut rte_mbuf, Refused> {
    let mut fresh = null_mut();
    // SAFETY: the contract is `part`'s; there is room for one pointer. Bytes inside a buffer lie at less than
    // 65,536.
    unsafe {
        if !alloc_bulk(pool, &raw mut fresh, 1) {
            return Err(Refused::Exhausted);
        }
        if let Err(refused) = attach_bytes(fresh, segment) {
            free(fresh);
            return Err(refused);
        }
        let offset: u16 = field(fresh, layout::MBUF_DATA_OFF);
        set_field(fresh, layout::MBUF_DATA_OFF, offset + skip);
        set_field(fresh, layout::MBUF_DATA_LEN, len);
        set_field(fresh, layout::MBUF_PKT_LEN, u32::from(len));
    }
    Ok(fresh)
}

/// Copies everything that `rte_pktmbuf_copy` copies from a packet besides its bytes, without
/// requests.
///
/// # Safety
/// Both mbufs are valid and different, and `to` is the caller's alone.
pub(crate) unsafe fn copy_metadata(to: *mut rte_mbuf, from: *const rte_mbuf) {
    // SAFETY: the contract is the caller's.
    unsafe {
        copy_fields(to, from);
        let own: u64 = field(to, layout::MBUF_OL_FLAGS);
        let flags: u64 = field(from, layout::MBUF_OL_FLAGS);
        set_field(to, layout::MBUF_OL_FLAGS, flags & !(SHARED | REQUESTS) | own & SHARED);
    }
}

/// `__rte_pktmbuf_copy_hdr`.
unsafe fn copy_fields(to: *mut rte_mbuf, from: *const rte_mbuf) {
    for (offset, bytes) in [
        (layout::MBUF_PORT, size_of::<u16>()),
        (layout::MBUF_VLAN_TCI, size_of::<u16>()),
        (layout::MBUF_VLAN_TCI_OUTER, size_of::<u16>()),
        (layout::MBUF_TX_OFFLOAD, size_of::<u64>()),
        (layout::MBUF_HASH, layout::MBUF_HASH_SIZE),
        (layout::MBUF_PACKET_TYPE, size_of::<u32>()),
        (layout::MBUF_DYNFIELD1, layout::MBUF_DYNFIELD1_SIZE),
        (layout::MBUF_DYNFIELD2, layout::MBUF_DYNFIELD2_SIZE),
    ] {
        // SAFETY: the contract is `copy_metadata`'s.
        unsafe { copy(to, from, offset, bytes) };
    }
}

/// Copies one field, or several that lie together.
#[inline(always)]
unsafe fn copy(to: *mut rte_mbuf, from: *const rte_mbuf, offset: usize, bytes: usize) {
    // SAFETY: the caller passes the place of a field, and two mbufs of which it may write the first.
    unsafe {
        copy_nonoverlapping(from.cast::<u8>().add(offset), to.cast::<u8>().add(offset), bytes);
    }
}

/// `rte_mbuf_from_indirect`: the mbuf whose buffer this one uses; itself when that is its own.
unsafe fn direct(mbuf: *const rte_mbuf) -> *mut rte_mbuf {
    // SAFETY: the caller's mbuf is valid; a buffer lies behind its mbuf and that one's private area,
    // whose size a clone has copied.
    unsafe {
        field::<*mut u8>(mbuf, layout::MBUF_BUF_ADDR)
            .sub(usize::from(field::<u16>(mbuf, layout::MBUF_PRIV_SIZE)) + layout::MBUF_SIZE)
            .cast()
    }
}
