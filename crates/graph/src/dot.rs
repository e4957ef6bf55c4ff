// SPDX-License-Identifier: BSD-3-Clause
//! A picture of a graph for Graphviz, in the form of librte_graph of 22.11: one line for each edge,
//! those of sources blue. (Later releases draw it differently.)

use std::fmt::Write as _;

use crate::topology::Topology;

/// A named picture of a graph, to which edges are added.
pub(crate) struct Picture(String);

impl Picture {
    pub(crate) fn new(name: &str) -> Self {
        Self(format!("Digraph \"{name}\" {{\n\trankdir=LR;\n"))
    }

    pub(crate) fn edge(&mut self, from: &str, to: &str, source: bool) {
        let colour = if source { " [color=blue]" } else { "" };
        // Writing to a string does not fail.
        let _ = writeln!(self.0, "\t\"{from}\"->\"{to}\"{colour}");
    }

    pub(crate) fn done(mut self) -> String {
        self.0.push_str("}\n");
        self.0
    }
}

/// The picture of a topology under a name.
pub(crate) fn of<T: Topology>(name: &str) -> String {
    let mut picture = Picture::new(name);
    for node in T::NODES {
        for (_, target) in node.edges {
            picture.edge(node.name, T::NODES[*target].name, node.source);
        }
    }
    picture.done()
}
