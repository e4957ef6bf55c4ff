// SPDX-License-Identifier: BSD-3-Clause
//! Which nodes never run on their own: they process one object at a time, and so do all nodes that
//! send to them.

use crate::node::{EachNode, Node, Source};
use crate::topology::{Topology, Visitor};

/// For each node of a topology.
pub(super) fn of<T: Topology>(nodes: &mut T) -> Box<[bool]> {
    let mut kinds = Kinds(vec![false; T::NODES.len()]);
    nodes.visit(&mut kinds);
    let Kinds(each) = kinds;
    let senders_of = |target: usize| {
        (0..each.len())
            .filter(move |sender| T::NODES[*sender].edges.iter().any(|(_, to)| *to == target))
    };
    // A node that nobody sends to is never run, and has 0 calls (`topology!` makes no such node).
    let inside = |node: usize| {
        each[node]
            && senders_of(node).next().is_some()
            && senders_of(node).all(|sender| each[sender])
    };
    (0..each.len()).map(inside).collect()
}

/// For each node, whether it processes one object at a time.
struct Kinds(Vec<bool>);

impl<T: Topology> Visitor<T> for Kinds {
    fn source<const I: usize, S: Source<T::Object>>(&mut self, _: &mut S) {}

    fn node<const I: usize, N: Node<T::Object>>(&mut self, _: &mut N) {}

    fn each<const I: usize, N: EachNode<T::Object>>(
        &mut self,
        _: &mut T,
        _: impl Fn(&mut T) -> &mut N,
    ) {
        self.0[I] = true;
    }
}
