// SPDX-License-Identifier: BSD-3-Clause
//! A topology run by librte_graph.

use std::fmt;
use std::io::Write;
use std::marker::PhantomData;
use std::ops::Range;
use std::ptr::NonNull;

use dpdk::{Eal, Mbuf};

use super::c_nodes::CNodes;
use super::created::Created;
use super::error::GraphError;
use super::plan::Planned;
use super::run::Work;
use super::trace::{Trace, Traced};
use crate::executor::Executor;
use crate::next::Next;
use crate::node::{EachNode, Node, Source};
use crate::object::assert_one_word;
use crate::stats::{Counters, NodeStats};
use crate::topology::{Targets, Topology, Visitor};

/// A topology run by DPDK's librte_graph. Its nodes are registered there under the names of their
/// fields.
///
/// `BURST` is the most objects that a source is asked for. `STATS` selects whether cycles, calls
/// and objects are counted for each node.
pub struct Librte<'eal, T: Topology, const BURST: usize = 256, const STATS: bool = true> {
    /// First, so that it is dropped while the nodes still exist, and the graph before what its
    /// nodes point to.
    trace: Option<Traced>,
    graph: Created<'eal>,
    /// A box: the graph points into it.
    nodes: NonNull<T>,
    /// As above: made from a boxed slice.
    counters: NonNull<[Counters]>,
    /// Invariant in `T`: a subtype may have other objects, although the compiler would accept it.
    owns: PhantomData<fn(T) -> T>,
}

impl<T: Topology, const BURST: usize, const STATS: bool> fmt::Debug
    for Librte<'_, T, BURST, STATS>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Librte").field("name", &self.graph.name()).finish_non_exhaustive()
    }
}

// SAFETY: the nodes are `Send`, and the counters are used by the walk alone, which needs `&mut self`.
unsafe impl<T: Topology + Send, const BURST: usize, const STATS: bool> Send
    for Librte<'_, T, BURST, STATS>
{
}

impl<'eal, T: Topology, const BURST: usize, const STATS: bool> Librte<'eal, T, BURST, STATS> {
    /// Makes a graph of these nodes. No other graph may have its name.
    ///
    /// # Errors
    /// See [`GraphError`].
    pub fn new(eal: &'eal Eal, name: &str, nodes: T) -> Result<Self, GraphError> {
        const { assert_one_word::<T::Object>() };
        let counters: Box<[Counters]> = T::NODES.iter().map(|_| Counters::default()).collect();
        let mut parts = Parts {
            nodes: NonNull::from(Box::leak(Box::new(nodes))),
            counters: NonNull::from(Box::leak(counters)),
        };
        let planned = parts.plan::<BURST>();
        // SAFETY: the parts live until the graph has ended, and are touched only through `&mut self`.
        let graph = unsafe { Created::new(eal, name, planned, &CNodes::default(), STATS) }?;
        let (nodes, counters) = parts.into_inner();
        Ok(Self { trace: None, graph, nodes, counters, owns: PhantomData })
    }

    /// Runs code with the nodes, between two walks. If [`Topology::visit`] panics afterwards,
    /// another walk ends the program.
    pub fn with_nodes<R>(&mut self, work: impl FnOnce(&mut T) -> R) -> R {
        let nodes = self.nodes.as_ptr();
        self.graph.uninstall();
        if let Some(trace) = &self.trace {
            // SAFETY: the trace is this graph's, whose nodes were all told just now.
            unsafe { trace.renew() };
        }
        let relink = Relink(self);
        // SAFETY: the box is the graph's, which is not walked now and borrowed mutably.
        let result = work(unsafe { &mut *nodes });
        drop(relink);
        result
    }
}

impl<'m, T, const BURST: usize, const STATS: bool> Librte<'_, T, BURST, STATS>
where
    T: Topology<Object = Mbuf<'m>>,
{
    /// Writes packets to a file as [`GraphBuilder::trace`](crate::GraphBuilder::trace) does, from
    /// now on.
    pub fn trace(&mut self, out: impl Write + Send + 'static, packets: u64) {
        self.trace = None; // Nodes forget the old one first.
        let name = self.graph.name();
        let trace = Trace::new(Box::new(out), &name, packets);
        // SAFETY: a graph of packets, which the trace is dropped before.
        self.trace = Some(unsafe { Traced::new(trace, &self.graph) });
    }

    /// The number of packets that the trace has written; `None` without one.
    ///
    /// # Errors
    /// The error that ended the trace; returned once.
    pub fn traced(&self) -> Option<std::io::Result<u64>> {
        self.trace.as_ref().map(Traced::written)
    }
}

/// Gives the graph new pointers to its nodes after they may have changed, even after a panic.
struct Relink<'r, 'eal, T: Topology, const BURST: usize, const STATS: bool>(
    &'r mut Librte<'eal, T, BURST, STATS>,
);

impl<T: Topology, const BURST: usize, const STATS: bool> Drop for Relink<'_, '_, T, BURST, STATS> {
    fn drop(&mut self) {
        let planned = plan::<T, BURST>(self.0.nodes, self.0.counters);
        // SAFETY: as in `new`.
        unsafe { self.0.graph.install(&planned) };
        if let Some(trace) = &self.0.trace {
            // SAFETY: as in `with_nodes`.
            unsafe { trace.renew() };
        }
    }
}

impl<T: Topology, const BURST: usize, const STATS: bool> Executor for Librte<'_, T, BURST, STATS> {
    #[inline]
    fn walk(&mut self) {
        // SAFETY: the nodes and their counters are touched by the walk alone while `self` is borrowed.
        unsafe { self.graph.walk::<STATS>() };
    }

    fn stats(&self) -> Vec<NodeStats> {
        self.graph.stats::<STATS>()
    }

    fn dot(&self) -> String {
        self.graph.dot()
    }
}

impl<T: Topology, const BURST: usize, const STATS: bool> Drop for Librte<'_, T, BURST, STATS> {
    fn drop(&mut self) {
        // What the graph points to is freed before the graph, which does not access it then.
        drop(Parts { nodes: self.nodes, counters: self.counters });
    }
}

/// The boxes that a graph points into, freed on drop.
struct Parts<T> {
    nodes: NonNull<T>,
    counters: NonNull<[Counters]>,
}

impl<T: Topology> Parts<T> {
    fn plan<const BURST: usize>(&mut self) -> Vec<Planned> {
        plan::<T, BURST>(self.nodes, self.counters)
    }

    fn into_inner(self) -> (NonNull<T>, NonNull<[Counters]>) {
        let this = std::mem::ManuallyDrop::new(self);
        (this.nodes, this.counters)
    }
}

impl<T> Drop for Parts<T> {
    fn drop(&mut self) {
        // SAFETY: both came from boxes, and nothing uses them any more.
        unsafe {
            drop(Box::from_raw(self.nodes.as_ptr()));
            drop(Box::from_raw(self.counters.as_ptr()));
        }
    }
}

/// The planned nodes of a topology for librte_graph.
fn plan<T: Topology, const BURST: usize>(
    mut nodes: NonNull<T>,
    counters: NonNull<[Counters]>,
) -> Vec<Planned> {
    let mut plan = Plan::<T, BURST> {
        nodes,
        counters: counters.cast(),
        planned: Vec::new(),
        parts: Vec::new(),
        topology: PhantomData,
    };
    // SAFETY: the box is the caller's, and the graph is not walked now.
    unsafe { nodes.as_mut() }.visit(&mut plan);
    // The graph keeps pointers to the nodes shown: no part may be shown twice.
    plan.parts.retain(|part| !part.is_empty());
    plan.parts.sort_by_key(|part| part.start);
    assert!(
        plan.planned.len() == T::NODES.len()
            && plan.parts.is_sorted_by(|one, next| one.end <= next.start),
        "a topology visits a node twice, or not all nodes"
    );
    plan.planned
}

struct Plan<T, const BURST: usize> {
    nodes: NonNull<T>,
    counters: NonNull<Counters>,
    planned: Vec<Planned>,
    /// The address range of each node in the topology.
    parts: Vec<Range<usize>>,
    topology: PhantomData<T>,
}

impl<T: Topology, const BURST: usize> Plan<T, BURST> {
    fn counters<const I: usize>(&self) -> *const Counters {
        const { assert!(I < T::NODES.len()) };
        // SAFETY: there is one for each node.
        unsafe { self.counters.add(I).as_ptr() }
    }

    fn push<X: Next, N, const I: usize>(&mut self, source: bool, node: *const N, work: Work) {
        let inorder = self.planned.len() == I && T::NODES[I].source == source;
        assert!(inorder, "a topology visits its nodes in another order than NODES has");
        let start = node.addr().wrapping_sub(self.nodes.as_ptr().addr());
        let inside = start <= size_of::<T>() && size_of::<N>() <= size_of::<T>() - start;
        assert!(inside, "a topology visits a node that is not inside it");
        self.parts.push(start..start + size_of::<N>());
        // Derived from the box's pointer: the reference passed here is invalidated by the next
        // borrow.
        // SAFETY: the range was just checked.
        let work = work.at(unsafe { self.nodes.as_ptr().byte_add(start) }.cast());
        let targets = const { &Targets::<T, X, I>::BY_INDEX };
        let edges = X::NAMES.iter().zip(targets);
        let edges =
            edges.map(|(edge, target)| ((*edge).to_owned(), T::NODES[*target].name.to_owned()));
        let node = &T::NODES[I];
        self.planned.push(Planned {
            name: node.name.to_owned(),
            source: node.source,
            edges: edges.collect(),
            work: Some(work),
            maybe_source: false,
        });
    }
}

impl<T: Topology, const BURST: usize> Visitor<T> for Plan<T, BURST> {
    fn source<const I: usize, S: Source<T::Object>>(&mut self, source: &mut S) {
        let work = Work::of_source::<T::Object, S, BURST>(source, self.counters::<I>());
        self.push::<S::Next, S, I>(true, source, work);
    }

    fn node<const I: usize, N: Node<T::Object>>(&mut self, node: &mut N) {
        let work = Work::of_node::<T::Object, N>(node, self.counters::<I>());
        self.push::<N::Next, N, I>(false, node, work);
    }

    fn each<const I: usize, N: EachNode<T::Object>>(
        &mut self,
        nodes: &mut T,
        node: impl Fn(&mut T) -> &mut N,
    ) {
        let node: *mut N = node(nodes);
        let work = Work::of_each::<T::Object, N>(node, self.counters::<I>());
        self.push::<N::Next, N, I>(false, node, work);
    }
}
