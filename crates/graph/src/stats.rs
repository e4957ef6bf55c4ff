// SPDX-License-Identifier: BSD-3-Clause
//! What happened in a node.

use std::cell::Cell;

/// A node's counters since its graph was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeStats {
    /// The node's name.
    pub name: String,
    /// Batches that it processed; for a source, times that it was polled. `None` where that is not counted.
    pub calls: Option<u64>,
    /// Objects that came to it; for a source, that it put into its room. `None` where that is
    /// not counted.
    pub objects: Option<u64>,
    /// TSC cycles spent in it; `None` where that is not counted. In a fused graph the first of several nodes
    /// that look at one object at a time is counted the cycles of all of them. The others run inside it: those
    /// that get objects from such nodes alone have neither calls nor cycles.
    pub cycles: Option<u64>,
    /// Objects that it left in their batch, and which were dropped for that; and in librte_graph those that it sent to
    /// a node for which 65,535 waited already.
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
