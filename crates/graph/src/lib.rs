// SPDX-License-Identifier: BSD-3-Clause
//! Packet-processing graphs: nodes written once, run by DPDK's librte_graph or fused at compile time.
//!
//! # Lifecycle
//! A node is a value with a trait: [`Source`] where objects come from, [`Node`] for a batch at a time,
//! [`EachNode`] for one object at a time. Its edges are an enum, made by [`edges!`]. Nodes and where their
//! edges lead are written down by [`topology!`], once, and given to an executor: [`Librte`] or [`Fused`].
//! Walking the graph polls each source once and runs the nodes until nothing waits. A graph that also has
//! nodes in C, or whose shape the program learns when it runs, is put together by a [`GraphBuilder`].
//!
//! # Ownership
//! Objects are owned by the graph while they travel: a node sends each one to an edge, or leaves it in the
//! batch, where it is dropped and counted. A node's state is its value; each graph has its own.
//!
//! # Threads
//! A graph is `Send` and walked through `&mut self`: one graph for each lcore.
//!
//! # The two executors
//! [`Librte`] calls nodes by pointer and keeps what waits on the heap, as graphs in C do; a panic in a node
//! ends the program. [`Fused`] is one function: edges are constants, what waits lies on the stack, nodes that
//! look at one object at a time become straight code, and a panic unwinds. The order in which objects come
//! to a node that several edges lead to may differ between the two; where each object goes does not, but for what
//! [`Librte`] has no room for: it drops, and counts, what would be more than 65,535 objects waiting for one node.

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
