// SPDX-License-Identifier: BSD-3-Clause
//! The operations of every executor.

use crate::stats::NodeStats;

/// A graph that can be walked.
pub trait Executor {
    /// Polls each source once and runs the nodes until no object is waiting.
    fn walk(&mut self);

    /// The counters of each node.
    fn stats(&self) -> Vec<NodeStats>;

    /// The graph in Graphviz's DOT format.
    fn dot(&self) -> String;
}
