// SPDX-License-Identifier: BSD-3-Clause
//! A picture of a topology for Graphviz, in the form in which librte_graph exports one: an edge a line, those
//! of sources blue.

use std::fmt::Write as _;

use crate::topology::Topology;

/// The picture of a topology under a name.
pub(crate) fn of<T: Topology>(name: &str) -> String {
    let mut text = format!("Digraph \"{name}\" {{\n\trankdir=LR;\n");
    for node in T::NODES {
        let colour = if node.source { " [color=blue]" } else { "" };
        for (_, target) in node.edges {
            // Writing to a string does not fail.
            let _ = writeln!(text, "\t\"{}\"->\"{}\"{colour}", node.name, T::NODES[*target].name);
        }
    }
    text.push_str("}\n");
    text
}
