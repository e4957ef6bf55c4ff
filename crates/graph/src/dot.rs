// SPDX-License-Identifier: BSD-3-Clause
//! A picture of a topology, in the language of Graphviz and in the form in which librte_graph exports one:
//! sources blue, sinks orange.

use std::fmt::Write as _;

use crate::topology::Topology;

/// The picture of a topology under a name.
pub(crate) fn of<T: Topology>(name: &str) -> String {
    let mut text = format!("digraph \"{name}\" {{\n\trankdir=LR;\n");
    for node in T::NODES {
        let colour = match (node.source, node.edges.is_empty()) {
            (true, _) => " [color=blue]",
            (_, true) => " [color=darkorange]",
            _ => "",
        };
        // Writing to a string does not fail.
        let _ = writeln!(text, "\t\"{}\"{colour};", node.name);
        for (_, target) in node.edges {
            let _ = writeln!(text, "\t\"{}\" -> \"{}\";", node.name, T::NODES[*target].name);
        }
    }
    text.push_str("}\n");
    text
}
