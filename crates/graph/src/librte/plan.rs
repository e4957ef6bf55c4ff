// SPDX-License-Identifier: BSD-3-Clause
//! The planned nodes of a graph, and the check that they form one.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CString;

use dpdk_sys::layout;

use super::error::GraphError;
use super::register;
use super::run::Work;
use crate::next::Next;
use crate::topology::MOST_EDGES;

/// A planned node of a graph.
#[derive(Clone)]
pub(super) struct Planned {
    pub(super) name: String,
    pub(super) source: bool,
    /// Name and target of each edge, in the order of their indexes. An edge of a C node has the
    /// name of the target in DPDK.
    pub(super) edges: Vec<(String, String)>,
    /// The work that it runs; `None` for a C node.
    pub(super) work: Option<Work>,
    /// True if it is not known whether it is a source.
    pub(super) maybe_source: bool,
}

impl Planned {
    /// A Rust node; `targets` may name the edges in any order.
    pub(super) fn ours<X: Next>(
        name: &str,
        source: bool,
        targets: &[(X, &str)],
        work: Work,
    ) -> Result<Self, GraphError> {
        // DPDK counts edges in 16 bits; edges beyond those of a node are never used.
        const { assert!(X::NAMES.len() <= MOST_EDGES, "a node has at most 64 edges") };
        let mut edges = Vec::with_capacity(X::NAMES.len());
        for (index, edge) in X::NAMES.iter().enumerate() {
            let mut named = targets.iter().filter(|(next, _)| next.index() == index);
            let (_, target) =
                named.next().ok_or_else(|| GraphError::NoTarget { node: name.to_owned(), edge })?;
            if let Some((_, second)) = named.next() {
                return Err(GraphError::TwoTargets {
                    node: name.to_owned(),
                    edge,
                    first: (*target).to_owned(),
                    second: (*second).to_owned(),
                });
            }
            edges.push(((*edge).to_owned(), (*target).to_owned()));
        }
        Ok(Self { name: name.to_owned(), source, edges, work: Some(work), maybe_source: false })
    }

    /// A node that a C library has registered, with its edges there.
    pub(super) fn of_c(name: &str) -> Result<Self, GraphError> {
        let known = register::edges(&c_name(name, "node")?)
            .ok_or_else(|| GraphError::UnknownNode(name.to_owned()))?;
        let edges = known.into_iter().map(|target| (target.clone(), target));
        Ok(Self {
            name: name.to_owned(),
            source: false,
            edges: edges.collect(),
            work: None,
            maybe_source: false,
        })
    }
}

/// A graph's memory zone has its name, and DPDK's names for those are limited.
const LONGEST_OF_GRAPHS: usize = dpdk_sys::RTE_MEMZONE_NAMESIZE as usize - 1;

/// A name for C.
pub(super) fn c_name(name: &str, of: &'static str) -> Result<CString, GraphError> {
    let most = match of {
        "graph" => LONGEST_OF_GRAPHS.min(layout::GRAPH_NAME_SIZE - 1),
        _ => layout::NODE_NAME_SIZE - 1,
    };
    // DPDK treats names as patterns, and writes them into pictures.
    let fits =
        !name.is_empty() && name.len() <= most && !name.contains(['*', '?', '[', ']', '\\', '"']);
    let name_of = || GraphError::Name { name: name.to_owned(), of, most };
    if fits { CString::new(name).map_err(|_| name_of()) } else { Err(name_of()) }
}

/// Checks that the nodes form a graph in which every walk ends.
pub(super) fn check(nodes: &[Planned]) -> Result<(), GraphError> {
    let mut by_name = BTreeMap::new();
    for node in nodes {
        c_name(&node.name, "node")?;
        if by_name.insert(node.name.as_str(), node).is_some() {
            return Err(GraphError::Duplicate(node.name.clone()));
        }
    }
    let mut reached = BTreeSet::new();
    for node in nodes {
        if node.source && node.edges.is_empty() {
            return Err(GraphError::NoSink(node.name.clone()));
        }
        for (edge, target) in &node.edges {
            let Some(to) = by_name.get(target.as_str()) else {
                return Err(GraphError::UnknownTarget {
                    node: node.name.clone(),
                    edge: edge.clone(),
                    target: target.clone(),
                });
            };
            if to.source {
                return Err(GraphError::ToSource {
                    node: node.name.clone(),
                    target: target.clone(),
                });
            }
            reached.insert(target.as_str());
        }
    }
    let mut sources = 0;
    for node in nodes {
        if reached.contains(node.name.as_str()) {
            continue;
        }
        if !node.source && !node.maybe_source {
            return Err(GraphError::Unreached(node.name.clone()));
        }
        sources += 1;
    }
    check_cycles(nodes, &by_name)?;
    if sources == 0 { Err(GraphError::NoSource) } else { Ok(()) }
}

/// Follows the edges depth first; reaching a node of the current path again closes a cycle.
fn check_cycles(nodes: &[Planned], by_name: &BTreeMap<&str, &Planned>) -> Result<(), GraphError> {
    let mut done = BTreeSet::new();
    for start in nodes {
        // The path to the last node in it, each with the number of its edges followed so far.
        let mut way = vec![(start, 0)];
        while let Some((node, followed)) = way.last_mut() {
            if done.contains(node.name.as_str()) {
                way.pop();
                continue;
            }
            let Some((_, target)) = node.edges.get(*followed) else {
                done.insert(node.name.as_str());
                way.pop();
                continue;
            };
            *followed += 1;
            if let Some(first) = way.iter().position(|(node, _)| node.name == *target) {
                let mut cycle: Vec<_> =
                    way[first..].iter().map(|(node, _)| node.name.clone()).collect();
                cycle.push(target.clone());
                return Err(GraphError::Cycle(cycle));
            }
            way.push((by_name[target.as_str()], 0));
        }
    }
    Ok(())
}
