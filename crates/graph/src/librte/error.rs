// SPDX-License-Identifier: BSD-3-Clause
//! Why a graph was not made.

use dpdk::Errno;

/// Why a graph was not made. Nothing is left of it, but nodes that were registered stay known by name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GraphError {
    /// A name that DPDK cannot take.
    #[error(
        "{0:?} cannot be the name of a {1}: 1 to 63 bytes, without NUL and without any of * ? [ ] \\ \""
    )]
    Name(String, &'static str),
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
        /// Its edge: the name, or for a C node the number.
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
    /// A node that nothing comes to.
    #[error("no edge leads to the node {0:?}")]
    Unreached(String),
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
    /// DPDK refused to make it: `EEXIST` for a name in use, `ENOMEM`.
    #[error("DPDK did not make the graph {graph:?}: {errno}")]
    Refused {
        /// The graph.
        graph: String,
        /// The reason.
        errno: Errno,
    },
}
