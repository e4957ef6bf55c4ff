// SPDX-License-Identifier: BSD-3-Clause
//! The ways out of the node `I` of a fused graph.

use std::marker::PhantomData;
use std::mem::ManuallyDrop;

use super::slot::Slots;
use crate::batch::Batch;
use crate::next::{Next, checked};
use crate::node::Outlet;
use crate::topology::{Targets, Topology};

pub(super) struct FusedOutlet<'o, 'w, T: Topology, const I: usize> {
    pub(super) slots: &'o mut Slots<'w, T::Object>,
    pub(super) topology: PhantomData<T>,
}

/// The slot that an edge leads to.
#[inline]
fn target<T: Topology, X: Next, const I: usize>(next: X) -> usize {
    let targets = const { &Targets::<T, X, I>::BY_INDEX };
    targets[checked(next)]
}

impl<T: Topology, X: Next, const I: usize> Outlet<T::Object, X> for FusedOutlet<'_, '_, T, I> {
    #[inline]
    fn send(&mut self, next: X, object: T::Object) {
        self.send_array(next, [object]);
    }

    #[inline]
    fn send_array<const K: usize>(&mut self, next: X, objects: [T::Object; K]) {
        let objects = ManuallyDrop::new(objects);
        // SAFETY: targets are slots; the array is ours, and given up.
        unsafe { self.slots.append(target::<T, X, I>(next), objects.as_ptr(), K) };
    }

    #[inline]
    fn send_batch(&mut self, next: X, batch: Batch<'_, T::Object>) {
        let (first, len) = batch.into_raw();
        // SAFETY: targets are slots; a batch lies in the memory of the slot of the node that got it, which
        // is another one, for an edge leads forward, and nothing else owns its objects.
        unsafe { self.slots.append(target::<T, X, I>(next), first, len) };
    }

    #[inline]
    fn forward(&mut self, next: X, batch: Batch<'_, T::Object>) {
        let to = target::<T, X, I>(next);
        // SAFETY: both are slots, and differ, for an edge leads forward.
        let (source, target) = unsafe {
            let slots = self.slots.slots.as_mut_ptr();
            (&mut *slots.add(I), &mut *slots.add(to))
        };
        if batch.is_whole() && batch.first() == source.first && target.len == 0 {
            // No other batch lies in the memory that changes hands.
            (_, target.len) = batch.into_raw();
            std::mem::swap(&mut source.first, &mut target.first);
        } else {
            self.send_batch(next, batch);
        }
    }
}
