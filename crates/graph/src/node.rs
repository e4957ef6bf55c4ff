// SPDX-License-Identifier: BSD-3-Clause
//! What a node is, and how it sends.

use crate::batch::{Batch, Room};
use crate::next::Next;
use crate::object::Object;

/// A step of a graph. Its state is the value itself: each graph has its own, used by one thread at a time.
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
// That nodes take batches and outlets of any lifetime is why they cannot keep one. Executors count on it.
pub trait Node<M: Object>: Send {
    /// The edges; [`Nowhere`](crate::Nowhere) for a sink.
    type Next: Next;

    /// Processes a batch, which is never empty. Each object is to be sent on by `out`; what is left in the
    /// batch is dropped, and counted.
    fn process<O: Outlet<M, Self::Next>>(&mut self, batch: Batch<'_, M>, out: &mut O);
}

/// A step that looks at one object at a time and does not keep it. Give nodes this form where you can: the
/// fused executor takes an object through all such nodes on its way before it looks at the next one.
pub trait EachNode<M: Object>: Send {
    /// The edges.
    type Next: Next;

    /// Is told of an object some time before `each` may get it, so that the processor can be asked to fetch what
    /// this will look up, such as an entry of a large table. By default nothing is done. Objects for other nodes
    /// come here, too, and others never do: nothing may depend on it.
    #[inline(always)]
    fn ahead(&self, _object: &M) {}

    /// Processes an object, and says where it goes.
    fn each(&mut self, object: &mut M) -> Self::Next;
}

/// A step that objects come from: it runs once in each walk.
pub trait Source<M: Object>: Send {
    /// The edges.
    type Next: Next;

    /// Looks for objects, and sends them.
    fn poll<O: Outlet<M, Self::Next>>(&mut self, room: Room<'_, M>, out: &mut O);
}

/// The ways out of a node, given by the executor that runs it.
pub trait Outlet<M: Object, X: Next> {
    /// Sends one object.
    fn send(&mut self, next: X, object: M);

    /// Sends `K` objects with one look at the edge.
    fn send_array<const K: usize>(&mut self, next: X, objects: [M; K]);

    /// Sends the first `K` objects of a batch, as [`send_array`](Self::send_array) would, straight from where they
    /// lie; sends none, and says `false`, when there are fewer.
    #[inline]
    fn send_front<const K: usize>(&mut self, next: X, batch: &mut Batch<'_, M>) -> bool {
        match batch.take_array::<K>() {
            Some(objects) => self.send_array(next, objects),
            None => return false,
        }
        true
    }

    /// Sends objects by copying their pointers behind those that wait there.
    fn send_batch(&mut self, next: X, batch: Batch<'_, M>);

    /// Sends all that the node got, untouched, by swapping the two nodes' memory where nothing waits
    /// there: no pointer is copied. With part of a batch, or where something waits, it copies.
    fn forward(&mut self, next: X, batch: Batch<'_, M>);

    /// Sends each object where `choose` says. Neighbours that go the same way are sent together, in one
    /// piece when that is all.
    #[inline]
    fn sort(&mut self, batch: Batch<'_, M>, choose: impl FnMut(&mut M) -> X) {
        batch.for_runs(choose, |next, run| self.forward(next, run));
    }
}
