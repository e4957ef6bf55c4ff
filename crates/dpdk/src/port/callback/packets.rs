// SPDX-License-Identifier: BSD-3-Clause
//! The packets that are passed to a callback.

use std::fmt;
use std::mem::MaybeUninit;

use dpdk_sys::rte_mbuf;

use crate::mbuf::Mbuf;

/// The packets of a burst on their way through a callback: received ones, or those about to be
/// offered to the driver. The packets that are inside when the callback returns continue, in this
/// order.
///
/// There is room for [`spare`](Self::spare) more: on reception, the difference between the
/// requested and the received number; on transmission, the number of packets taken out.
pub struct Packets<'a, 'm> {
    /// The first `len` are packets that this struct owns until the callback returns.
    slots: &'a mut [MaybeUninit<Mbuf<'m>>],
    len: usize,
}

impl fmt::Debug for Packets<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<'m> Packets<'_, 'm> {
    /// # Safety
    /// There is room for `room` packets at `first` and nobody else uses it for `'a`; the first `count` of
    /// them, at most `room`, are there, are owned by the caller, and valid for `'m`. It gives them up, and
    /// owns what is inside at the end.
    #[inline(always)]
    pub(in crate::port) unsafe fn new(first: *mut *mut rte_mbuf, count: u16, room: u16) -> Self {
        debug_assert!(count <= room);
        // SAFETY: the contract is the caller's; an `Mbuf` is a pointer to an mbuf.
        let slots = unsafe { std::slice::from_raw_parts_mut(first.cast(), usize::from(room)) };
        Self { slots, len: usize::from(count) }
    }

    /// Packets inside.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if there are no packets, as at every empty poll.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The number of packets that can be added.
    #[inline]
    #[must_use]
    pub fn spare(&self) -> usize {
        self.slots.len() - self.len
    }

    /// The packets, in order.
    #[inline]
    #[must_use]
    pub fn as_slice(&self) -> &[Mbuf<'m>] {
        // SAFETY: the first `len` slots are initialised.
        unsafe { std::slice::from_raw_parts(self.slots.as_ptr().cast(), self.len) }
    }

    /// The packets, in order; they can be changed and reordered.
    #[inline]
    #[must_use]
    pub fn as_mut_slice(&mut self) -> &mut [Mbuf<'m>] {
        // SAFETY: the first `len` slots are initialised.
        unsafe { std::slice::from_raw_parts_mut(self.slots.as_mut_ptr().cast(), self.len) }
    }

    /// Iterates over the packets.
    #[inline]
    pub fn iter(&self) -> std::slice::Iter<'_, Mbuf<'m>> {
        self.as_slice().iter()
    }

    /// Iterates over the packets for changing them in place.
    #[inline]
    pub fn iter_mut(&mut self) -> std::slice::IterMut<'_, Mbuf<'m>> {
        self.as_mut_slice().iter_mut()
    }

    /// Appends a packet.
    ///
    /// # Errors
    /// Gives it back when there is no room.
    #[inline]
    pub fn push(&mut self, mbuf: Mbuf<'m>) -> Result<(), Mbuf<'m>> {
        match self.slots.get_mut(self.len) {
            Some(slot) => {
                slot.write(mbuf);
                self.len += 1;
                Ok(())
            }
            None => Err(mbuf),
        }
    }

    /// Takes the last packet out.
    #[inline]
    pub fn pop(&mut self) -> Option<Mbuf<'m>> {
        self.len = self.len.checked_sub(1)?;
        // SAFETY: this slot was the last initialised one, and is no longer counted.
        Some(unsafe { self.slots[self.len].assume_init_read() })
    }

    /// Takes a packet out and closes the gap; `None` if `index` is out of range.
    #[inline]
    pub fn remove(&mut self, index: usize) -> Option<Mbuf<'m>> {
        self.slots.get_mut(index..self.len)?.get(..1)?;
        self.slots[index..self.len].rotate_left(1);
        self.pop()
    }

    /// Frees the packets for which `keep` is false and closes the gaps. The others may be changed.
    #[inline]
    pub fn retain(&mut self, mut keep: impl FnMut(&mut Mbuf<'m>) -> bool) {
        // The count is 0 meanwhile, so that a panic leaks packets and never frees them twice.
        let len = std::mem::take(&mut self.len);
        let mut kept = 0;
        for index in 0..len {
            // SAFETY: the slot was initialised, and is looked at once: those before were freed or moved.
            let goes_on = keep(unsafe { self.slots[index].assume_init_mut() });
            if goes_on {
                self.slots.swap(kept, index);
                kept += 1;
            } else {
                // SAFETY: as above; it is not counted any more.
                unsafe { self.slots[index].assume_init_drop() };
            }
        }
        self.len = kept;
    }

    /// Frees all but the first `len` packets.
    #[inline]
    pub fn truncate(&mut self, len: usize) {
        while self.len > len {
            self.pop();
        }
    }

    /// Frees every packet.
    #[inline]
    pub fn clear(&mut self) {
        self.truncate(0);
    }
}
