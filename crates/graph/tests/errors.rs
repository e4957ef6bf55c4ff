// SPDX-License-Identifier: BSD-3-Clause
//! Errors of invalid graphs name the cause, and no graph is left behind.
#![allow(clippy::unwrap_used)] // A test may.

mod support;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use graph::{
    Batch, Executor, Fused, GraphBuilder, GraphError, Next, Node, Nowhere, Outlet, Room, Source,
    topology,
};
use support::{Choose, Found, Four, Keep, Numbers, Object, Way};

type Builder<'eal> = GraphBuilder<'eal, Object>;

fn numbers() -> Numbers {
    Numbers { next: 0, counts: vec![3], live: Arc::new(()) }
}

fn choose() -> Choose {
    Choose { seed: 1, way: Way::Each }
}

fn all_to(target: &str) -> [(Four, &str); 4] {
    [Four::A, Four::B, Four::C, Four::D].map(|edge| (edge, target))
}

/// An edge whose number is out of range of its type's names.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Beyond {
    Only,
}

impl Next for Beyond {
    const NAMES: &'static [&'static str] = &["Only"];

    fn index(self) -> usize {
        1
    }
}

#[derive(Clone, Copy, Debug)]
enum By {
    Array,
    Front,
    Batch,
}

/// Sends by that edge.
struct Astray(By);

impl Node<Object> for Astray {
    type Next = Beyond;

    fn process<O: Outlet<Object, Beyond>>(&mut self, mut batch: Batch<'_, Object>, out: &mut O) {
        match self.0 {
            By::Array => out.send_array(Beyond::Only, batch.take_array::<2>().unwrap()),
            By::Front => assert!(out.send_front::<2>(Beyond::Only, &mut batch)),
            By::Batch => out.send_batch(Beyond::Only, batch),
        }
    }
}

topology! {
    struct Wrong for Object {
        source w_numbers: Numbers => { Items => w_astray },
        node w_astray: Astray => { Only => w_keep },
        node w_keep: Keep,
    }
}

#[test]
fn what_goes_by_an_edge_that_is_none_is_not_leaked() {
    for by in [By::Array, By::Front, By::Batch] {
        let live = Arc::new(());
        let w_numbers = Numbers { next: 0, counts: vec![5], live: live.clone() };
        let nodes = Wrong { w_numbers, w_astray: Astray(by), w_keep: Keep::default() };
        let mut graph: Fused<Wrong> = Fused::new(nodes);
        let said = catch_unwind(AssertUnwindSafe(|| graph.walk())).unwrap_err();
        let said = said.downcast_ref::<&str>();
        assert_eq!(said, Some(&"the index of an edge is out of range of its type's NAMES"));
        // The test's, and the source's.
        assert_eq!(Arc::strong_count(&live), 2, "{by:?}");
    }
}

/// One process has one Eal, so that this is one test.
#[test]
fn errors() {
    let eal = support::eal();
    let refused = |make: &dyn Fn(Builder<'_>) -> Builder<'_>| {
        let builder = make(Builder::new(&eal, "refused"));
        match builder.build::<true>() {
            Ok(_) => panic!("a graph was made"),
            Err(error) => error.to_string(),
        }
    };

    // Edges.
    assert_eq!(
        refused(&|graph| graph.source("e1-source", numbers(), &[]).node(
            "e1-sink",
            Keep::default(),
            &[]
        )),
        r#"the edge "Items" of the node "e1-source" leads nowhere: name its target"#
    );
    assert_eq!(
        refused(&|graph| graph
            .source(
                "e2-source",
                numbers(),
                &[(Found::Items, "e2-sink"), (Found::Items, "e2-other")]
            )
            .node("e2-sink", Keep::default(), &[])),
        r#"the edge "Items" of the node "e2-source" has two targets, "e2-sink" and "e2-other""#
    );
    assert_eq!(
        refused(&|graph| graph.source("e3-source", numbers(), &[(Found::Items, "e3-snik")]).node(
            "e3-sink",
            Keep::default(),
            &[]
        )),
        r#"the edge "Items" of the node "e3-source" leads to "e3-snik", which is not in the graph"#
    );
    assert_eq!(
        refused(&|graph| graph
            .source("e4-source", numbers(), &[(Found::Items, "e4-choose")])
            .node("e4-choose", choose(), &all_to("e4-source"))),
        r#"an edge of the node "e4-choose" leads to "e4-source", which is a source"#
    );

    // Shapes.
    assert_eq!(
        refused(&|graph| graph
            .source("s1-source", numbers(), &[(Found::Items, "s1-a")])
            .node("s1-a", choose(), &all_to("s1-b"))
            .node("s1-b", choose(), &all_to("s1-a"))),
        "the graph has a cycle: s1-a -> s1-b -> s1-a"
    );
    assert_eq!(
        refused(&|graph| graph.source("s2-source", numbers(), &[(Found::Items, "s2-a")]).node(
            "s2-a",
            choose(),
            &all_to("s2-a")
        )),
        "the graph has a cycle: s2-a -> s2-a"
    );
    assert_eq!(
        refused(&|graph| graph
            .source("s3-source", numbers(), &[(Found::Items, "s3-sink")])
            .node("s3-sink", Keep::default(), &[])
            .node("s3-alone", Keep::default(), &[])),
        r#"no edge leads to the node "s3-alone""#
    );
    assert_eq!(refused(&|graph| graph), "the graph has no source");
    assert_eq!(
        refused(&|graph| graph
            .source("s4-source", numbers(), &[(Found::Items, "s4-sink")])
            .node("s4-sink", Keep::default(), &[])
            .node("s4-sink", Keep::default(), &[])),
        r#"two nodes are named "s4-sink""#
    );

    // A source without an edge.
    struct Endless;
    impl Source<Object> for Endless {
        type Next = Nowhere;
        fn poll<O: Outlet<Object, Nowhere>>(&mut self, _: Room<'_, Object>, _: &mut O) {}
    }
    assert_eq!(
        refused(&|graph| graph.source("s5-source", Endless, &[])),
        r#"the source "s5-source" has no edge: its objects would go nowhere"#
    );

    // Names.
    for name in ["", "a*", "a\0b", "a\"b", &"n".repeat(64)] {
        let said = refused(&|graph| {
            graph.source("n-source", numbers(), &[(Found::Items, name)]).node(
                name,
                Keep::default(),
                &[],
            )
        });
        assert!(said.contains("cannot be the name of a node: 1 to 63 bytes"), "{said}");
    }
    // SAFETY: nothing runs: no library has such a node.
    let said = refused(&|graph| unsafe { graph.foreign_node("no_such_node") });
    assert_eq!(
        said,
        r#"no node named "no_such_node" is known to DPDK: is the library that has it loaded?"#
    );

    // A graph's name is that of its memory, too.
    let named = |name: &str| {
        Builder::new(&eal, name)
            .source("n-source", numbers(), &[(Found::Items, "n-sink")])
            .node("n-sink", Keep::default(), &[])
            .build::<true>()
    };
    let Err(long) = named(&"g".repeat(32)) else { panic!("a name of 32 bytes was taken") };
    let long = long.to_string();
    assert!(long.contains("cannot be the name of a graph: 1 to 31 bytes"), "{long}");
    drop(named(&"g".repeat(31)).unwrap());

    // A name that another graph has, and a node that is known with other edges.
    let made = |graph: &str, sink: &str| {
        Builder::new(&eal, graph)
            .source("m-source", numbers(), &[(Found::Items, sink)])
            .node(sink, Keep::default(), &[])
            .build::<true>()
    };
    let mut first = made("first", "m-sink").unwrap();
    let Err(GraphError::Refused { graph, .. }) = made("first", "m-sink") else {
        panic!("two graphs of one name")
    };
    assert_eq!(graph, "first");
    assert!(
        matches!(made("second", "m-other"), Err(GraphError::NodeTaken(node)) if node == "m-source")
    );

    // Several graphs of the same names, each with its own state; and a name is free again after its graph.
    let mut second = made("second", "m-sink").unwrap();
    first.walk();
    first.walk();
    second.walk();
    let objects = |graph: &graph::Graph<'_, Object>| graph.stats()[1].objects;
    assert_eq!((objects(&first), objects(&second)), (Some(3), Some(3)));
    drop(first);
    let first = made("first", "m-sink").unwrap();
    assert_eq!(objects(&first), Some(0));

    // What the graph reports of them.
    let dot = first.dot();
    assert!(dot.starts_with("Digraph \"first\" {"), "{dot}");
    assert!(dot.contains(r#""m-source"->"m-sink""#), "{dot}");
}
