// SPDX-License-Identifier: BSD-3-Clause
//! A node of any kind that panics. In librte_graph the program ends, with the panic's message and
//! without unwinding into C; in a fused graph the panic unwinds, and no waiting object is leaked.
#![allow(clippy::unwrap_used)] // A test may.

mod support;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use std::sync::Arc;

use graph::{
    Batch, EachNode, Executor, Fused, Librte, Node, Outlet, Room, Source, Topology, topology,
};
use support::{Found, Item, Keep, Numbers, Object, Two};

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

/// The first object goes one way and the second another; it panics at the third.
struct FaultyEach;

impl EachNode<Object> for FaultyEach {
    type Next = Two;

    fn each(&mut self, item: &mut Object) -> Two {
        match item.number {
            0 => Two::A,
            1 => Two::B,
            _ => panic!("a node of single objects has a fault"),
        }
    }
}

topology! {
    struct BreakingEach for Object {
        source e_numbers: Numbers => { Items => e_faulty },
        each e_faulty: FaultyEach => { A => e_kept, B => e_other },
        node e_kept: Keep,
        node e_other: Keep,
    }
}

/// Finds three objects, and panics: before it sends one, or after it.
struct FaultySource {
    sends: bool,
    live: Arc<()>,
}

impl Source<Object> for FaultySource {
    type Next = Found;

    fn poll<O: Outlet<Object, Found>>(&mut self, mut room: Room<'_, Object>, out: &mut O) {
        for number in 0..3 {
            let item = Item { number, visits: 0, live: self.live.clone() };
            assert!(room.push(Box::new(item)).is_ok());
        }
        if self.sends {
            let mut batch = room.into_batch();
            let front = batch.split_front(1);
            out.send_batch(Found::Items, front);
            panic!("a source has a fault");
        }
        panic!("a source has a fault");
    }
}

topology! {
    /// Objects wait already when the source panics.
    struct BreakingSource for Object {
        source s_numbers: Numbers => { Items => s_kept },
        source s_faulty: FaultySource => { Items => s_kept },
        node s_kept: Keep,
    }
}

/// Sends its batch at once in three walks, then panics.
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

fn five(live: &Arc<()>) -> Numbers {
    Numbers { next: 0, counts: vec![5], live: live.clone() }
}

fn breaking(live: &Arc<()>) -> Breaking {
    let (kept, other) = (Keep::default(), Keep::default());
    Breaking { numbers: five(live), faulty: Faulty, kept, other }
}

fn breaking_each(live: &Arc<()>) -> BreakingEach {
    let (e_kept, e_other) = (Keep::default(), Keep::default());
    BreakingEach { e_numbers: five(live), e_faulty: FaultyEach, e_kept, e_other }
}

fn breaking_source(sends: bool) -> impl Fn(&Arc<()>) -> BreakingSource {
    move |live| BreakingSource {
        s_numbers: five(live),
        s_faulty: FaultySource { sends, live: live.clone() },
        s_kept: Keep::default(),
    }
}

/// Walks into the panic. The second node of each topology has the fault, and drops so many objects.
fn unwinds<T: Topology>(make: impl Fn(&Arc<()>) -> T, says: &str, dropped: u64) {
    let live = Arc::new(());
    let mut graph: Fused<T> = Fused::new(make(&live));
    let idle = Arc::strong_count(&live);
    let walked = catch_unwind(AssertUnwindSafe(|| graph.walk()));
    assert_eq!(*walked.unwrap_err().downcast::<&str>().unwrap(), says);
    assert_eq!(graph.stats()[1].dropped, dropped);
    // No object is left, neither on the stack nor in the graph.
    assert_eq!(Arc::strong_count(&live), idle);
    assert_eq!(graph.stats().last().unwrap().objects, Some(0));
    drop(graph);
    assert_eq!(Arc::strong_count(&live), 1);
}

#[test]
fn a_fused_graph_unwinds() {
    unwinds(breaking, "a node has a fault", 4);
    // The first object was sent when the second one went another way.
    unwinds(breaking_each, "a node of single objects has a fault", 4);
    unwinds(breaking_source(false), "a source has a fault", 3);
    unwinds(breaking_source(true), "a source has a fault", 2);
}

/// The child is the test itself in another process with its own Eal: it walks the graph, and the
/// parent checks how it ends.
fn ends_the_program<T: Topology>(test: &str, make: impl Fn(&Arc<()>) -> T, says: &str) {
    if std::env::var_os(CHILD).is_some() {
        let eal = support::eal();
        let mut graph: Librte<'_, T> = Librte::new(&eal, "breaking", make(&Arc::new(()))).unwrap();
        let _ = catch_unwind(AssertUnwindSafe(|| graph.walk()));
        std::process::exit(0);
    }
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(CHILD, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stderr);
    assert!(!child.status.success(), "{said}");
    assert!(said.contains(says), "{said}");
    assert!(said.contains("cannot unwind"), "{said}");
}

#[test]
fn librte_graph_is_not_unwound_into() {
    ends_the_program("librte_graph_is_not_unwound_into", breaking, "a node has a fault");
}

#[test]
fn librte_graph_is_not_unwound_into_by_single_objects() {
    let test = "librte_graph_is_not_unwound_into_by_single_objects";
    ends_the_program(test, breaking_each, "a node of single objects has a fault");
}

#[test]
fn librte_graph_is_not_unwound_into_by_a_source() {
    let test = "librte_graph_is_not_unwound_into_by_a_source";
    ends_the_program(test, breaking_source(true), "a source has a fault");
}
