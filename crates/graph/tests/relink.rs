// SPDX-License-Identifier: BSD-3-Clause
//! Topologies written by hand, whose nodes are replaced in `with_nodes`: librte_graph runs the new
//! ones, also when traced, and none if they are not found.
#![allow(clippy::unwrap_used, missing_docs)] // A test may.

#[path = "../../dpdk/tests/support/mod.rs"]
mod support;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;

use dpdk::{Eal, Mbuf, Mempool, PoolConfig};
use graph::{
    Batch, Executor, Librte, Node, NodeInfo, Nowhere, Outlet, Room, Source, Topology, Visitor,
};

/// Set in the process that is to end.
const CHILD: &str = "LINERATE_TEST_RELINK";

graph::edges! { pub enum Made { Packets } }

/// Gives out a packet in each walk.
struct Packets<'m>(&'m Mempool<'m>);

impl<'m> Source<Mbuf<'m>> for Packets<'m> {
    type Next = Made;

    fn poll<O: Outlet<Mbuf<'m>, Made>>(&mut self, mut room: Room<'_, Mbuf<'m>>, out: &mut O) {
        let _ = room.push(self.0.alloc().unwrap());
        out.forward(Made::Packets, room.into_batch());
    }
}

/// Counts packets.
struct Count(u64);

impl<'m> Node<Mbuf<'m>> for Count {
    type Next = Nowhere;

    fn process<O: Outlet<Mbuf<'m>, Nowhere>>(&mut self, batch: Batch<'_, Mbuf<'m>>, _: &mut O) {
        self.0 += batch.len() as u64;
    }
}

/// Counts on the heap, with another layout: `Count` would take it for an address.
struct Tally(Box<u64>);

impl<'m> Node<Mbuf<'m>> for Tally {
    type Next = Nowhere;

    fn process<O: Outlet<Mbuf<'m>, Nowhere>>(&mut self, batch: Batch<'_, Mbuf<'m>>, _: &mut O) {
        *self.0 += batch.len() as u64;
    }
}

enum Sink {
    Count(Count),
    Tally(Tally),
    Hidden,
}

struct Changing<'m> {
    packets: Packets<'m>,
    sink: Sink,
}

// SAFETY: what is shown are fields, or what is inside one, which nothing here replaces.
unsafe impl<'m> Topology for Changing<'m> {
    type Object = Mbuf<'m>;
    type PerNode<X> = [X; 2];
    type PerSource<X> = [X; 1];
    const NODES: &'static [NodeInfo] = &[
        NodeInfo { name: "relink_packets", source: true, edges: &[("Packets", 1)] },
        NodeInfo { name: "relink_sink", source: false, edges: &[] },
    ];

    fn per_node<X>(make: impl FnMut(usize) -> X) -> [X; 2] {
        std::array::from_fn(make)
    }

    fn visit<V: Visitor<Self>>(&mut self, visitor: &mut V) {
        visitor.source::<0, Packets<'m>>(&mut self.packets);
        match &mut self.sink {
            Sink::Count(count) => visitor.node::<1, Count>(count),
            Sink::Tally(tally) => visitor.node::<1, Tally>(tally),
            Sink::Hidden => panic!("there is no sink"),
        }
    }

    fn ahead(&self, _: usize, _: &Mbuf<'m>) {}

    fn straight(&mut self, at: usize, _: &mut Mbuf<'m>, _: impl FnMut(usize)) -> usize {
        at
    }
}

fn graph<'m>(eal: &'m Eal, pool: &'m Mempool<'m>, name: &str) -> Librte<'m, Changing<'m>> {
    let nodes = Changing { packets: Packets(pool), sink: Sink::Count(Count(0)) };
    Librte::new(eal, name, nodes).unwrap()
}

fn replace(graph: &mut Librte<'_, Changing<'_>>, sink: Sink) -> Sink {
    graph.with_nodes(|nodes| std::mem::replace(&mut nodes.sink, sink))
}

#[test]
fn nodes_are_run_as_what_they_are_now() {
    let eal = support::eal(&[]);
    let pool = Mempool::packet_pool(&eal, &PoolConfig::named("packets")).unwrap();
    if std::env::var_os(CHILD).is_some() {
        let mut graph = graph(&eal, &pool, "lost");
        graph.trace(std::io::sink(), u64::MAX);
        let hidden = catch_unwind(AssertUnwindSafe(|| replace(&mut graph, Sink::Hidden)));
        assert!(hidden.is_err());
        graph.trace(std::io::sink(), u64::MAX);
        let _ = catch_unwind(AssertUnwindSafe(|| graph.walk()));
        std::process::exit(0);
    }
    for traced in [false, true] {
        let mut graph = graph(&eal, &pool, "changing");
        if traced {
            graph.trace(std::io::sink(), u64::MAX);
        }
        graph.walk();
        let before = replace(&mut graph, Sink::Tally(Tally(Box::new(0))));
        graph.walk();
        graph.walk();
        let after = replace(&mut graph, Sink::Count(Count(0)));
        let (Sink::Count(count), Sink::Tally(tally)) = (before, after) else { unreachable!() };
        assert_eq!((count.0, *tally.0), (1, 2));
        assert_eq!(graph.traced().map(Result::unwrap), traced.then_some(3));
    }
    // Found again after they were lost.
    let mut graph = graph(&eal, &pool, "found");
    assert!(catch_unwind(AssertUnwindSafe(|| replace(&mut graph, Sink::Hidden))).is_err());
    replace(&mut graph, Sink::Tally(Tally(Box::new(0))));
    graph.walk();
    let Sink::Tally(tally) = replace(&mut graph, Sink::Count(Count(0))) else { unreachable!() };
    assert_eq!(*tally.0, 1);
}

#[test]
fn a_graph_whose_nodes_are_lost_is_not_walked() {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "nodes_are_run_as_what_they_are_now", "--nocapture"])
        .env(CHILD, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stderr);
    assert!(!child.status.success(), "{said}");
    assert!(said.contains("whose nodes could not be found again"), "{said}");
}
