// SPDX-License-Identifier: BSD-3-Clause
//! The traits of nodes, and how nodes send.

use crate::batch::{Batch, Room};
use crate::next::Next;
use crate::object::Object;

/// A node of a graph. Its state is the value itself: each graph has its own, used by one thread at
/// a time. A graph can move to another thread if all its nodes can (`Send`).
///
/// ```
/// use graph::{Batch, Node, Object, Outlet};
///
/// graph::edges! {
///     pub enum Parity { Even, Odd }
/// }
///
/// /// Sends even numbers one way and odd ones another.
/// struct Split;
///
/// impl<'n> Node<&'n u64> for Split {
///     type Next = Parity;
///
///     fn process<O: Outlet<&'n u64, Parity>>(&mut self, batch: Batch<'_, &'n u64>, out: &mut O) {
///         out.sort(batch, |number| if **number % 2 == 0 { Parity::Even } else { Parity::Odd });
///     }
/// }
/// ```
// Nodes take batches and outlets of any lifetime, so they cannot keep one. Executors rely on that.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is declared as `node` in a graph of `{M}`, but does not implement `Node<{M}>`",
    label = "not declared by its own trait",
    note = "write `impl Node<{M}> for ...` with `type Next` and `fn process`, or declare it by its other trait: `source` (Source), `node` (Node) or `each` (EachNode)"
)]
pub trait Node<M: Object> {
    /// The edges; [`Nowhere`](crate::Nowhere) for a sink.
    type Next: Next;

    /// Processes a batch, which is never empty. The node sends objects on through `out`; objects
    /// left in the batch are dropped, and counted.
    fn process<O: Outlet<M, Self::Next>>(&mut self, batch: Batch<'_, M>, out: &mut O);
}

/// A node that processes one object at a time and does not keep it. Prefer this form where
/// possible: the fused executor takes an object through consecutive nodes of this form before it
/// takes the next object.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is declared as `each` in a graph of `{M}`, but does not implement `EachNode<{M}>`",
    label = "not declared by its own trait",
    note = "write `impl EachNode<{M}> for ...` with `type Next` and `fn each`, or declare it by its other trait: `source` (Source), `node` (Node) or `each` (EachNode)"
)]
pub trait EachNode<M: Object> {
    /// The edges.
    type Next: Next;

    /// Called with an object some time before `each` may get it, to prefetch data that `each` will
    /// look up, such as an entry of a large table. Does nothing by default. It may be called with
    /// objects for other nodes, and not be called for some objects: nothing may depend on it.
    #[inline(always)]
    fn ahead(&self, _object: &M) {}

    /// Processes an object, and returns the edge that it is sent to.
    fn each(&mut self, object: &mut M) -> Self::Next;
}

/// A node that produces objects: it runs once in each walk.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is declared as `source` in a graph of `{M}`, but does not implement `Source<{M}>`",
    label = "not declared by its own trait",
    note = "write `impl Source<{M}> for ...` with `type Next` and `fn poll`, or declare it by its other trait: `source` (Source), `node` (Node) or `each` (EachNode)"
)]
pub trait Source<M: Object> {
    /// The edges.
    type Next: Next;

    /// Polls for objects, and sends them.
    fn poll<O: Outlet<M, Self::Next>>(&mut self, room: Room<'_, M>, out: &mut O);
}

/// Sends a node's objects; provided by the executor that runs it.
pub trait Outlet<M: Object, X: Next> {
    /// Sends one object.
    fn send(&mut self, next: X, object: M);

    /// Sends `K` objects to one edge.
    fn send_array<const K: usize>(&mut self, next: X, objects: [M; K]);

    /// Sends the first `K` objects of a batch, as [`send_array`](Self::send_array) does, directly
    /// from their memory. Returns `false`, and sends none, if there are fewer.
    #[inline]
    fn send_front<const K: usize>(&mut self, next: X, batch: &mut Batch<'_, M>) -> bool {
        match batch.take_array::<K>() {
            Some(objects) => self.send_array(next, objects),
            None => return false,
        }
        true
    }

    /// Sends objects by copying their pointers to the target's memory.
    fn send_batch(&mut self, next: X, batch: Batch<'_, M>);

    /// Sends a whole batch, as the node got it, by swapping the two nodes' memory if nothing is
    /// waiting for the target: no pointer is copied. If it is part of a batch, or if something is
    /// waiting, it copies.
    fn forward(&mut self, next: X, batch: Batch<'_, M>);

    /// Sends each object to the edge that `choose` returns. Adjacent objects with the same edge are
    /// sent together, and the whole batch at once if all have the same edge.
    #[inline]
    fn sort(&mut self, batch: Batch<'_, M>, choose: impl FnMut(&mut M) -> X) {
        batch.for_runs(choose, |next, run| self.forward(next, run));
    }
}
