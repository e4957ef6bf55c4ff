// SPDX-License-Identifier: BSD-3-Clause
//! Changes of a packet's shape: `rte_pktmbuf_prepend`, `append`, `adj`, `trim`, `chain`,
//! `linearize`, and the split that DPDK lacks.
//!
//! They differ from C if a driver has reported wrong lengths: bytes outside of a buffer are never
//! returned. Nothing here checks reference counts; the safe callers do. If headers move, or may end
//! after the data, requests to the device about them are withdrawn (see `REQUESTS`).

use std::ptr::{copy_nonoverlapping, null_mut};

use dpdk_sys::{layout, rte_mbuf};

use super::mbuf::{data_len, data_start, field, free, set_field, withdraw_requests};

/// The most segments that a packet can have: its count is 16 bits wide.
const MAX_SEGMENTS: u32 = u16::MAX as u32;

/// The segment after this one; null after the last.
///
/// # Safety
/// `mbuf` is valid.
#[inline(always)]
pub(crate) unsafe fn next(mbuf: *const rte_mbuf) -> *mut rte_mbuf {
    // SAFETY: the contract is the caller's.
    unsafe { field(mbuf, layout::MBUF_NEXT) }
}

/// `rte_pktmbuf_lastseg`.
///
/// # Safety
/// `mbuf` is a valid packet.
#[inline]
pub(crate) unsafe fn last_segment(mut mbuf: *mut rte_mbuf) -> *mut rte_mbuf {
    // SAFETY: each segment of a valid packet is valid.
    unsafe {
        while !next(mbuf).is_null() {
            mbuf = next(mbuf);
        }
        mbuf
    }
}

/// `rte_pktmbuf_headroom`: bytes before the data; 0 if the data would begin after the buffer.
///
/// # Safety
/// `mbuf` is valid.
#[inline]
pub(crate) unsafe fn headroom(mbuf: *const rte_mbuf) -> u16 {
    // SAFETY: the contract is the caller's.
    let (offset, room): (u16, u16) =
        unsafe { (field(mbuf, layout::MBUF_DATA_OFF), field(mbuf, layout::MBUF_BUF_LEN)) };
    if offset <= room { offset } else { 0 }
}

/// `rte_pktmbuf_tailroom` of one segment: bytes after its data; 0 if the driver reports more data
/// than there is.
///
/// # Safety
/// `mbuf` is valid.
#[inline]
pub(crate) unsafe fn tailroom(mbuf: *const rte_mbuf) -> u16 {
    // SAFETY: the contract is the caller's.
    unsafe {
        field::<u16>(mbuf, layout::MBUF_BUF_LEN)
            .saturating_sub(field(mbuf, layout::MBUF_DATA_OFF))
            .saturating_sub(field(mbuf, layout::MBUF_DATA_LEN))
    }
}

/// Adds to a packet's length and to that of one of its segments.
#[inline(always)]
unsafe fn grow(packet: *mut rte_mbuf, segment: *mut rte_mbuf, len: u16) {
    // SAFETY: the caller owns both and has found the room.
    unsafe {
        let data: u16 = field(segment, layout::MBUF_DATA_LEN);
        let whole: u32 = field(packet, layout::MBUF_PKT_LEN);
        set_field(segment, layout::MBUF_DATA_LEN, data.wrapping_add(len));
        set_field(packet, layout::MBUF_PKT_LEN, whole.wrapping_add(u32::from(len)));
    }
}

/// Takes from a packet's length and from that of one of its segments.
#[inline(always)]
unsafe fn shrink(packet: *mut rte_mbuf, segment: *mut rte_mbuf, len: u16) {
    // SAFETY: the caller owns both and has found that many bytes in the segment.
    unsafe {
        let data: u16 = field(segment, layout::MBUF_DATA_LEN);
        let whole: u32 = field(packet, layout::MBUF_PKT_LEN);
        set_field(segment, layout::MBUF_DATA_LEN, data.wrapping_sub(len));
        set_field(packet, layout::MBUF_PKT_LEN, whole.wrapping_sub(u32::from(len)));
    }
}

/// Bytes that a driver reports past the buffer's end: shortening a segment removes them as well,
/// because a segment whose start has moved must not report more bytes than it has (see
/// `has_header`).
///
/// # Safety
/// `mbuf` is valid and `inside` its `data_len`.
#[inline(always)]
unsafe fn outside(mbuf: *const rte_mbuf, inside: usize) -> u16 {
    // SAFETY: the contract is the caller's. `data_len` is never more than the field.
    unsafe { field::<u16>(mbuf, layout::MBUF_DATA_LEN) - inside as u16 }
}

/// `rte_pktmbuf_prepend`: `len` bytes more at the front; null, and nothing changed, if there is no
/// room.
///
/// # Safety
/// `mbuf` is a valid packet whose first mbuf is the caller's alone.
#[inline]
pub(crate) unsafe fn prepend(mbuf: *mut rte_mbuf, len: u16) -> *mut u8 {
    // SAFETY: the contract is the caller's.
    unsafe {
        if len > headroom(mbuf) {
            return null_mut();
        }
        let offset: u16 = field(mbuf, layout::MBUF_DATA_OFF);
        set_field(mbuf, layout::MBUF_DATA_OFF, offset - len);
        grow(mbuf, mbuf, len);
        withdraw_requests(mbuf);
        data_start(mbuf)
    }
}

/// `rte_pktmbuf_append`: `len` bytes more after the last segment's; null, and nothing changed, if
/// there is no room.
///
/// # Safety
/// `mbuf` is a valid packet and `last` its last segment; both mbufs are the caller's alone.
#[inline]
pub(crate) unsafe fn append(mbuf: *mut rte_mbuf, last: *mut rte_mbuf, len: u16) -> *mut u8 {
    // SAFETY: the contract is the caller's.
    unsafe {
        if len > tailroom(last) {
            return null_mut();
        }
        let tail = data_start(last).wrapping_add(data_len(last));
        grow(mbuf, last, len);
        tail
    }
}

/// `rte_pktmbuf_adj`: `len` bytes less at the front; `false`, and nothing changed, if the first
/// segment has fewer.
///
/// # Safety
/// `mbuf` is a valid packet whose first mbuf is the caller's alone.
#[inline]
pub(crate) unsafe fn adj(mbuf: *mut rte_mbuf, len: u16) -> bool {
    // SAFETY: the contract is the caller's. The bytes in the buffer end at 65,535 at most.
    unsafe {
        let inside = data_len(mbuf);
        if usize::from(len) > inside {
            return false;
        }
        let outside = outside(mbuf, inside);
        let offset: u16 = field(mbuf, layout::MBUF_DATA_OFF);
        set_field(mbuf, layout::MBUF_DATA_OFF, offset.wrapping_add(len));
        shrink(mbuf, mbuf, outside + len);
        withdraw_requests(mbuf);
        true
    }
}

/// `rte_pktmbuf_trim`: `len` bytes less at the end; `false`, and nothing changed, if the last
/// segment has fewer.
///
/// # Safety
/// `mbuf` is a valid packet and `last` its last segment; both mbufs are the caller's alone.
#[inline]
pub(crate) unsafe fn trim(mbuf: *mut rte_mbuf, last: *mut rte_mbuf, len: u16) -> bool {
    // SAFETY: the contract is the caller's.
    unsafe {
        let inside = data_len(last);
        if usize::from(len) > inside {
            return false;
        }
        shrink(mbuf, last, outside(last, inside) + len);
        withdraw_requests(mbuf);
        true
    }
}

/// `rte_pktmbuf_chain`: appends `tail` after `last`; `false`, and nothing changed, if there would
/// be too many segments.
///
/// # Safety
/// `head` and `tail` are valid packets and `last` is the last segment of `head`; the three mbufs are
/// the caller's alone. On success `tail` belongs to `head`.
#[inline]
pub(crate) unsafe fn chain(head: *mut rte_mbuf, last: *mut rte_mbuf, tail: *mut rte_mbuf) -> bool {
    // SAFETY: the contract is the caller's.
    unsafe {
        let segments = u32::from(field::<u16>(head, layout::MBUF_NB_SEGS))
            + u32::from(field::<u16>(tail, layout::MBUF_NB_SEGS));
        if segments > MAX_SEGMENTS {
            return false;
        }
        set_field(last, layout::MBUF_NEXT, tail);
        set_field(head, layout::MBUF_NB_SEGS, segments as u16);
        let whole: u32 = field(head, layout::MBUF_PKT_LEN);
        let more: u32 = field(tail, layout::MBUF_PKT_LEN);
        set_field(head, layout::MBUF_PKT_LEN, whole.wrapping_add(more));
        let data: u16 = field(tail, layout::MBUF_DATA_LEN);
        set_field(tail, layout::MBUF_PKT_LEN, u32::from(data));
        withdraw_requests(tail);
        true
    }
}

/// Undoes a [`chain`]: `tail`, the segment after `last`, becomes a packet of its own, as long as its
/// segments say.
///
/// # Safety
/// `head` is a valid packet, `last` one of its segments and `tail` the next; the three mbufs are the
/// caller's alone. `tail` is the caller's afterwards.
#[inline]
pub(crate) unsafe fn split(head: *mut rte_mbuf, last: *mut rte_mbuf, tail: *mut rte_mbuf) {
    // SAFETY: the contract is the caller's.
    unsafe {
        let (mut segments, mut len) = (0u16, 0u32);
        let mut segment = tail;
        while !segment.is_null() {
            segments = segments.wrapping_add(1);
            len = len.wrapping_add(u32::from(field::<u16>(segment, layout::MBUF_DATA_LEN)));
            segment = next(segment);
        }
        set_field(tail, layout::MBUF_NB_SEGS, segments);
        set_field(tail, layout::MBUF_PKT_LEN, len);
        let all: u16 = field(head, layout::MBUF_NB_SEGS);
        let whole: u32 = field(head, layout::MBUF_PKT_LEN);
        set_field(head, layout::MBUF_NB_SEGS, all.wrapping_sub(segments));
        set_field(head, layout::MBUF_PKT_LEN, whole.wrapping_sub(len));
        set_field(last, layout::MBUF_NEXT, null_mut::<rte_mbuf>());
    }
}

/// `rte_pktmbuf_linearize`: moves all data into the first segment and frees the others; `false`,
/// and nothing changed, if its tail room is too small.
///
/// # Safety
/// `mbuf` is a valid packet whose first mbuf and its bytes are the caller's alone.
pub(crate) unsafe fn linearize(mbuf: *mut rte_mbuf) -> bool {
    // SAFETY: the contract is the caller's. Each copy ends inside the buffer, whose tail room is at
    // least the sum of what is copied; segments do not overlap the first, whose bytes are not shared.
    unsafe {
        let tail = next(mbuf);
        let mut more = 0;
        let mut segment = tail;
        while !segment.is_null() {
            more += data_len(segment);
            segment = next(segment);
        }
        if more > usize::from(tailroom(mbuf)) {
            return false;
        }
        let mut to = data_start(mbuf).add(data_len(mbuf));
        segment = tail;
        while !segment.is_null() {
            let len = data_len(segment);
            copy_nonoverlapping(data_start(segment), to, len);
            to = to.add(len);
            segment = next(segment);
        }
        let len = data_len(mbuf) + more;
        set_field(mbuf, layout::MBUF_DATA_LEN, len as u16);
        set_field(mbuf, layout::MBUF_PKT_LEN, len as u32);
        set_field(mbuf, layout::MBUF_NB_SEGS, 1u16);
        set_field(mbuf, layout::MBUF_NEXT, null_mut::<rte_mbuf>());
        if !tail.is_null() {
            free(tail);
        }
        true
    }
}
