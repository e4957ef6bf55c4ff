// SPDX-License-Identifier: BSD-3-Clause
//! A graph that librte_graph has made, and its end.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_void};
use std::marker::PhantomData;
use std::ptr::NonNull;

use dpdk::{Eal, Errno};
use dpdk_sys::{layout, rte_graph, rte_node};

use super::error::GraphError;
use super::plan::{self, Planned, c_name};
use super::raw::{field, node_at, walk};
use super::register;
use crate::stats::{Counters, NodeStats};

/// Any NUMA node.
const ANY_SOCKET: i32 = -1;
/// `RTE_GRAPH_ID_INVALID`
const NO_GRAPH: u16 = u16::MAX;

/// A node of ours, as it was registered.
struct Ours {
    counters: *const Counters,
    edges: Vec<(String, String)>,
}

/// A graph, destroyed on drop.
pub(super) struct Created<'eal> {
    graph: NonNull<rte_graph>,
    id: u16,
    name: CString,
    /// Our nodes, by name.
    ours: BTreeMap<String, Ours>,
    eal: PhantomData<&'eal Eal>,
}

impl<'eal> Created<'eal> {
    /// Makes a graph of these nodes.
    ///
    /// # Safety
    /// What the nodes' `Work` points to lives as long as this, and is touched by nothing else while the
    /// graph is walked; all nodes take the same type of object.
    pub(super) unsafe fn new(
        _eal: &'eal Eal,
        name: &str,
        nodes: &[Planned],
    ) -> Result<Self, GraphError> {
        plan::check(nodes)?;
        let c_graph = c_name(name, "graph")?;
        for node in nodes.iter().filter(|node| node.work.is_some()) {
            register::node(node)?;
        }
        let names: Vec<CString> =
            nodes.iter().map(|node| c_name(&node.name, "node")).collect::<Result<_, _>>()?;
        let mut patterns: Vec<*const c_char> = names.iter().map(|name| name.as_ptr()).collect();
        let refused = || GraphError::Refused {
            graph: name.to_owned(),
            // SAFETY: reads a thread-local integer.
            errno: Errno(unsafe { dpdk_sys::lr_errno() }),
        };
        // SAFETY: names are C strings; DPDK copies them.
        let id = unsafe {
            dpdk_sys::lr_graph_create(
                c_graph.as_ptr(),
                ANY_SOCKET,
                patterns.as_mut_ptr(),
                patterns.len() as u16,
            )
        };
        if id == NO_GRAPH {
            return Err(refused());
        }
        // SAFETY: the name of a graph that exists.
        let graph = NonNull::new(unsafe { dpdk_sys::rte_graph_lookup(c_graph.as_ptr()) });
        let graph = graph.ok_or_else(refused)?;
        let mut created =
            Self { graph, id, name: c_graph, ours: BTreeMap::new(), eal: PhantomData };
        // SAFETY: the contract is the caller's.
        unsafe { created.install(nodes) };
        Ok(created)
    }

    /// Tells the graph's nodes what to run, again after what they run has moved or was touched. Panics
    /// when a node has other edges than before.
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

    /// Walks the graph once.
    ///
    /// # Safety
    /// What the nodes' `Work` points to is touched by nothing else meanwhile.
    #[inline]
    pub(super) unsafe fn walk<const STATS: bool>(&mut self) {
        // SAFETY: the graph lives until this is dropped; `&mut self` makes this the only walk.
        unsafe { walk::<STATS>(self.graph.as_ptr()) };
    }

    fn nodes(&self) -> Vec<*mut rte_node> {
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

    /// The graph as DPDK draws it for Graphviz.
    pub(super) fn dot(&self) -> String {
        let mut text: *mut c_char = std::ptr::null_mut();
        // SAFETY: the graph exists; on success the text is a C string, which is ours to free.
        unsafe {
            if dpdk_sys::lr_graph_export(self.name.as_ptr(), &raw mut text) != 0 {
                return String::new(); // No memory for it.
            }
            let dot = CStr::from_ptr(text).to_string_lossy().into_owned();
            dpdk_sys::lr_free(text.cast::<c_void>());
            // DPDK writes the name as it is, which Graphviz takes for words of its own.
            let name = self.name.to_string_lossy();
            dot.replacen(&format!("Digraph {name} "), &format!("Digraph \"{name}\" "), 1)
        }
    }
}

/// The name of a node of a graph.
fn name_of(node: *mut rte_node) -> String {
    // SAFETY: the node is valid, and its name is a C string inside it.
    unsafe { CStr::from_ptr((*node).name.as_ptr()) }.to_string_lossy().into_owned()
}

impl Drop for Created<'_> {
    fn drop(&mut self) {
        // SAFETY: the graph is ours, and nothing walks it.
        unsafe { dpdk_sys::rte_graph_destroy(self.id) };
    }
}
