// SPDX-License-Identifier: BSD-3-Clause
//! Adding and removing bytes at a packet's ends.
//!
//! A packet can grow only into room that no other owner can see: a clone shares the head room and
//! tail room of the packet that it was made from. Removing bytes changes the mbuf and not its
//! buffer, so a clone can be shortened without an effect on the others.

use std::ptr::null_mut;

use super::Mbuf;
use crate::fast::{headers, mbuf, shape};

impl Mbuf<'_> {
    /// Bytes of room before the data (`rte_pktmbuf_headroom`). Other owners may see them.
    #[inline]
    #[must_use]
    pub fn headroom(&self) -> usize {
        // SAFETY: the mbuf is valid.
        usize::from(unsafe { shape::headroom(self.as_ptr()) })
    }

    /// Bytes of room behind the data of the last segment (`rte_pktmbuf_tailroom` of that segment).
    #[inline]
    #[must_use]
    pub fn tailroom(&self) -> usize {
        // SAFETY: the packet is valid.
        usize::from(unsafe { shape::tailroom(shape::last_segment(self.as_ptr())) })
    }

    /// Makes the packet `len` bytes longer at its front and returns the new bytes, with arbitrary
    /// content (`rte_pktmbuf_prepend`); `None`, and nothing changed, if the first segment is shared
    /// or has less head room.
    ///
    /// ```
    /// fn tag(mbuf: &mut dpdk::Mbuf<'_>) -> Option<()> {
    ///     let tag = mbuf.prepend(4)?;
    ///     tag.copy_from_slice(&[0x81, 0x00, 0x00, 0x07]);
    ///     Some(())
    /// }
    /// ```
    #[inline]
    #[must_use]
    pub fn prepend(&mut self, len: usize) -> Option<&mut [u8]> {
        let bytes = u16::try_from(len).ok()?;
        if !self.is_unshared() {
            return None;
        }
        // SAFETY: the first mbuf is ours alone.
        let start = unsafe { shape::prepend(self.as_ptr(), bytes) };
        // SAFETY: not null, so `len` bytes of the buffer begin there; it is initialised (see `data`),
        // not shared, and borrowed through this.
        (!start.is_null()).then(|| unsafe { std::slice::from_raw_parts_mut(start, len) })
    }

    /// Makes the packet `len` bytes longer at its end and returns the new bytes, with arbitrary
    /// content (`rte_pktmbuf_append`); `None`, and nothing changed, if the last segment is shared
    /// or has less tail room, or if the first has another owner.
    #[inline]
    #[must_use]
    pub fn append(&mut self, len: usize) -> Option<&mut [u8]> {
        let bytes = u16::try_from(len).ok()?;
        // SAFETY: the packet is valid.
        let last = unsafe { shape::last_segment(self.as_ptr()) };
        // SAFETY: both segments are valid.
        if unsafe { !self.is_sole_owner() || !super::is_unshared(last) } {
            return None;
        }
        // SAFETY: both mbufs are ours alone.
        let start = unsafe { shape::append(self.as_ptr(), last, bytes) };
        // SAFETY: as in `prepend`.
        (!start.is_null()).then(|| unsafe { std::slice::from_raw_parts_mut(start, len) })
    }

    /// Puts `NEW` bytes in the place of the first `OLD`, 64 at most, and returns them, with arbitrary content: the headers of a tunnel
    /// in place of Ethernet's, or the other way round. Does what `rte_pktmbuf_adj` and `rte_pktmbuf_prepend` do, and checks the
    /// mbuf once. `None`, and nothing changed, if the first segment is shared, is shorter than `OLD`, or has too little head
    /// room.
    ///
    /// ```
    /// use packet::{ethernet, ipv4::{self, Ipv4Fields, PROTOCOL_IPIP}};
    ///
    /// /// Puts a packet that has `inner` bytes after Ethernet's header into an IPv4 packet (IPIP, RFC 2003).
    /// fn encapsulate(mbuf: &mut dpdk::Mbuf<'_>, addresses: [u8; 12], inner: u16, outer: Ipv4Fields) -> Option<()> {
    ///     const NEW: usize = ethernet::LEN + ipv4::LEN;
    ///     let total_len = inner.checked_add(ipv4::LEN as u16)?;
    ///     let headers = mbuf.replace_front::<{ ethernet::LEN }, NEW>()?;
    ///     headers[..12].copy_from_slice(&addresses);
    ///     headers[12..14].copy_from_slice(&ethernet::ETHERTYPE_IPV4.to_be_bytes());
    ///     let (_, header) = headers.split_last_chunk_mut()?;
    ///     Ipv4Fields { total_len, protocol: PROTOCOL_IPIP, ..outer }.write(header);
    ///     Some(())
    /// }
    /// ```
    #[inline]
    #[must_use]
    pub fn replace_front<const OLD: usize, const NEW: usize>(&mut self) -> Option<&mut [u8; NEW]> {
        const { assert!(OLD <= 64, "64 bytes are replaced at most") };
        const { assert!(NEW <= u16::MAX as usize, "a segment has at most 65,535 bytes") };
        // SAFETY: the mbuf is valid; it is ours alone and has that many bytes when the other functions are reached.
        unsafe {
            if !headers::is_own(self.as_ptr(), OLD as u16) {
                return None;
            }
            let start = if NEW >= OLD {
                shape::prepend(self.as_ptr(), (NEW - OLD) as u16)
            } else if shape::adj(self.as_ptr(), (OLD - NEW) as u16) {
                mbuf::data_start(self.as_ptr())
            } else {
                null_mut()
            };
            // `NEW` bytes of the buffer begin there: those that were added and those that are replaced. They are initialised
            // (see `data`), not shared, and borrowed through this.
            start.cast::<[u8; NEW]>().as_mut()
        }
    }

    /// Removes `len` bytes at the front; returns false if the first segment has fewer, or has
    /// another owner (`rte_pktmbuf_adj`).
    #[inline]
    #[must_use]
    pub fn adj(&mut self, len: usize) -> bool {
        // SAFETY: the first mbuf is ours alone.
        u16::try_from(len)
            .is_ok_and(|len| self.is_sole_owner() && unsafe { shape::adj(self.as_ptr(), len) })
    }

    /// Removes `len` bytes at the end; returns false if the last segment has fewer, or if the first
    /// or the last has another owner (`rte_pktmbuf_trim`).
    #[inline]
    #[must_use]
    pub fn trim(&mut self, len: usize) -> bool {
        let Ok(len) = u16::try_from(len) else { return false };
        // SAFETY: the packet is valid; `trim` is reached when both mbufs are ours alone.
        unsafe {
            let last = shape::last_segment(self.as_ptr());
            self.is_sole_owner()
                && super::is_sole_owner(last)
                && shape::trim(self.as_ptr(), last, len)
        }
    }
}
