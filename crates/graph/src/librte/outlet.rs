// SPDX-License-Identifier: BSD-3-Clause
//! The outlet of a node that librte_graph runs.

use std::cell::Cell;
use std::ffi::c_void;
use std::mem::ManuallyDrop;

use dpdk_sys::{layout, rte_graph, rte_node};

use super::raw::{self, Stream};
use crate::batch::Batch;
use crate::copy::copy;
use crate::next::{Next, checked};
use crate::node::Outlet;
use crate::object::Object;

/// No edge: no edge has this number.
const NOWHERE: usize = usize::MAX;

/// After this many changes of the edge in one run of a node, no stream is held open any more. The
/// processor cannot predict changes without a pattern, and each misprediction costs as much as
/// several objects whose targets are updated at once.
const MOST_CHANGES: u32 = 8;

/// From this many objects in one call on, holding the stream open costs more than updating the
/// target's count: if their number is a constant, and if it is not.
const SOME: usize = 32;
const MANY: usize = 64;

/// The edge that objects were sent to last, and where the next one is to be written. The target's
/// count is updated when another edge is used, and at the end: a count in the target's memory would
/// be read back for each object, which takes longer than everything else that is done for one.
#[derive(Clone, Copy)]
struct Open {
    edge: usize,
    stream: Stream,
    /// When it is 0, no other stream is opened.
    changes_left: u32,
}

#[derive(Clone, Copy)]
pub(super) struct LibrteOutlet<'o> {
    graph: *mut rte_graph,
    node: *mut rte_node,
    dropped: &'o Cell<u64>,
    open: Open,
}

/// Updates the target of the edge `from`, if there is one, with the objects written up to `at`, and
/// opens the stream of the target of `to` for at least `count` objects, which are added to its
/// count at once; returns [`Stream::NONE`] if there is no room. A separate function, because a node
/// has many places that may need it. Values are passed in registers, so that an outlet can stay
/// there.
///
/// # Safety
/// As for [`LibrteOutlet::room`], of the outlet that these are parts of.
#[cold]
#[inline(never)]
unsafe fn reopen(
    (graph, node): (*mut rte_graph, *mut rte_node),
    (from, at): (usize, *mut *mut c_void),
    to: usize,
    count: usize,
) -> Stream {
    // SAFETY: the contract is the caller's.
    unsafe {
        if from != NOWHERE {
            raw::put(raw::next(node, from), at);
        }
        raw::get(graph, raw::next(node, to), count)
    }
}

impl<'o> LibrteOutlet<'o> {
    /// # Safety
    /// The node belongs to the graph, is the one that runs, and has as many edges as the `Next`
    /// that this is used with; none of them leads to itself. [`close`](Self::close) is called
    /// before the run ends.
    #[inline(always)]
    pub(super) unsafe fn new(
        graph: *mut rte_graph,
        node: *mut rte_node,
        dropped: &'o Cell<u64>,
    ) -> Self {
        let open = Open { edge: NOWHERE, stream: Stream::NONE, changes_left: MOST_CHANGES };
        Self { graph, node, dropped, open }
    }

    /// Updates the count of the last target.
    #[inline(always)]
    pub(super) fn close(&mut self) {
        let Open { edge, stream, .. } = self.open;
        if edge != NOWHERE {
            // SAFETY: the stream is that target's, and everything before `at` is objects.
            unsafe { raw::put(raw::next(self.node, edge), stream.at) };
            (self.open.edge, self.open.stream) = (NOWHERE, Stream::NONE);
        }
    }

    /// Returns true if an edge's stream is open, and has room.
    #[inline(always)]
    fn is_open(&self, edge: usize, count: usize) -> bool {
        edge == self.open.edge && self.open.stream.has(count)
    }

    /// Opens the stream of an edge, and claims room for objects there; returns null if there is
    /// none.
    ///
    /// # Safety
    /// The edge exists; `count` is not 0; the caller writes the objects there before it does anything else with this.
    #[inline(always)]
    unsafe fn room(&mut self, edge: usize, count: usize) -> *mut *mut c_void {
        let Open { edge: from, stream, changes_left } = self.open;
        // SAFETY: the contract is the caller's.
        unsafe {
            let stream = reopen((self.graph, self.node), (from, stream.at), edge, count);
            self.open = Open { edge: NOWHERE, stream: Stream::NONE, changes_left };
            // The target's count includes these already: if no more follow, it need not be updated
            // again.
            if changes_left > 0 && stream.has(count) {
                let stream = Stream { at: stream.at.add(count), end: stream.end };
                let changes_left = changes_left - u32::from(edge != from);
                self.open = Open { edge, stream, changes_left };
            }
            stream.at
        }
    }

    /// Appends objects to those waiting for the target of an edge. If their number is a constant,
    /// they are copied inline.
    ///
    /// # Safety
    /// `count` objects lie at `first`, not in the memory of the edge's target, and the caller gives them up; the edge
    /// exists.
    #[inline(always)]
    unsafe fn append<M: Object>(&mut self, edge: usize, first: *mut M, count: usize) {
        if count == 0 {
            return;
        }
        // SAFETY: the contract is the caller's.
        unsafe {
            if self.is_open(edge, count) {
                copy(first, self.open.stream.at.cast::<M>(), count);
                self.open.stream.at = self.open.stream.at.add(count);
                return;
            }
            let room = self.room(edge, count);
            if room.is_null() {
                drop_all(first, count, self.dropped);
            } else {
                copy(first, room.cast::<M>(), count);
            }
        }
    }

    /// The same if their number is not a constant: objects of a held stream by a separate function,
    /// and many objects with the target updated at once.
    ///
    /// # Safety
    /// As for [`append`](Self::append).
    #[inline(always)]
    unsafe fn append_some<M: Object>(&mut self, edge: usize, first: *mut M, count: usize) {
        // SAFETY: the contract is the caller's.
        unsafe {
            if count >= MANY {
                self.close();
                Self::append_apart((self.graph, self.node), self.dropped, edge, first, count);
            } else {
                self.open = (*self).append_few(edge, first, count);
            }
        }
    }

    /// [`append`](Self::append) for up to [`MANY`]. The outlet is passed by value, because taking
    /// its address would keep it out of registers.
    ///
    /// # Safety
    /// As for [`append`](Self::append).
    #[inline(never)]
    unsafe fn append_few<M: Object>(mut self, edge: usize, first: *mut M, count: usize) -> Open {
        // SAFETY: the contract is the caller's.
        unsafe { self.append(edge, first, count) };
        self.open
    }

    /// [`append`](Self::append) for many objects; the target is updated at once. A separate
    /// function: a node that usually swaps memory then saves no registers that only the copy needs.
    /// It gets the parts of an outlet, because taking the address of one would keep it out of
    /// registers.
    ///
    /// # Safety
    /// As for [`append`](Self::append), with the outlet that these are parts of; no stream is open.
    #[inline(never)]
    unsafe fn append_apart<M: Object>(
        parts: (*mut rte_graph, *mut rte_node),
        dropped: &Cell<u64>,
        edge: usize,
        first: *mut M,
        count: usize,
    ) {
        if count > 0 {
            // SAFETY: the contract is the caller's.
            unsafe { Self::append_now(parts, dropped, edge, first, count) };
        }
    }

    /// The same, inlined.
    ///
    /// # Safety
    /// As for [`append`](Self::append); `count` is not 0.
    #[inline(always)]
    unsafe fn append_now<M: Object>(
        (graph, node): (*mut rte_graph, *mut rte_node),
        dropped: &Cell<u64>,
        edge: usize,
        first: *mut M,
        count: usize,
    ) {
        // SAFETY: the contract is the caller's; the target is another node.
        unsafe {
            let room = raw::claim(graph, raw::next(node, edge), count);
            if room.is_null() {
                drop_all(first, count, dropped);
            } else {
                copy(first, room.cast::<M>(), count);
            }
        }
    }
}

/// Drops objects for which there is no room, and counts them.
///
/// # Safety
/// `count` objects lie there, and nobody else owns them.
#[cold]
#[inline(never)]
unsafe fn drop_all<M: Object>(first: *mut M, count: usize, dropped: &Cell<u64>) {
    // SAFETY: the contract is the caller's.
    drop(unsafe { Batch::new(first, count, dropped) });
}

// Always inlined: a call takes the outlet's address, which keeps it out of registers.
impl<M: Object, X: Next> Outlet<M, X> for LibrteOutlet<'_> {
    #[inline(always)]
    fn send(&mut self, next: X, object: M) {
        self.send_array(next, [object]);
    }

    #[inline(always)]
    fn send_array<const K: usize>(&mut self, next: X, objects: [M; K]) {
        let edge = checked(next);
        let mut objects = ManuallyDrop::new(objects);
        // SAFETY: the array is ours, and given up; the node has an edge for each value of `X`.
        unsafe { self.append(edge, objects.as_mut_ptr(), K) };
    }

    #[inline(always)]
    fn send_front<const K: usize>(&mut self, next: X, batch: &mut Batch<'_, M>) -> bool {
        if batch.len() < K {
            return false;
        }
        let edge = checked(next);
        let (first, _) = batch.split_front(K).into_raw();
        // SAFETY: so many objects lie there, which nobody owns any more; the node has an edge for each value
        // of `X`.
        unsafe {
            if K < SOME {
                self.append(edge, first, K);
            } else if K > 0 {
                self.close();
                Self::append_now((self.graph, self.node), self.dropped, edge, first, K);
            }
        }
        true
    }

    #[inline]
    fn send_batch(&mut self, next: X, batch: Batch<'_, M>) {
        let edge = checked(next);
        let (first, len) = batch.into_raw();
        // SAFETY: the batch owned them; the node has an edge for each value of `X`.
        unsafe { self.append_some(edge, first, len) };
    }

    #[inline]
    fn forward(&mut self, next: X, batch: Batch<'_, M>) {
        self.close();
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
                Self::append_apart((self.graph, self.node), self.dropped, edge, first, len);
            }
        }
    }
}
