// SPDX-License-Identifier: BSD-3-Clause
//! Packet-processing graphs: nodes written once, run by DPDK's librte_graph or fused at compile time.
//!
//! # Lifecycle
//! A node is a value with a trait: [`Source`] produces objects, [`Node`] processes a batch at a
//! time, [`EachNode`] one object at a time. Its edges are an enum, made by [`edges!`].
//! [`topology!`] declares the nodes and the targets of their edges, once; an executor runs them:
//! [`Librte`] or [`Fused`]. Walking the graph polls each source once and runs the nodes until
//! nothing is waiting. A [`GraphBuilder`] builds a graph at run time, or with nodes in C.
//!
//! # Ownership
//! The graph owns the objects in it: a node sends each object to an edge, or leaves it in the
//! batch, where it is dropped and counted. A node's state is its value; each graph has its own.
//!
//! # Threads
//! A graph is walked through `&mut self`: one graph for each lcore. It is `Send` if its nodes are. A graph that is made on the
//! thread that walks it may have nodes that share something, such as a [`Snapshot`](dpdk::qsbr::Snapshot) of tables.
//!
//! # The two executors
//! [`Librte`] calls nodes by pointer and keeps waiting objects on the heap, as graphs in C do; a
//! panic in a node ends the program. [`Fused`] is one function: edges are constants, waiting
//! objects are on the stack, nodes that process one object at a time become straight-line code, and
//! a panic unwinds. The two may differ in the order in which objects arrive at a node with several
//! incoming edges. They do not differ in where each object goes, except that [`Librte`] drops, and
//! counts, objects that would make more than 65,535 wait for one node.

#![warn(missing_debug_implementations)]

mod batch;
mod copy;
mod dot;
mod executor;
mod fused;
mod librte;
mod next;
mod node;
mod object;
mod stats;
mod topology;

pub use batch::{Batch, Drain, Room};
pub use executor::Executor;
pub use fused::Fused;
pub use librte::{
    ClusterError, ClusterNode, Graph, GraphBuilder, GraphError, Ip4NextHop, Ip4Route, Librte,
    cluster_stats,
};
pub use next::{Next, Nowhere};
pub use node::{EachNode, Node, Outlet, Source};
pub use object::Object;
pub use stats::NodeStats;
pub use topology::{NodeInfo, Topology, Visitor, target};

/// The guide's example runs.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/write-a-node.md")]
struct Guide;
