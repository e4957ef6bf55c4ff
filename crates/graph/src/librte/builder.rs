// SPDX-License-Identifier: BSD-3-Clause
//! Graphs built at run time, of Rust nodes and C nodes.

use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;

use dpdk::Eal;

use super::c_nodes::CNodes;
use super::created::Created;
use super::error::GraphError;
use super::library;
use super::plan::Planned;
use super::run::Work;
use super::trace::{Trace, Traced};
use crate::executor::Executor;
use crate::node::{EachNode, Node, Source};
use crate::object::{Object, assert_one_word};
use crate::stats::{Counters, NodeStats};

/// The most objects that a source is asked for: `RTE_GRAPH_BURST_SIZE` as Debian builds DPDK.
const BURST: usize = 256;

/// Builds a graph.
///
/// ```no_run
/// use dpdk::Mbuf;
/// use graph::{Batch, Executor, GraphBuilder, Node, Nowhere, Outlet, Room, Source};
///
/// graph::edges! { pub enum Received { Packets } }
///
/// struct Receive<'port>(dpdk::RxQueue<'port>);
/// impl<'port: 'm, 'm> Source<Mbuf<'m>> for Receive<'port> {
///     type Next = Received;
///     fn poll<O: Outlet<Mbuf<'m>, Received>>(&mut self, mut room: Room<'_, Mbuf<'m>>, out: &mut O) {
///         room.receive(&mut self.0);
///         out.forward(Received::Packets, room.into_batch());
///     }
/// }
///
/// struct Send<'port>(dpdk::TxQueue<'port>);
/// impl<'m> Node<Mbuf<'m>> for Send<'_> {
///     type Next = Nowhere;
///     fn process<O: Outlet<Mbuf<'m>, Nowhere>>(&mut self, mut batch: Batch<'_, Mbuf<'m>>, _: &mut O) {
///         batch.send_by(&mut self.0); // what the driver does not take is dropped, and counted
///     }
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let (eal, _) = dpdk::Eal::init(std::env::args_os())?;
/// # let pool = dpdk::Mempool::packet_pool(&eal, &dpdk::PoolConfig::named("packets"))?;
/// # let port = eal.take_port(eal.ports()[0])?;
/// # let config = dpdk::PortConfig {
/// #     rx: vec![dpdk::RxConfig::new(&pool)],
/// #     tx: vec![dpdk::TxConfig::default()],
/// #     ..dpdk::PortConfig::default()
/// # };
/// # let mut port = port.configure(&config)?.start()?;
/// let mut queues = port.queues();
/// let (rx, tx) = (queues.rx.remove(0), queues.tx.remove(0));
/// let mut graph = GraphBuilder::new(&eal, "echo")
///     .source("receive", Receive(rx), &[(Received::Packets, "send")])
///     .node("send", Send(tx), &[])
///     .build::<true>()?;
/// for _ in 0..1_000_000 {
///     graph.walk();
/// }
/// # Ok(())
/// # }
/// ```
#[must_use = "a builder makes nothing until `build`"]
pub struct GraphBuilder<'eal, M: Object> {
    eal: &'eal Eal,
    pub(super) name: String,
    /// The requested nodes, in order; the first error is what `build` returns.
    planned: Result<Vec<Planned>, GraphError>,
    pub(super) c_nodes: CNodes,
    pub(super) trace: Option<Trace>,
    owned: Vec<Owned<'eal>>,
    /// `M` as argument and as result: otherwise a source of short-lived objects could be added
    /// after a node for long-lived ones.
    object: PhantomData<fn(M) -> M>,
}

impl<M: Object> fmt::Debug for GraphBuilder<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GraphBuilder").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A node, or the data that it runs with, on the heap; freed on drop.
struct Owned<'eal>(NonNull<dyn Anything + 'eal>);

trait Anything {}
impl<T> Anything for T {}

impl<'eal> Owned<'eal> {
    fn new<N: 'eal>(node: N) -> (Self, *mut N, *const Counters) {
        let both = Box::into_raw(Box::new((node, Counters::default())));
        // SAFETY: just made; and a box is not null.
        unsafe { (Self(NonNull::new_unchecked(both)), &raw mut (*both).0, &raw const (*both).1) }
    }
}

impl Drop for Owned<'_> {
    fn drop(&mut self) {
        // SAFETY: it came from a box, and the graph that pointed to it is gone.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

impl<'eal, M: Object> GraphBuilder<'eal, M> {
    /// A graph without nodes. No other graph may have its name.
    pub fn new(eal: &'eal Eal, name: &str) -> Self {
        const { assert_one_word::<M>() };
        Self {
            eal,
            name: name.to_owned(),
            planned: Ok(Vec::new()),
            c_nodes: CNodes::default(),
            trace: None,
            owned: Vec::new(),
            object: PhantomData,
        }
    }

    /// Keeps a value for as long as the graph lives.
    pub(super) fn keep<T: 'eal>(&mut self, it: T) {
        self.owned.push(Owned::new(it).0);
    }

    fn plan(mut self, node: Result<Planned, GraphError>) -> Self {
        if let Ok(planned) = &mut self.planned {
            match node {
                Ok(node) => planned.push(node),
                Err(error) => self.planned = Err(error),
            }
        }
        self
    }

    /// Adds a source. DPDK keeps its name and the names of its targets for the rest of the process:
    /// graphs for several lcores use the same names.
    pub fn source<S: Source<M> + Send + 'eal>(
        mut self,
        name: &str,
        source: S,
        targets: &[(S::Next, &str)],
    ) -> Self {
        let (owned, source, counters) = Owned::new(source);
        self.owned.push(owned);
        let work = Work::of_source::<M, S, BURST>(source, counters);
        self.plan(Planned::ours(name, true, targets, work))
    }

    /// Adds a node, known to DPDK as a [`source`](Self::source) is.
    pub fn node<N: Node<M> + Send + 'eal>(
        mut self,
        name: &str,
        node: N,
        targets: &[(N::Next, &str)],
    ) -> Self {
        let (owned, node, counters) = Owned::new(node);
        self.owned.push(owned);
        let work = Work::of_node::<M, N>(node, counters);
        self.plan(Planned::ours(name, false, targets, work))
    }

    /// Adds a node that processes one object at a time.
    pub fn each<N: EachNode<M> + Send + 'eal>(
        mut self,
        name: &str,
        node: N,
        targets: &[(N::Next, &str)],
    ) -> Self {
        let (owned, node, counters) = Owned::new(node);
        self.owned.push(owned);
        let work = Work::of_each::<M, N>(node, counters);
        self.plan(Planned::ours(name, false, targets, work))
    }

    /// Adds a node in C that a library has registered.
    ///
    /// # Safety
    /// Its function takes what `M` points to, sends each object to one of its edges or frees it,
    /// and follows the rules of librte_graph. Anything that it must be given before it runs has
    /// been given to it.
    pub unsafe fn foreign_node(self, name: &str) -> Self {
        // DPDK's list of nodes, and their edges, change under this lock.
        let _library = library::lock();
        // The library does not report whether it is a source: it is one if no edge leads to it.
        self.plan(Planned::of_c(name).map(|node| Planned { maybe_source: true, ..node }))
    }

    /// Builds the graph.
    ///
    /// # Errors
    /// The first error, see [`GraphError`].
    pub fn build<const STATS: bool>(self) -> Result<Graph<'eal, M, STATS>, GraphError> {
        let planned = self.planned?;
        // SAFETY: what the nodes point to lives in `owned` until the graph has ended, and nothing else
        // looks at it, as do the queues of DPDK's nodes; each node takes `M`, and DPDK's are added to graphs of
        // `Mbuf`s alone.
        let graph = unsafe { Created::new(self.eal, &self.name, planned, &self.c_nodes, STATS) }?;
        // SAFETY: only a graph of packets has a trace, which its drop order ends first.
        let trace = self.trace.map(|trace| unsafe { Traced::new(trace, &graph) });
        Ok(Graph { trace, graph, _owned: self.owned, object: PhantomData })
    }
}

/// A graph that librte_graph walks, put together by a [`GraphBuilder`].
pub struct Graph<'eal, M: Object, const STATS: bool = true> {
    /// First, so that it is dropped while the nodes still exist, and the graph before what its
    /// nodes point to.
    trace: Option<Traced>,
    graph: Created<'eal>,
    _owned: Vec<Owned<'eal>>,
    object: PhantomData<M>,
}

impl<M: Object, const STATS: bool> fmt::Debug for Graph<'_, M, STATS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Graph").field("name", &self.graph.name()).finish_non_exhaustive()
    }
}

// SAFETY: nodes are `Send` (see `GraphBuilder::node`), and used by the walk alone, which needs `&mut self`.
unsafe impl<M: Object, const STATS: bool> Send for Graph<'_, M, STATS> {}

impl<M: Object, const STATS: bool> Graph<'_, M, STATS> {
    /// The number of packets that the graph's [trace](GraphBuilder::trace) has written; `None` for
    /// a graph without one.
    ///
    /// # Errors
    /// The error that ended the trace; returned once.
    pub fn traced(&self) -> Option<std::io::Result<u64>> {
        self.trace.as_ref().map(Traced::written)
    }
}

impl<M: Object, const STATS: bool> Executor for Graph<'_, M, STATS> {
    #[inline]
    fn walk(&mut self) {
        // SAFETY: the nodes are used by the walk alone.
        unsafe { self.graph.walk::<STATS>() };
    }

    fn stats(&self) -> Vec<NodeStats> {
        self.graph.stats::<STATS>()
    }

    fn dot(&self) -> String {
        self.graph.dot()
    }
}
