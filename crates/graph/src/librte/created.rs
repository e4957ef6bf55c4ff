// SPDX-License-Identifier: BSD-3-Clause
//! A graph that librte_graph has created, and its destruction.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char};
use std::marker::PhantomData;
use std::ptr::NonNull;

use dpdk::{Eal, Errno};
use dpdk_sys::{layout, rte_graph, rte_node};

use super::c_nodes::{self, CNodes};
use super::error::GraphError;
use super::library::{self, Library, NO_GRAPH};
use super::plan::{self, Planned, c_name};
use super::raw::{self, field, next, node_at, walk};
use super::register;
use super::run;
use crate::dot::Picture;
use crate::stats::{Counters, NodeStats};

/// A Rust node, as it was registered.
struct Ours {
    counters: *const Counters,
    edges: Vec<(String, String)>,
}

/// A graph, destroyed on drop.
pub(super) struct Created<'eal> {
    graph: NonNull<rte_graph>,
    id: u16,
    name: CString,
    /// The Rust nodes, by name.
    ours: BTreeMap<String, Ours>,
    /// True if `ip4_rewrite` is among its nodes.
    rewrites: bool,
    eal: PhantomData<&'eal Eal>,
}

impl<'eal> Created<'eal> {
    /// Creates a graph of these nodes and DPDK's own. `counted` selects whether it will be walked
    /// with statistics.
    ///
    /// # Safety
    /// The data that the nodes' `Work` points to lives as long as this, and nothing else accesses
    /// it while the graph is walked; all nodes take the same type of object. That is `Mbuf` if
    /// there are nodes of DPDK's, whose queues belong to this graph only.
    pub(super) unsafe fn new(
        eal: &'eal Eal,
        name: &str,
        mut nodes: Vec<Planned>,
        c_nodes: &CNodes,
        counted: bool,
    ) -> Result<Self, GraphError> {
        let c_graph = c_name(name, "graph")?;
        let mut library = library::lock();
        nodes.extend(c_nodes.plan(&mut library)?);
        if c_nodes.routes.is_some() {
            c_nodes::check(&nodes)?;
        }
        plan::check(&nodes)?;
        for node in nodes.iter().filter(|node| node.work.is_some()) {
            register::node(node)?;
        }
        let socket = c_nodes.socket(eal)?;
        let refused = |errno| GraphError::Refused { graph: name.to_owned(), errno };
        let (id, graph) = create(&c_graph, &nodes, socket)?.map_err(refused)?;
        let rewrites = nodes.iter().any(|node| node.name == c_nodes::REWRITE);
        if !library::is_first(id, &c_graph) {
            // The graph is never freed: DPDK would destroy another one. So its pointers to what new
            // nodes of a port would move stay as well.
            library.rewriting += usize::from(rewrites);
            return Err(GraphError::NumberTaken(name.to_owned()));
        }
        let mut created = Self {
            graph,
            id,
            name: c_graph,
            ours: BTreeMap::new(),
            rewrites: false,
            eal: PhantomData,
        };
        if nodes.iter().any(|node| node.work.is_none()) {
            created.grow();
        }
        // SAFETY: the contract is the caller's; the graph was made of these nodes.
        unsafe { created.install(&nodes) };
        // SAFETY: as above.
        let told = unsafe { c_nodes.install(id, &created.nodes()) }
            .and_then(|()| c_nodes.routes.as_ref().map_or(Ok(()), |it| library.add_routes(it)));
        if let Err(error) = told {
            created.end(&mut library);
            return Err(error);
        }
        created.rewrites = rewrites;
        library.rewriting += usize::from(rewrites);
        if !counted {
            library.uncounted.insert(created.name.clone());
        }
        Ok(created)
    }

    /// Destroys the graph, which is dropped next.
    fn end(&mut self, library: &mut Library) {
        library.rewriting -= usize::from(self.rewrites);
        library.uncounted.remove(&self.name);
        // SAFETY: the graph is ours, the only one of its number when it was made, and nothing walks it.
        unsafe { dpdk_sys::rte_graph_destroy(self.id) };
        self.id = NO_GRAPH;
    }

    /// Sets what the graph's nodes run, again after the nodes have moved or were changed. Panics if
    /// a node has other edges than before.
    ///
    /// # Safety
    /// As for `new`; the nodes are those that it was made of.
    pub(super) unsafe fn install(&mut self, nodes: &[Planned]) {
        let planned: BTreeMap<&str, _> = nodes
            .iter()
            .filter_map(|node| Some((node.name.as_str(), (node, node.work?))))
            .collect();
        for node in self.nodes() {
            let name = name_of(node);
            let Some((planned, work)) = planned.get(name.as_str()) else { continue };
            if let Some(before) = self.ours.get(&name) {
                assert!(before.edges == planned.edges, "the node {name:?} has changed its edges");
            }
            // SAFETY: the node is not running, and was registered with these edges.
            unsafe { work.install(node) };
            let edges = planned.edges.clone();
            self.ours.insert(name, Ours { counters: work.counters(), edges });
        }
    }

    /// Makes the Rust nodes end the program when they are walked, until they are installed again.
    pub(super) fn uninstall(&mut self) {
        for node in self.nodes() {
            if self.ours.contains_key(&name_of(node)) {
                // SAFETY: the node is valid, and `&mut self` says that none runs.
                unsafe { run::uninstall(node) };
            }
        }
    }

    /// Gives all nodes the most memory that they can have. C nodes ask for more by a 16-bit number,
    /// which the sum of waiting and arriving objects can exceed; they then write past the end of
    /// what they got. If there is no more memory, DPDK ends the program.
    fn grow(&mut self) {
        for node in self.nodes() {
            // SAFETY: the node is this graph's, which is not walked now.
            unsafe {
                if field::<u16, _>(node, layout::NODE_SIZE) < u16::MAX {
                    raw::grow(self.graph.as_ptr(), node, u16::MAX.into());
                }
            }
        }
    }

    /// Walks the graph once.
    ///
    /// # Safety
    /// Nothing else accesses what the nodes' `Work` points to meanwhile.
    #[inline]
    pub(super) unsafe fn walk<const STATS: bool>(&mut self) {
        // SAFETY: the graph lives until this is dropped; `&mut self` makes this the only walk.
        unsafe { walk::<STATS>(self.graph.as_ptr()) };
    }

    pub(super) fn nodes(&self) -> Vec<*mut rte_node> {
        let graph = self.graph.as_ptr();
        // SAFETY: the graph is valid; each of its nodes has the offset of the next.
        unsafe {
            let count: u32 = field(graph, layout::GRAPH_NB_NODES);
            let mut offset: u32 = field(graph, layout::GRAPH_NODES_START);
            (0..count)
                .map(|_| {
                    let node = node_at(graph, offset);
                    offset = field(node, layout::NODE_NEXT);
                    node
                })
                .collect()
        }
    }

    pub(super) fn stats<const STATS: bool>(&self) -> Vec<NodeStats> {
        let stats = |node| {
            let name = name_of(node);
            // SAFETY: the node is valid; our counters live as long as this.
            unsafe {
                NodeStats {
                    calls: STATS.then(|| field(node, layout::NODE_TOTAL_CALLS)),
                    objects: STATS.then(|| field(node, layout::NODE_TOTAL_OBJS)),
                    cycles: STATS.then(|| field(node, layout::NODE_TOTAL_CYCLES)),
                    dropped: self.ours.get(&name).map_or(0, |ours| (*ours.counters).dropped.get()),
                    name,
                }
            }
        };
        self.nodes().into_iter().map(stats).collect()
    }

    pub(super) fn name(&self) -> String {
        self.name.to_string_lossy().into_owned()
    }

    /// The graph for Graphviz.
    pub(super) fn dot(&self) -> String {
        let graph = self.graph.as_ptr();
        let mut picture = Picture::new(&self.name());
        // SAFETY: the graph is valid; its ring begins with the offsets of its sources, as many as its head
        // is less than 0; each node has as many targets as edges.
        unsafe {
            let sources: u32 = field(graph, layout::GRAPH_HEAD);
            let ring: *const u32 = field(graph, layout::GRAPH_CIR_START);
            let is_source = |node| {
                (sources as i32..0).any(|at| node_at(graph, *ring.offset(at as isize)) == node)
            };
            for node in self.nodes() {
                for edge in 0..field::<u16, _>(node, layout::NODE_NB_EDGES) {
                    let target = name_of(next(node, edge.into()));
                    picture.edge(&name_of(node), &target, is_source(node));
                }
            }
        }
        picture.done()
    }
}

/// The name of a node of a graph.
pub(super) fn name_of(node: *mut rte_node) -> String {
    // SAFETY: the node is valid, and its name is a C string inside it.
    unsafe { CStr::from_ptr((*node).name.as_ptr()) }.to_string_lossy().into_owned()
}

impl Drop for Created<'_> {
    fn drop(&mut self) {
        if self.id != NO_GRAPH {
            self.end(&mut library::lock());
        }
    }
}

/// Creates a graph of registered nodes. The outer error is this crate's, the inner one DPDK's. The
/// caller holds the lock.
fn create(
    graph: &CStr,
    nodes: &[Planned],
    socket: i32,
) -> Result<Result<(u16, NonNull<rte_graph>), Errno>, GraphError> {
    let names: Vec<CString> =
        nodes.iter().map(|node| c_name(&node.name, "node")).collect::<Result<_, _>>()?;
    let mut patterns: Vec<*const c_char> = names.iter().map(|name| name.as_ptr()).collect();
    let _led = register::Led::new(nodes)?;
    let count = u16::try_from(patterns.len()).map_err(|_| GraphError::TooMany(patterns.len()))?;
    // SAFETY: names are C strings; DPDK copies them, and finds a graph by the name that it was made with.
    unsafe {
        let id = dpdk_sys::lr_graph_create(graph.as_ptr(), socket, patterns.as_mut_ptr(), count);
        let made = if id == NO_GRAPH {
            None
        } else {
            NonNull::new(dpdk_sys::rte_graph_lookup(graph.as_ptr()))
        };
        // An error of a node's init function is passed on as it is, as a negative number.
        Ok(made.map(|graph| (id, graph)).ok_or_else(|| Errno(dpdk_sys::lr_errno().abs())))
    }
}
