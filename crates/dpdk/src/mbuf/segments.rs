// SPDX-License-Identifier: BSD-3-Clause
//! Packets of several segments: chained, split, linearized.

use std::ptr::NonNull;

use super::Mbuf;
use crate::fast::{self, shape};

impl<'m> Mbuf<'m> {
    /// Iterates over the segments' bytes for writing; `None` for segments whose bytes other owners
    /// can see.
    pub fn segment_data_mut(&mut self) -> impl Iterator<Item = Option<&mut [u8]>> {
        let mut next = Some(self.raw);
        std::iter::from_fn(move || {
            let segment = next?.as_ptr();
            // SAFETY: each segment of a valid packet is valid as long as the packet, which is borrowed
            // exclusively. An unshared one is in no packet twice, so no bytes are given out twice.
            unsafe {
                next = NonNull::new(shape::next(segment));
                Some(super::is_unshared(segment).then(|| {
                    std::slice::from_raw_parts_mut(
                        fast::mbuf::data_start(segment),
                        fast::mbuf::data_len(segment),
                    )
                }))
            }
        })
    }

    /// Appends the segments of `tail`, whose bytes stay where they are (`rte_pktmbuf_chain`).
    ///
    /// # Errors
    /// Gives `tail` back if the two have more than 65,535 segments together, or if the first or
    /// last segment of this packet or the first of `tail` has another owner.
    ///
    /// ```
    /// fn with_header<'m>(mut header: dpdk::Mbuf<'m>, payload: dpdk::Mbuf<'m>) -> Option<dpdk::Mbuf<'m>> {
    ///     header.chain(payload).ok()?;
    ///     Some(header)
    /// }
    /// ```
    pub fn chain(&mut self, tail: Mbuf<'m>) -> Result<(), Mbuf<'m>> {
        // SAFETY: both packets are valid; `chain` is reached when the three mbufs are ours alone.
        let chained = unsafe {
            let last = shape::last_segment(self.as_ptr());
            self.is_sole_owner()
                && super::is_sole_owner(last)
                && tail.is_sole_owner()
                && shape::chain(self.as_ptr(), last, tail.as_ptr())
        };
        if !chained {
            return Err(tail);
        }
        std::mem::forget(tail); // This packet owns its segments now.
        Ok(())
    }

    /// Keeps the first `segments` segments and returns the others as a packet of their own. `None`,
    /// and nothing changed, if there are no others, if `segments` is 0, or if the first segment or
    /// one of the two at the cut has another owner.
    #[must_use]
    pub fn split(&mut self, segments: usize) -> Option<Mbuf<'m>> {
        let mut last = self.raw;
        for _ in 1..segments {
            // SAFETY: each segment of a valid packet is valid.
            last = NonNull::new(unsafe { shape::next(last.as_ptr()) })?;
        }
        // SAFETY: as above.
        let tail = NonNull::new(unsafe { shape::next(last.as_ptr()) })?;
        // SAFETY: all three are segments of a valid packet.
        let ours = unsafe {
            self.is_sole_owner()
                && super::is_sole_owner(last.as_ptr())
                && super::is_sole_owner(tail.as_ptr())
        };
        if segments == 0 || !ours {
            return None;
        }
        // SAFETY: the three mbufs are ours alone; `tail` and what follows it leave this packet.
        unsafe {
            shape::split(self.as_ptr(), last.as_ptr(), tail.as_ptr());
            Some(Mbuf::from_raw(tail))
        }
    }

    /// Moves all data into the first segment and frees the others (`rte_pktmbuf_linearize`).
    /// Returns true if the packet has one segment now. Returns false, with nothing changed, if the
    /// first segment is shared or has too little tail room.
    #[must_use]
    pub fn linearize(&mut self) -> bool {
        if self.segments() == 1 {
            return true;
        }
        // SAFETY: the first mbuf and its bytes are ours alone.
        self.is_unshared() && unsafe { shape::linearize(self.as_ptr()) }
    }
}
