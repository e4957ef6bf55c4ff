// SPDX-License-Identifier: BSD-3-Clause
//! Why a graph was not made.

use dpdk::Errno;

use super::ip4::Ip4Route;

/// Why a graph was not made. Nothing is left of it but what [`NumberTaken`](Self::NumberTaken) says, and nodes that were
/// registered stay known by name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GraphError {
    /// A name that DPDK cannot take.
    #[error(
        "{name:?} cannot be the name of a {of}: 1 to {most} bytes, without NUL and without any of * ? [ ] \\ \""
    )]
    Name {
        /// The name.
        name: String,
        /// What was to have it: a graph or a node.
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
        /// Its edge: the name, or for a C node the target that it had at first.
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
    /// Objects could go round for ever.
    #[error("the graph has a cycle: {}", .0.join(" -> "))]
    Cycle(Vec<String>),
    /// No objects would come in.
    #[error("the graph has no source")]
    NoSource,
    /// A source that nothing consumes from.
    #[error("the source {0:?} has no edge: nothing takes what comes from it")]
    NoSink(String),
    /// A node that nothing comes to.
    #[error("no edge leads to the node {0:?}")]
    Unreached(String),
    /// More nodes than DPDK can count.
    #[error("a graph has at most 65,535 nodes, not {0}")]
    TooMany(usize),
    /// A C node that no library has registered.
    #[error("no node named {0:?} is known to DPDK: is the library that has it loaded?")]
    UnknownNode(String),
    /// The name belongs to another node.
    #[error("a node named {0:?} is already known to DPDK, and is another one: choose another name")]
    NodeTaken(String),
    /// DPDK refused to make it.
    #[error("DPDK did not register the node {node:?}: {errno}")]
    NodeRefused {
        /// The node.
        node: String,
        /// The reason.
        errno: Errno,
    },
    /// DPDK refused to make it: `EEXIST` for a name in use, `ENOMEM` (the tables of `ip4_lookup` take 64 MB
    /// and more).
    #[error("DPDK did not make the graph {graph:?}: {errno}")]
    Refused {
        /// The graph.
        graph: String,
        /// The reason.
        errno: Errno,
    },
    /// DPDK gave it the number of another graph, as old releases do after one that was not the last has
    /// ended. It stays for ever, and its name is taken.
    #[error(
        "DPDK gave the graph {0:?} the number of another one, and would end that instead: \
         end graphs in the reverse order, or use a later release of DPDK"
    )]
    NumberTaken(String),
    /// An edge of a node that is not one of DPDK's in this graph was to lead elsewhere.
    #[error("no node of DPDK's in the graph is named {0:?}, whose edge is to lead elsewhere")]
    NotOfDpdk(String),
    /// A node of DPDK's lacks the edge that was to lead elsewhere.
    #[error("the node {node:?} has no edge {edge:?} that could lead elsewhere: it has {}", .known.join(", "))]
    NoEdge {
        /// The node.
        node: String,
        /// The edge.
        edge: String,
        /// Those that it has.
        known: Vec<String>,
    },
    /// `ip4_rewrite` believes what `ip4_lookup` has left in a packet.
    #[error(
        "an edge of the node {0:?} leads to \"ip4_rewrite\", which takes packets that ip4_lookup has found a route for alone"
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
    /// A receive queue that a port has been given since its nodes were made.
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
    /// DPDK's transmit node does not say its queue as is known of it.
    #[error("the node {0:?} of this DPDK keeps its queue where nobody knows")]
    QueueUnknown(String),
    /// A route that cannot be.
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
    /// DPDK did not take a route: `ENOSPC` when its table is full, which has room for 1,024.
    #[error("DPDK did not take the route {route}: {errno}")]
    RouteRefused {
        /// The route.
        route: Ip4Route,
        /// The reason.
        errno: Errno,
    },
    /// The process has one table of routes for these nodes, which does not change.
    #[error("ip4_lookup has other routes already: all graphs of a process give it the same ones")]
    RoutesDiffer,
    /// The system does not say which NUMA node an lcore is on.
    #[error("ip4_lookup has a table for each NUMA node, and nobody says on which one the lcore is")]
    NoSocket,
}
