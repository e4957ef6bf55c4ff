// SPDX-License-Identifier: BSD-3-Clause
//! The memory in which objects wait for a node.

use crate::batch::Batch;
use crate::copy::copy;
use crate::object::Object;

/// The objects that wait for one node.
pub(super) struct Slot<M> {
    /// Memory for as many objects as the graph gives each node.
    pub(super) first: *mut M,
    /// The first `len` are objects, which this slot owns.
    pub(super) len: usize,
}

/// The slots of all nodes, and the objects that found no room there.
pub(super) struct Slots<'w, M> {
    pub(super) slots: &'w mut [Slot<M>],
    /// The number of objects that each slot has room for.
    pub(super) capacity: usize,
    /// Used only for targets of a node that sends more objects than it got.
    pub(super) spilt: &'w mut [Vec<M>],
}

impl<M> Slots<'_, M> {
    /// Appends objects to a slot.
    ///
    /// # Safety
    /// `to` is a slot; `count` objects lie at `first`, outside of that slot's memory, and the caller gives
    /// them up.
    #[inline]
    pub(super) unsafe fn append(&mut self, to: usize, first: *const M, count: usize) {
        debug_assert!(to < self.slots.len());
        // SAFETY: the contract is the caller's.
        let slot = unsafe { self.slots.get_unchecked_mut(to) };
        if count > self.capacity - slot.len {
            // SAFETY: the contract is the caller's.
            unsafe { self.spill(to, first, count) };
            return;
        }
        // SAFETY: there is room for so many behind those inside, apart from where they lie now.
        unsafe { copy(first, slot.first.add(slot.len), count) };
        slot.len += count;
    }

    /// Appends a batch to a slot. Nothing is copied if the slot is empty and the batch is all that
    /// is in the memory of `from`.
    ///
    /// # Safety
    /// Both are slots, and differ; the batch does not lie in the memory of `to`.
    #[inline]
    pub(super) unsafe fn hand_over(&mut self, from: usize, to: usize, batch: Batch<'_, M>)
    where
        M: Object,
    {
        debug_assert!(from != to && from.max(to) < self.slots.len());
        // SAFETY: the contract is the caller's.
        let (source, target) = unsafe {
            let slots = self.slots.as_mut_ptr();
            (&mut *slots.add(from), &mut *slots.add(to))
        };
        if batch.is_whole() && batch.start() == source.first && target.len == 0 {
            // No other batch lies in the memory that is exchanged.
            (_, target.len) = batch.into_raw();
            std::mem::swap(&mut source.first, &mut target.first);
        } else {
            let (first, len) = batch.into_raw();
            // SAFETY: the contract is the caller's; nothing else owns the batch's objects.
            unsafe { self.append(to, first, len) };
        }
    }

    /// # Safety
    /// As for `append`.
    #[cold]
    #[inline(never)]
    unsafe fn spill(&mut self, to: usize, first: *const M, count: usize) {
        // Up to the end first: objects that come later and fit must not overtake.
        let slot = &mut self.slots[to];
        let fitting = self.capacity - slot.len;
        // SAFETY: as in `append`.
        unsafe { std::ptr::copy_nonoverlapping(first, slot.first.add(slot.len), fitting) };
        slot.len = self.capacity;
        // SAFETY: the caller gives up that many objects there, each of which is read once.
        let rest = (fitting..count).map(|i| unsafe { first.add(i).read() });
        self.spilt[to].extend(rest);
    }
}

impl<M> Drop for Slots<'_, M> {
    /// After a node has panicked: waiting objects would otherwise leak, or be processed in a later
    /// walk.
    fn drop(&mut self) {
        self.spilt.iter_mut().for_each(Vec::clear);
        for slot in self.slots.iter_mut().filter(|slot| slot.len > 0) {
            let waiting = std::ptr::slice_from_raw_parts_mut(slot.first, slot.len);
            slot.len = 0;
            // SAFETY: so many objects lie there, which the slot owned.
            unsafe { waiting.drop_in_place() };
        }
    }
}
