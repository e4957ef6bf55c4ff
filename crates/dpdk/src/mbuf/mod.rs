// SPDX-License-Identifier: BSD-3-Clause
//! One packet: an owned mbuf, freed on drop.
//!
//! An [`Mbuf`] owns one reference to its packet. Drivers may deliver packets whose bytes have other
//! owners too (clones, external buffers). So methods that write check the reference count and
//! refuse: shared bytes can only be read. [`SharedMbuf`] is a packet that was given several owners
//! on purpose.
//!
//! A received packet must be freed or sent before its port stops; an allocated one may be kept as
//! long as the [`Eal`](crate::Eal) lives. The memory of both stays valid as long as the Eal: a
//! packet may wait in another port's ring after the port that received it has stopped.
//! ```compile_fail,E0505
//! fn outlive<'eal>(eal: dpdk::Eal) {
//!     let pool = dpdk::Mempool::packet_pool(&eal, &dpdk::PoolConfig::named("p")).unwrap();
//!     let mbuf = pool.alloc();
//!     drop(eal);
//!     drop(mbuf);
//! }
//! ```

mod alloc;
mod copy;
mod external;
mod foreign;
mod heap;
mod offload;
mod packet_type;
mod part;
mod received;
mod room;
mod segments;
mod shared;

use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;

use dpdk_sys::{layout, rte_mbuf, rte_mempool};

use crate::fast;
use crate::fast::mbuf::field;
use crate::mempool::LEAST_DATA;

pub use external::ExternalBuffer;
pub use foreign::{ForeignError, ForeignMemory};
pub use heap::{HeapBuffer, HeapError};
pub use offload::{IpOffload, L4Offload, OffloadError, TxOffload};
pub use packet_type::{L2Type, L3Type, L4Type, PacketType, TunnelType};
pub use part::PartError;
pub use received::Checksum;
pub use shared::{ShareError, SharedMbuf};

/// A packet. `'m` is the time for which its pool and the port it came from live.
#[repr(transparent)]
pub struct Mbuf<'m> {
    raw: NonNull<rte_mbuf>,
    pool: PhantomData<&'m ()>,
}

// SAFETY: an mbuf may be used and freed on any thread; the reference count is atomic and the pool is
// thread-safe. It is not Sync-relevant: `&Mbuf` only reads what no other owner may write.
unsafe impl Send for Mbuf<'_> {}
// SAFETY: as above.
unsafe impl Sync for Mbuf<'_> {}

impl<'m> Mbuf<'m> {
    /// # Safety
    /// `raw` is the first segment of a packet, valid for `'m`, and the caller owns a reference to it
    /// that it gives up.
    #[inline]
    pub(crate) unsafe fn from_raw(raw: NonNull<rte_mbuf>) -> Self {
        Self { raw, pool: PhantomData }
    }

    #[inline]
    pub(crate) fn as_ptr(&self) -> *mut rte_mbuf {
        self.raw.as_ptr()
    }

    /// Bytes of the whole packet, all segments together, without the FCS (`rte_pktmbuf_pkt_len`).
    #[inline]
    #[must_use]
    pub fn packet_len(&self) -> usize {
        // SAFETY: the mbuf is valid.
        unsafe { field::<u32>(self.as_ptr(), layout::MBUF_PKT_LEN) as usize }
    }

    /// Number of segments that the packet consists of.
    #[inline]
    #[must_use]
    pub fn segments(&self) -> usize {
        // SAFETY: the mbuf is valid.
        usize::from(unsafe { field::<u16>(self.as_ptr(), layout::MBUF_NB_SEGS) })
    }

    /// Number of the port that received it; `None` for a packet that was not received.
    #[inline]
    #[must_use]
    pub fn port(&self) -> Option<u16> {
        // SAFETY: the mbuf is valid.
        let port = unsafe { field::<u16>(self.as_ptr(), layout::MBUF_PORT) };
        (port != layout::MBUF_PORT_INVALID).then_some(port)
    }

    /// Prefetches the packet's first bytes (`rte_prefetch0`). Does nothing on processors other than
    /// x86_64 and aarch64.
    #[inline(always)]
    pub fn prefetch(&self) {
        fast::prefetch::prefetch(self.start());
    }

    /// Sets the packet's port number. Forwarders store there, between a lookup and
    /// [`TxQueue::send`](crate::TxQueue::send), the port that the packet is to leave by. Drivers do
    /// not read it.
    #[inline]
    pub fn set_port(&mut self, port: u16) {
        // SAFETY: the mbuf is valid, and its first segment is this owner's.
        unsafe { fast::mbuf::set_field(self.as_ptr(), layout::MBUF_PORT, port) }
    }

    /// The bytes of the first segment; the whole packet when [`segments`](Self::segments) is 1 (`rte_pktmbuf_mtod`).
    #[inline]
    #[must_use]
    pub fn data(&self) -> &[u8] {
        // The buffer is initialised: DPDK's memory is zeroed by the kernel when it is mapped and by DPDK
        // when it is given back. Drivers have been seen to claim more bytes than it has.
        // SAFETY: the bytes lie inside the segment's buffer (`fast::mbuf::data_len` sees to that), and
        // nobody writes to it: a shared buffer is written by none of its owners, an unshared one only
        // through `&mut self`.
        unsafe { std::slice::from_raw_parts(self.start(), self.data_len()) }
    }

    /// Returns the address of the byte at `offset`, if the first segment has `len` bytes from there
    /// on.
    #[inline]
    pub(crate) fn bytes_at(&self, offset: usize, len: usize) -> Option<*const u8> {
        let end = offset.checked_add(len)?;
        let has_them = if end <= usize::from(LEAST_DATA) {
            // SAFETY: the mbuf is valid.
            unsafe { fast::mbuf::has_header(self.as_ptr(), end as u16) }
        } else {
            end <= self.data_len()
        };
        has_them.then(|| self.start().wrapping_add(offset).cast_const())
    }

    /// The bytes of each segment in turn (`rte_pktmbuf_data_len`).
    pub fn segment_data(&self) -> impl Iterator<Item = &[u8]> {
        let mut next = Some(self.raw);
        std::iter::from_fn(move || {
            let segment = next?.as_ptr();
            // SAFETY: each segment of a valid packet is valid as long as the packet; see `data`.
            unsafe {
                next = NonNull::new(field::<*mut rte_mbuf>(segment, layout::MBUF_NEXT));
                Some(std::slice::from_raw_parts(
                    fast::mbuf::data_start(segment),
                    fast::mbuf::data_len(segment),
                ))
            }
        })
    }

    /// Returns true if this is the only owner of the first segment and of its bytes.
    #[inline]
    #[must_use]
    pub fn is_unshared(&self) -> bool {
        // SAFETY: the mbuf is valid.
        unsafe { is_unshared(self.as_ptr()) }
    }

    /// Returns true if the bytes of the first segment are in the mbuf's own buffer
    /// (`RTE_MBUF_DIRECT`).
    pub(crate) fn is_of_own_buffer(&self) -> bool {
        // SAFETY: the mbuf is valid.
        unsafe { is_direct(self.as_ptr()) }
    }

    /// Returns true if all segments are from one pool, in their own buffers, and fit behind the
    /// usual headroom.
    pub(crate) fn is_of_one_pool(&self) -> bool {
        let mut next = Some(self.raw);
        // SAFETY: each segment of a valid packet is valid as long as the packet.
        unsafe {
            let pool: *const rte_mempool = field(self.as_ptr(), layout::MBUF_POOL);
            let room: u16 = field(self.as_ptr(), layout::MBUF_BUF_LEN);
            let most = usize::from(room.saturating_sub(layout::PKTMBUF_HEADROOM));
            while let Some(segment) = next {
                let segment = segment.as_ptr();
                if !is_direct(segment)
                    || field::<*const rte_mempool>(segment, layout::MBUF_POOL) != pool
                    || fast::mbuf::data_len(segment) > most
                {
                    return false;
                }
                next = NonNull::new(field::<*mut rte_mbuf>(segment, layout::MBUF_NEXT));
            }
        }
        true
    }

    /// Returns true if this is the only owner of the first mbuf, even if others see its bytes.
    #[inline]
    fn is_sole_owner(&self) -> bool {
        // SAFETY: the mbuf is valid.
        unsafe { is_sole_owner(self.as_ptr()) }
    }

    /// The bytes of the first segment for writing (`rte_pktmbuf_mtod`); `None` if another owner can
    /// see them.
    #[inline]
    #[must_use]
    pub fn data_mut(&mut self) -> Option<&mut [u8]> {
        // SAFETY: as in `data`; unshared, so this borrow is the only way to the bytes.
        self.is_unshared()
            .then(|| unsafe { std::slice::from_raw_parts_mut(self.start(), self.data_len()) })
    }

    /// The first `N` bytes, 64 at most (`rte_pktmbuf_mtod_offset`); `None` when the first segment is shorter. Cheaper than
    /// [`data`](Self::data), which has to find the end.
    #[inline]
    #[must_use]
    pub fn header<const N: usize>(&self) -> Option<&[u8; N]> {
        const { assert!(N <= 64, "a header is 64 bytes long at most") };
        // SAFETY: the mbuf is valid.
        if !unsafe { fast::mbuf::has_header(self.as_ptr(), N as u16) } {
            return None;
        }
        // SAFETY: the segment has that many bytes, which lie in its buffer (see `has_header`), and that is not
        // at address 0; it is initialised, and nobody writes there (see `data`).
        unsafe {
            let start = self.start();
            std::hint::assert_unchecked(!start.is_null());
            Some(&*start.cast())
        }
    }

    /// The first `N` bytes for writing, 64 at most (`rte_pktmbuf_mtod_offset`); `None` if another
    /// owner can see them or the first segment is shorter. Cheaper than
    /// [`data_mut`](Self::data_mut), which has to find the end.
    #[inline]
    #[must_use]
    pub fn header_mut<const N: usize>(&mut self) -> Option<&mut [u8; N]> {
        const { assert!(N <= 64, "a header is 64 bytes long at most") };
        // SAFETY: the mbuf is valid.
        if !unsafe { fast::headers::is_own(self.as_ptr(), N as u16) } {
            return None;
        }
        // SAFETY: just asked, and this borrow is the only way to the bytes.
        Some(unsafe { header(self.as_ptr()) })
    }

    /// [`header_mut`](Self::header_mut) of each of `K` packets, in order. `None` if it would be
    /// `None` for one of them; possibly also if a first segment has 32,768 bytes or more. All
    /// packets are checked together, with a quarter of the instructions: take them in groups of
    /// four or eight, as [`chunks_exact_mut`](slice::chunks_exact_mut) gives them.
    ///
    /// ```
    /// fn set_destination(packets: &mut [dpdk::Mbuf<'_>; 4], address: [u8; 6]) -> bool {
    ///     let Some(headers) = dpdk::Mbuf::headers_mut::<6, 4>(packets) else { return false };
    ///     headers.for_each(|header| *header = address);
    ///     true
    /// }
    /// ```
    #[inline]
    #[must_use]
    pub fn headers_mut<const N: usize, const K: usize>(
        mbufs: &mut [Self; K],
    ) -> Option<impl ExactSizeIterator<Item = &mut [u8; N]>> {
        const { assert!(N <= 64, "a header is 64 bytes long at most") };
        const { assert!(K > 0, "a group has one packet or more") };
        let raw = mbufs.each_ref().map(Self::as_ptr);
        // SAFETY: the mbufs are valid and ours.
        if !unsafe { fast::headers::all_own(&raw, N as u16) } {
            return None;
        }
        // SAFETY: just asked of each; the array's borrow is the only way to their bytes, and no two have
        // the same, for then they would be shared.
        Some(raw.into_iter().map(|mbuf| unsafe { header(mbuf) }))
    }

    /// Sets the length of an unshared packet of one segment to `len` bytes, and returns them, with
    /// arbitrary content. `None` if it is shared, has several segments, or its buffer is too small.
    #[inline]
    #[must_use]
    pub fn resize(&mut self, len: usize) -> Option<&mut [u8]> {
        // SAFETY: the mbuf is valid.
        let (offset, room) = unsafe {
            (
                usize::from(field::<u16>(self.as_ptr(), layout::MBUF_DATA_OFF)),
                usize::from(field::<u16>(self.as_ptr(), layout::MBUF_BUF_LEN)),
            )
        };
        if !self.is_unshared() || self.segments() != 1 || len > room.saturating_sub(offset) {
            return None;
        }
        // SAFETY: unshared, and data_off + len <= buf_len, so len fits 16 bits and the bytes lie in the
        // buffer, which is initialised (see `data`).
        unsafe {
            fast::mbuf::set_field(self.as_ptr(), layout::MBUF_DATA_LEN, len as u16);
            fast::mbuf::set_field(self.as_ptr(), layout::MBUF_PKT_LEN, len as u32);
            fast::mbuf::withdraw_requests(self.as_ptr());
            Some(std::slice::from_raw_parts_mut(self.start(), len))
        }
    }

    /// Frees several packets. Adjacent ones from the same pool return to it together
    /// (`rte_pktmbuf_free_bulk`), as those of a [`Burst`](crate::Burst) do.
    #[inline]
    pub fn free_array<const N: usize>(mbufs: [Self; N]) {
        let mut mbufs = std::mem::ManuallyDrop::new(mbufs);
        // SAFETY: an array of mbufs is one of pointers to them; their references are ours and end here.
        unsafe { fast::mbuf::free_bulk(mbufs.as_mut_ptr().cast(), N) };
    }

    #[inline]
    fn start(&self) -> *mut u8 {
        // SAFETY: the mbuf is valid.
        unsafe { fast::mbuf::data_start(self.as_ptr()) }
    }

    #[inline]
    fn data_len(&self) -> usize {
        // SAFETY: the mbuf is valid.
        unsafe { fast::mbuf::data_len(self.as_ptr()) }
    }
}

#[cfg(feature = "packet")]
impl packet::writer::Buffer for Mbuf<'_> {
    #[inline]
    fn resize(&mut self, len: usize) -> Option<&mut [u8]> {
        Mbuf::resize(self, len)
    }
}

/// Prints what kind of packet it is, not its content.
impl fmt::Debug for Mbuf<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mbuf")
            .field("packet_len", &self.packet_len())
            .field("segments", &self.segments())
            .field("port", &self.port())
            .field("packet_type", &self.packet_type())
            .finish_non_exhaustive()
    }
}

impl Drop for Mbuf<'_> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: this reference is ours and ends here.
        unsafe { fast::mbuf::free(self.as_ptr()) };
    }
}

/// The first `N` bytes of a packet.
///
/// # Safety
/// `fast::headers::is_own` was true of the mbuf and `N`, and nothing else refers to the bytes for `'m`.
#[inline(always)]
unsafe fn header<'m, const N: usize>(mbuf: *const rte_mbuf) -> &'m mut [u8; N] {
    // SAFETY: the segment has that many bytes, which lie in its buffer (see `has_header`), and that is
    // not at address 0; it is initialised (see `data`).
    unsafe {
        let start = fast::mbuf::data_start(mbuf);
        std::hint::assert_unchecked(!start.is_null());
        &mut *start.cast()
    }
}

/// Returns true if a segment and its bytes have only one owner.
///
/// # Safety
/// `segment` is valid and the caller owns a reference to it.
#[inline]
unsafe fn is_unshared(segment: *const rte_mbuf) -> bool {
    // SAFETY: the contract is the caller's.
    unsafe { is_sole_owner(segment) && is_direct(segment) }
}

/// Returns true if a segment's bytes are in its own buffer.
///
/// # Safety
/// `segment` points to a valid mbuf.
#[inline]
unsafe fn is_direct(segment: *const rte_mbuf) -> bool {
    // SAFETY: the contract is the caller's.
    unsafe { field::<u64>(segment, layout::MBUF_OL_FLAGS) & fast::mbuf::SHARED == 0 }
}

/// Returns true if a segment has only one owner, which may change the mbuf, but not necessarily the
/// bytes. A count of 1 is ours, because only an owner can add another, and none can be added
/// through a `&mut Mbuf`.
///
/// # Safety
/// `segment` is valid and the caller owns a reference to it.
#[inline]
unsafe fn is_sole_owner(segment: *const rte_mbuf) -> bool {
    // SAFETY: the contract is the caller's.
    unsafe { fast::mbuf::refcnt(segment) == 1 }
}
