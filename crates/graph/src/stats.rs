// SPDX-License-Identifier: BSD-3-Clause
//! Statistics of a node.

use std::cell::Cell;

/// A node's counters since its graph was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeStats {
    /// The node's name.
    pub name: String,
    /// Batches that it processed; for a source, the number of polls. `None` if not counted.
    pub calls: Option<u64>,
    /// Objects that it received; for a source, objects that it put into its room. `None` if not
    /// counted.
    pub objects: Option<u64>,
    /// TSC cycles spent in it; `None` if not counted. In a fused graph, consecutive nodes that
    /// process one object at a time are counted together: the first has the cycles of all of them.
    /// The others run inside it: those that get objects only from such nodes have neither calls nor
    /// cycles.
    pub cycles: Option<u64>,
    /// Objects that were dropped because the node left them in their batch; in librte_graph also
    /// those that it sent to a node for which 65,535 were waiting already.
    pub dropped: u64,
}

/// A node's counters while its graph runs.
#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) calls: u64,
    pub(crate) objects: Cell<u64>,
    pub(crate) cycles: u64,
    pub(crate) dropped: Cell<u64>,
}
