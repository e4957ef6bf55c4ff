// SPDX-License-Identifier: BSD-3-Clause
//! What every executor does.

use crate::stats::NodeStats;

/// A graph that can be walked.
pub trait Executor {
    /// Polls each source once and runs the nodes until no object waits.
    fn walk(&mut self);

    /// The counters of each node.
    fn stats(&self) -> Vec<NodeStats>;

    /// The graph as Graphviz draws it.
    fn dot(&self) -> String;
}
