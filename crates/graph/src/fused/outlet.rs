// SPDX-License-Identifier: BSD-3-Clause
//! The outlet of the node `I` of a fused graph.

use std::marker::PhantomData;
use std::mem::ManuallyDrop;

use super::slot::Slots;
use crate::batch::Batch;
use crate::next::Next;
use crate::node::Outlet;
use crate::topology::{Topology, target};

pub(super) struct FusedOutlet<'o, 'w, T: Topology, const I: usize> {
    pub(super) slots: &'o mut Slots<'w, T::Object>,
    pub(super) topology: PhantomData<T>,
}

impl<T: Topology, X: Next, const I: usize> Outlet<T::Object, X> for FusedOutlet<'_, '_, T, I> {
    #[inline]
    fn send(&mut self, next: X, object: T::Object) {
        self.send_array(next, [object]);
    }

    #[inline]
    fn send_array<const K: usize>(&mut self, next: X, objects: [T::Object; K]) {
        // First, because `index` of a `Next` written by hand may panic.
        let to = target::<T, X, I>(next);
        let objects = ManuallyDrop::new(objects);
        // SAFETY: targets are slots; the array is ours, and given up.
        unsafe { self.slots.append(to, objects.as_ptr(), K) };
    }

    #[inline]
    fn send_front<const K: usize>(&mut self, next: X, batch: &mut Batch<'_, T::Object>) -> bool {
        if batch.len() < K {
            return false;
        }
        let to = target::<T, X, I>(next);
        let (first, _) = batch.split_front(K).into_raw();
        // SAFETY: as in `send_batch`: so many objects lie there, which nobody owns any more.
        unsafe { self.slots.append(to, first, K) };
        true
    }

    #[inline]
    fn send_batch(&mut self, next: X, batch: Batch<'_, T::Object>) {
        let to = target::<T, X, I>(next);
        let (first, len) = batch.into_raw();
        // SAFETY: targets are slots. A batch lies in the memory of the node that got it, not in a
        // later slot, and nothing else owns its objects.
        unsafe { self.slots.append(to, first, len) };
    }

    #[inline]
    fn forward(&mut self, next: X, batch: Batch<'_, T::Object>) {
        // SAFETY: edges lead forward, and a batch lies in the memory of the node that got it, not
        // in a later slot.
        unsafe { self.slots.hand_over(I, target::<T, X, I>(next), batch) };
    }
}
