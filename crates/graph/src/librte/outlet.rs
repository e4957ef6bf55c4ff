// SPDX-License-Identifier: BSD-3-Clause
//! The ways out of a node that librte_graph runs.

use std::cell::Cell;
use std::ffi::c_void;
use std::mem::ManuallyDrop;

use dpdk_sys::{layout, rte_graph, rte_node};

use super::raw;
use crate::batch::Batch;
use crate::next::{Next, checked};
use crate::node::Outlet;
use crate::object::Object;

pub(super) struct LibrteOutlet<'o> {
    graph: *mut rte_graph,
    node: *mut rte_node,
    dropped: &'o Cell<u64>,
}

impl<'o> LibrteOutlet<'o> {
    /// # Safety
    /// The node belongs to the graph, is the one that runs, and has as many edges as the `Next` that this
    /// is used with; none of them leads to itself.
    #[inline(always)]
    pub(super) unsafe fn new(
        graph: *mut rte_graph,
        node: *mut rte_node,
        dropped: &'o Cell<u64>,
    ) -> Self {
        Self { graph, node, dropped }
    }

    /// Appends objects to what waits for the target of an edge.
    ///
    /// # Safety
    /// `count` objects lie at `first`, which the caller gives up; the edge exists.
    #[inline(always)]
    unsafe fn append<M: Object>(&mut self, edge: usize, first: *mut M, count: usize) {
        if count == 0 {
            return;
        }
        // SAFETY: the contract is the caller's. What lies at `first` is an array of its own, or the memory
        // of the node that runs, which is not the target.
        unsafe {
            let target = raw::next(self.node, edge);
            let room = raw::claim(self.graph, target, count);
            if room.is_null() {
                // SAFETY: nobody else owns them.
                drop(Batch::new(first, count, self.dropped));
            } else {
                std::ptr::copy_nonoverlapping(first.cast::<*mut c_void>(), room, count);
            }
        }
    }

    /// [`append`](Self::append) in a function of its own: where a swap is the usual way, a node saves no
    /// registers for it that only the copy needs.
    ///
    /// # Safety
    /// As there.
    #[inline(never)]
    unsafe fn append_apart<M: Object>(&mut self, edge: usize, first: *mut M, count: usize) {
        // SAFETY: the contract is the caller's.
        unsafe { self.append(edge, first, count) };
    }
}

impl<M: Object, X: Next> Outlet<M, X> for LibrteOutlet<'_> {
    #[inline]
    fn send(&mut self, next: X, object: M) {
        self.send_array(next, [object]);
    }

    #[inline]
    fn send_array<const K: usize>(&mut self, next: X, objects: [M; K]) {
        let mut objects = ManuallyDrop::new(objects);
        // SAFETY: the array is ours, and given up; the node has an edge for each value of `X`.
        unsafe { self.append(checked(next), objects.as_mut_ptr(), K) };
    }

    #[inline]
    fn send_front<const K: usize>(&mut self, next: X, batch: &mut Batch<'_, M>) -> bool {
        if batch.len() < K {
            return false;
        }
        let (first, _) = batch.split_front(K).into_raw();
        // SAFETY: so many objects lie there, which nobody owns any more; the node has an edge for each value
        // of `X`.
        unsafe { self.append(checked(next), first, K) };
        true
    }

    #[inline]
    fn send_batch(&mut self, next: X, batch: Batch<'_, M>) {
        let (first, len) = batch.into_raw();
        // SAFETY: the batch owned them; the node has an edge for each value of `X`.
        unsafe { self.append(checked(next), first, len) };
    }

    #[inline]
    fn forward(&mut self, next: X, batch: Batch<'_, M>) {
        // SAFETY: the node has an edge for each value of `X`, and none leads to itself. No other batch lies
        // in the memory that changes hands when this one is whole and begins where it does.
        unsafe {
            let edge = checked(next);
            let target = raw::next(self.node, edge);
            let own: *mut M = raw::field(self.node, layout::NODE_OBJS);
            let whole = batch.is_whole();
            let (first, len) = batch.into_raw();
            if raw::field::<u16, _>(target, layout::NODE_IDX) == 0
                && whole
                && first == own
                && len > 0
            {
                raw::swap(self.graph, self.node, target, len as u16);
            } else {
                self.append_apart(edge, first, len);
            }
        }
    }
}
