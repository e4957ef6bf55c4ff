// SPDX-License-Identifier: BSD-3-Clause
//! A node that panics: in librte_graph the program ends, with the panic's message and without unwinding
//! into C; fused the panic unwinds, and nothing that waited is leaked.
#![allow(clippy::unwrap_used)] // A test may.

mod support;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use std::sync::Arc;

use graph::{Batch, Executor, Fused, Librte, Node, Outlet, topology};
use support::{Found, Keep, Numbers, Object, Two};

/// Set in the process that is to end.
const CHILD: &str = "LINERATE_TEST_PANIC";

/// Sends one object, and panics at the next.
struct Faulty;

impl Node<Object> for Faulty {
    type Next = Two;

    fn process<O: Outlet<Object, Two>>(&mut self, mut batch: Batch<'_, Object>, out: &mut O) {
        let front = batch.split_front(1);
        out.send_batch(Two::A, front);
        panic!("a node has a fault");
    }
}

topology! {
    struct Breaking for Object {
        source numbers: Numbers => { Items => faulty },
        node faulty: Faulty => { A => kept, B => other },
        node kept: Keep,
        node other: Keep,
    }
}

/// Sends at once what it has got in three walks, and panics.
#[derive(Default)]
struct Hoard(Vec<Object>);

impl Node<Object> for Hoard {
    type Next = Found;

    fn process<O: Outlet<Object, Found>>(&mut self, batch: Batch<'_, Object>, out: &mut O) {
        self.0.extend(batch.drain());
        if self.0.len() >= 6 {
            self.0.drain(..).for_each(|item| out.send(Found::Items, item));
            panic!("a node has a fault");
        }
    }
}

topology! {
    struct Spilling for Object {
        source many: Numbers => { Items => hoard },
        node hoard: Hoard => { Items => hoarded },
        node hoarded: Keep,
    }
}

#[test]
fn what_found_no_room_does_not_outlive_a_panic() {
    let live = Arc::new(());
    let many = Numbers { next: 0, counts: vec![1, 2, 2, 2], live: live.clone() };
    let nodes = Spilling { many, hoard: Hoard::default(), hoarded: Keep::default() };
    let mut graph: Fused<Spilling, 2> = Fused::new(nodes);
    graph.walk();
    graph.walk();
    assert!(catch_unwind(AssertUnwindSafe(|| graph.walk())).is_err());
    // The test's, and the source's.
    assert_eq!(Arc::strong_count(&live), 2);
    graph.walk();
    assert_eq!(graph.nodes().hoard.0.len(), 1);
    assert!(graph.nodes().hoarded.numbers().is_empty());
}

fn breaking(live: &Arc<()>) -> Breaking {
    let numbers = Numbers { next: 0, counts: vec![5], live: live.clone() };
    Breaking { numbers, faulty: Faulty, kept: Keep::default(), other: Keep::default() }
}

#[test]
fn a_fused_graph_unwinds() {
    let live = Arc::new(());
    let mut graph: Fused<Breaking> = Fused::new(breaking(&live));
    let walked = catch_unwind(AssertUnwindSafe(|| graph.walk()));
    assert_eq!(*walked.unwrap_err().downcast::<&str>().unwrap(), "a node has a fault");
    assert_eq!(graph.stats()[1].dropped, 4);
    drop(graph);
    assert_eq!(Arc::strong_count(&live), 1);
}

#[test]
fn librte_graph_is_not_unwound_into() {
    if std::env::var_os(CHILD).is_some() {
        let eal = support::eal();
        let mut graph: Librte<'_, Breaking> =
            Librte::new(&eal, "breaking", breaking(&Arc::new(()))).unwrap();
        let _ = catch_unwind(AssertUnwindSafe(|| graph.walk()));
        std::process::exit(0);
    }
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "librte_graph_is_not_unwound_into", "--nocapture"])
        .env(CHILD, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stderr);
    assert!(!child.status.success(), "{said}");
    assert!(said.contains("a node has a fault"), "{said}");
    assert!(said.contains("cannot unwind"), "{said}");
}
