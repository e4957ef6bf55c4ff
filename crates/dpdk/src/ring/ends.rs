// SPDX-License-Identifier: BSD-3-Clause
//! The two ends of a ring, and their operations.

use std::cell::Cell;
use std::marker::PhantomData;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::ptr::NonNull;

use dpdk_sys::rte_ring;

use super::{Items, NoRoom, Ring, TooFew};
use crate::debug::impl_debug;
use crate::fast;

/// A number of items for C. No ring has room for more than this can count.
#[inline]
fn number(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// The methods of a producer, alone (`true`) or one of several.
macro_rules! producer {
    ($single:literal, $this:ident: $($receiver:tt)+) => {
        /// Enqueues an item (`rte_ring_enqueue`).
        ///
        /// # Errors
        /// Gives the item back if there is no room.
        #[inline]
        pub fn enqueue($($receiver)+, item: T) -> Result<(), T> {
            let item = ManuallyDrop::new(item);
            // SAFETY: the ring is of items of this type; it owns the item if it has taken it.
            let taken = unsafe {
                let item: *const T = &raw const *item;
                fast::ring::enqueue::<T, $single>($this.raw.as_ptr(), item, 1, true)
            };
            if taken == 1 { Ok(()) } else { Err(ManuallyDrop::into_inner(item)) }
        }

        /// Enqueues all items of an array, or none (`rte_ring_enqueue_bulk`).
        ///
        /// # Errors
        /// Gives the items back if there is no room for all of them.
        #[inline]
        pub fn enqueue_array<const N: usize>($($receiver)+, items: [T; N]) -> Result<(), [T; N]> {
            let items = ManuallyDrop::new(items);
            // SAFETY: as in `enqueue`.
            let taken = unsafe {
                let first: *const T = (&raw const *items).cast();
                fast::ring::enqueue::<T, $single>($this.raw.as_ptr(), first, number(N), true)
            };
            if taken as usize == N { Ok(()) } else { Err(ManuallyDrop::into_inner(items)) }
        }

        /// Enqueues all items, or none (`rte_ring_enqueue_bulk`).
        ///
        /// # Errors
        /// [`NoRoom`]; the items stay where they are.
        #[inline]
        pub fn enqueue_bulk($($receiver)+, items: &mut impl Items<T>) -> Result<(), NoRoom> {
            let n = items.count();
            // SAFETY: this many items are there; the ring owns those that it has taken.
            let taken = unsafe {
                let ring = $this.raw.as_ptr();
                let taken = fast::ring::enqueue::<T, $single>(ring, items.front(), number(n), true);
                items.take_front(taken as usize);
                taken
            };
            if taken as usize == n { Ok(()) } else { Err(NoRoom(n)) }
        }

        /// Enqueues as many items as there is room for, from the front (`rte_ring_enqueue_burst`);
        /// leaves the rest. Returns the number enqueued.
        #[inline]
        pub fn enqueue_burst($($receiver)+, items: &mut impl Items<T>) -> usize {
            let n = number(items.count());
            // SAFETY: as in `enqueue_bulk`.
            unsafe {
                let ring = $this.raw.as_ptr();
                let taken = fast::ring::enqueue::<T, $single>(ring, items.front(), n, false) as usize;
                items.take_front(taken);
                taken
            }
        }
    };
}

/// The methods of a consumer, alone (`true`) or one of several.
macro_rules! consumer {
    ($single:literal, $this:ident: $($receiver:tt)+) => {
        /// Dequeues the first item (`rte_ring_dequeue`).
        #[inline]
        pub fn dequeue($($receiver)+) -> Option<T> {
            let mut item = MaybeUninit::uninit();
            // SAFETY: the ring has items of this type; the items taken out are ours.
            unsafe {
                let ring = $this.raw.as_ptr();
                let given = fast::ring::dequeue::<T, $single>(ring, item.as_mut_ptr(), 1, true);
                (given == 1).then(|| item.assume_init())
            }
        }

        /// Dequeues the first `N` items, or none if there are fewer (`rte_ring_dequeue_bulk`).
        #[inline]
        pub fn dequeue_array<const N: usize>($($receiver)+) -> Option<[T; N]> {
            let mut items = MaybeUninit::<[T; N]>::uninit();
            // SAFETY: as in `dequeue`, with room for `N`.
            unsafe {
                let (ring, first) = ($this.raw.as_ptr(), items.as_mut_ptr().cast());
                let given = fast::ring::dequeue::<T, $single>(ring, first, number(N), true);
                (given as usize == N).then(|| items.assume_init())
            }
        }

        /// Dequeues the first `n` items, or none if there are fewer (`rte_ring_dequeue_bulk`), and
        /// appends them to `items`.
        ///
        /// # Errors
        /// [`TooFew`] when there are fewer, or `items` has no room for them.
        #[inline]
        pub fn dequeue_bulk($($receiver)+, items: &mut impl Items<T>, n: usize) -> Result<(), TooFew> {
            let (count, spare) = (items.count(), items.spare());
            if n > spare {
                return Err(TooFew::Places { asked: n, spare });
            }
            // SAFETY: there is room for this many behind the existing ones; the items taken out are
            // ours.
            let given = unsafe {
                let (ring, room) = ($this.raw.as_ptr(), items.front().add(count));
                let given = fast::ring::dequeue::<T, $single>(ring, room, number(n), true) as usize;
                items.add_back(given);
                given
            };
            if given == n { Ok(()) } else { Err(TooFew::Items(n)) }
        }

        /// Dequeues the first items, as many as `items` still has room for, and appends them to it
        /// (`rte_ring_dequeue_burst`). Returns the number dequeued.
        #[inline]
        pub fn dequeue_burst($($receiver)+, items: &mut impl Items<T>) -> usize {
            let (count, spare) = (items.count(), items.spare());
            // SAFETY: as in `dequeue_bulk`.
            unsafe {
                let (ring, room) = ($this.raw.as_ptr(), items.front().add(count));
                let given = fast::ring::dequeue::<T, $single>(ring, room, number(spare), false) as usize;
                items.add_back(given);
                given
            }
        }
    };
}

/// Methods that only read. Their answer may be out of date when other threads use the ring.
macro_rules! looks {
    () => {
        /// The number of items in the ring (`rte_ring_count`).
        #[inline]
        #[must_use]
        pub fn len(&self) -> usize {
            // SAFETY: the ring lives.
            unsafe { fast::ring::count(self.raw.as_ptr()) as usize }
        }

        /// Returns true if it is empty.
        #[inline]
        #[must_use]
        pub fn is_empty(&self) -> bool {
            self.len() == 0
        }

        /// The number of items that fit into the ring, including those inside.
        #[inline]
        #[must_use]
        pub fn capacity(&self) -> usize {
            // SAFETY: the ring lives.
            unsafe { fast::ring::capacity(self.raw.as_ptr()) as usize }
        }

        /// The number of items for which there is room now (`rte_ring_free_count`).
        #[inline]
        #[must_use]
        pub fn spare(&self) -> usize {
            self.capacity() - self.len()
        }
    };
}

/// Any number of threads put items in and take them out.
impl<T> Ring<'_, T> {
    producer!(false, self: &self);
    consumer!(false, self: &self);
    looks!();
}

/// The parts of an end of a ring: the ring, for as long as it is borrowed; not `Sync`.
macro_rules! end {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        pub struct $name<'r, T> {
            raw: NonNull<rte_ring>,
            /// As for a ring, no lifetime in `T` may change.
            ring: PhantomData<(&'r (), Cell<T>)>,
        }

        impl<T> $name<'_, T> {
            pub(super) fn new(raw: NonNull<rte_ring>) -> Self {
                Self { raw, ring: PhantomData }
            }

            looks!();
        }

        impl_debug!([T] $name<'_, T>, end => len: end.len(), capacity: end.capacity());

        // SAFETY: the ring may be used by any thread that may have its items, which this sends or receives.
        unsafe impl<T: Send> Send for $name<'_, T> {}
    };
}

end! {
    /// The only one that puts items into a [`Ring`], without atomic exchanges. Made by [`Ring::split`]; belongs
    /// to one thread at a time.
    Producer
}
end! {
    /// The only one that takes items out of a [`Ring`], without atomic exchanges. Made by [`Ring::split`];
    /// belongs to one thread at a time.
    Consumer
}
end! {
    /// One of several that put items into a [`Ring`] with one [`Consumer`]. Made by [`Ring::split_many_to_one`];
    /// each thread has its clone.
    Producers
}
end! {
    /// One of several that take items out of a [`Ring`] with one [`Producer`]. Made by
    /// [`Ring::split_one_to_many`]; each thread has its clone.
    Consumers
}

impl<T> Producer<'_, T> {
    producer!(true, self: &mut self);
}

impl<T> Consumer<'_, T> {
    consumer!(true, self: &mut self);
}

impl<T> Producers<'_, T> {
    producer!(false, self: &self);
}

impl<T> Consumers<'_, T> {
    consumer!(false, self: &self);
}

impl<T> Clone for Producers<'_, T> {
    fn clone(&self) -> Self {
        Self::new(self.raw)
    }
}

impl<T> Clone for Consumers<'_, T> {
    fn clone(&self) -> Self {
        Self::new(self.raw)
    }
}
