// SPDX-License-Identifier: BSD-3-Clause
//! Sources and destinations of a ring's items.

use crate::burst::Burst;
use crate::mbuf::Mbuf;

/// Items in order: a [`Burst`] of packets, or a `Vec`.
///
/// A ring takes items from the front, and appends them within the capacity: a `Vec` does not grow,
/// so nothing is allocated on the packet path. Implemented by this crate only.
pub trait Items<T>: sealed::Slots<T> {}

impl<'m, const N: usize> Items<Mbuf<'m>> for Burst<'m, N> {}
impl<T> Items<T> for Vec<T> {}

pub(super) mod sealed {
    /// An array whose first slots are initialised.
    ///
    /// # Safety
    /// `front` is followed by `count` items and then by room for `spare` items.
    pub unsafe trait Slots<T> {
        /// Items inside.
        fn count(&self) -> usize;
        /// Items for which there is room.
        fn spare(&self) -> usize;
        /// A pointer to the first item.
        fn front(&mut self) -> *mut T;
        /// Forgets the first `n` and closes the gap.
        ///
        /// # Safety
        /// There are at least `n`, and they have another owner now.
        unsafe fn take_front(&mut self, n: usize);
        /// Adds `n` to the count.
        ///
        /// # Safety
        /// `n` items were written behind the last, where there was room.
        unsafe fn add_back(&mut self, n: usize);
    }
}

// SAFETY: a burst's packets are the first of its array; `Mbuf` is transparent over a pointer.
unsafe impl<'m, const N: usize> sealed::Slots<Mbuf<'m>> for Burst<'m, N> {
    #[inline]
    fn count(&self) -> usize {
        self.len()
    }

    #[inline]
    fn spare(&self) -> usize {
        Burst::spare(self)
    }

    #[inline]
    fn front(&mut self) -> *mut Mbuf<'m> {
        self.raw_ptr().cast()
    }

    #[inline]
    unsafe fn take_front(&mut self, n: usize) {
        // SAFETY: the contract is the caller's.
        unsafe { self.give_away_front(n) };
    }

    #[inline]
    unsafe fn add_back(&mut self, n: usize) {
        // SAFETY: the contract is the caller's.
        unsafe { self.set_len(self.len() + n) };
    }
}

// SAFETY: a vector's items are the first of its memory, which has room for `capacity` items.
unsafe impl<T> sealed::Slots<T> for Vec<T> {
    #[inline]
    fn count(&self) -> usize {
        self.len()
    }

    #[inline]
    fn spare(&self) -> usize {
        self.capacity() - self.len()
    }

    #[inline]
    fn front(&mut self) -> *mut T {
        self.as_mut_ptr()
    }

    #[inline]
    unsafe fn take_front(&mut self, n: usize) {
        let left = self.len() - n;
        let front = self.as_mut_ptr();
        // SAFETY: the first `n` are not this vector's any more; those behind them are moved there, inside
        // its memory.
        unsafe {
            std::ptr::copy(front.add(n), front, left);
            self.set_len(left);
        }
    }

    #[inline]
    unsafe fn add_back(&mut self, n: usize) {
        // SAFETY: the contract is the caller's.
        unsafe { self.set_len(self.len() + n) };
    }
}
