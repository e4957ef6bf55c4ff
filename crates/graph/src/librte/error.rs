// SPDX-License-Identifier: BSD-3-Clause
//! Why a graph was not made.

use dpdk::Errno;

use super::ip4::Ip4Route;

/// Why a graph was not made. Nothing is left of it, except as described for
/// [`NumberTaken`](Self::NumberTaken); registered nodes stay known by name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GraphError {
    /// An invalid name.
    #[error(
        "{name:?} cannot be the name of a {of}: 1 to {most} bytes, without NUL and without any of * ? [ ] \\ \""
    )]
    Name {
        /// The name.
        name: String,
        /// What the name is for: a graph or a node.
        of: &'static str,
        /// The most bytes.
        most: usize,
    },
    /// Two nodes with one name.
    #[error("two nodes are named {0:?}")]
    Duplicate(String),
    /// An edge without a target.
    #[error("the edge {edge:?} of the node {node:?} leads nowhere: name its target")]
    NoTarget {
        /// The node.
        node: String,
        /// Its edge.
        edge: &'static str,
    },
    /// An edge with two targets.
    #[error("the edge {edge:?} of the node {node:?} has two targets, {first:?} and {second:?}")]
    TwoTargets {
        /// The node.
        node: String,
        /// Its edge.
        edge: &'static str,
        /// The target named first.
        first: String,
        /// The one named second.
        second: String,
    },
    /// An edge to a node that the graph lacks.
    #[error(
        "the edge {edge:?} of the node {node:?} leads to {target:?}, which is not in the graph"
    )]
    UnknownTarget {
        /// The node.
        node: String,
        /// The name of its edge; for a C node, the original target.
        edge: String,
        /// The target.
        target: String,
    },
    /// An edge to a source.
    #[error("an edge of the node {node:?} leads to {target:?}, which is a source")]
    ToSource {
        /// The node.
        node: String,
        /// The source.
        target: String,
    },
    /// Objects could circulate for ever.
    #[error("the graph has a cycle: {}", .0.join(" -> "))]
    Cycle(Vec<String>),
    /// No objects would enter the graph.
    #[error("the graph has no source")]
    NoSource,
    /// A source without edges.
    #[error("the source {0:?} has no edge: its objects would go nowhere")]
    NoSink(String),
    /// A node that no edge leads to.
    #[error("no edge leads to the node {0:?}")]
    Unreached(String),
    /// More nodes than DPDK can count.
    #[error("a graph has at most 65,535 nodes, not {0}")]
    TooMany(usize),
    /// A C node that no library has registered.
    #[error("no node named {0:?} is known to DPDK: is the library that has it loaded?")]
    UnknownNode(String),
    /// The name belongs to another node.
    #[error("a node named {0:?} is already known to DPDK, with other edges: choose another name")]
    NodeTaken(String),
    /// DPDK refused to make it.
    #[error("DPDK did not register the node {node:?}: {errno}")]
    NodeRefused {
        /// The node.
        node: String,
        /// The reason.
        errno: Errno,
    },
    /// DPDK refused to create it: `EEXIST` for a name in use, `ENOMEM` (the tables of `ip4_lookup`
    /// take 64 MB and more).
    #[error("DPDK did not make the graph {graph:?}: {errno}")]
    Refused {
        /// The graph.
        graph: String,
        /// The reason.
        errno: Errno,
    },
    /// DPDK gave it the number of another graph, as old releases do after a graph was destroyed
    /// that was not the last. It is never freed, and its name stays in use.
    #[error(
        "DPDK gave the graph {0:?} the number of another one, and would end that instead: \
         end graphs in the reverse order, or use a later release of DPDK"
    )]
    NumberTaken(String),
    /// The edge to redirect belongs to none of DPDK's nodes in this graph.
    #[error("cannot redirect an edge of {0:?}: the graph has no such node of DPDK's")]
    NotOfDpdk(String),
    /// The edge to redirect does not exist.
    #[error("the node {node:?} has no edge {edge:?} that can be redirected (edges: {})", .known.join(", "))]
    NoEdge {
        /// The node.
        node: String,
        /// The edge.
        edge: String,
        /// Its edges that can be redirected.
        known: Vec<String>,
    },
    /// `ip4_rewrite` relies on what `ip4_lookup` writes to a packet.
    #[error(
        "an edge of the node {0:?} leads to \"ip4_rewrite\", which only takes packets for which ip4_lookup has found a route"
    )]
    Unlooked(String),
    /// The nodes of a port cannot be made now.
    #[error(
        "port {0} has no nodes yet, and gets none while a graph with ip4_rewrite exists: \
         let the first graph send to all ports"
    )]
    PortLate(u16),
    /// DPDK made no nodes for a port.
    #[error("DPDK made no nodes for port {port}: {errno}")]
    PortRefused {
        /// The port.
        port: u16,
        /// The reason.
        errno: Errno,
    },
    /// A receive queue that the port got after its nodes were made.
    #[error(
        "port {port} has no node for receive queue {queue}: when a graph first used it, which is when \
         DPDK makes them, it had {queues}"
    )]
    NoQueueNode {
        /// The port.
        port: u16,
        /// The queue.
        queue: u16,
        /// Queues that it had.
        queues: u16,
    },
    /// The layout of DPDK's transmit node is not the known one.
    #[error("queue layout unknown for the node {0:?} of this DPDK release")]
    QueueUnknown(String),
    /// An invalid route.
    #[error("route {route}: {what}")]
    Route {
        /// The route.
        route: Ip4Route,
        /// What is wrong with it.
        what: String,
    },
    /// Too many next hops.
    #[error("{0} next hops: DPDK's ip4_rewrite has room for 64")]
    NextHops(usize),
    /// DPDK refused a route: `ENOSPC` if its table is full, which has room for 1,024.
    #[error("DPDK did not take the route {route}: {errno}")]
    RouteRefused {
        /// The route.
        route: Ip4Route,
        /// The reason.
        errno: Errno,
    },
    /// A process has one table of routes for these nodes, which does not change.
    #[error("ip4_lookup has other routes already: all graphs of a process give it the same ones")]
    RoutesDiffer,
    /// The system does not report which NUMA node an lcore is on.
    #[error(
        "ip4_lookup has a table for each NUMA node, but the system does not report the lcore's node"
    )]
    NoSocket,
}
