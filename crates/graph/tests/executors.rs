// SPDX-License-Identifier: BSD-3-Clause
//! Both executors do the same with the same nodes: each object leaves by one edge or is counted as
//! dropped, in order, and none is leaked.
#![allow(clippy::unwrap_used)] // A test may.

mod support;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use dpdk::Eal;
use graph::{Batch, EachNode, Executor, Fused, GraphBuilder, Librte, Node, Outlet, topology};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use support::{Choose, ChooseEach, Found, Four, Keep, Numbers, Object, Way};

topology! {
    /// Fan-out, merges, edges that overtake, two sources.
    pub struct Maze for Object {
        source left: Numbers => { Items => split },
        source right: Numbers => { Items => join },
        node split: Choose => { A => early, B => join, C => join, D => sink },
        node early: Choose => { A => join, B => late, C => late, D => late },
        node join: Choose => { A => late, B => sink, C => other, D => late },
        node late: Choose => { A => sink, B => other, C => other, D => other },
        node sink: Keep,
        node other: Keep,
    }
}

topology! {
    /// The same with nodes that process one object at a time, before and after one that does not.
    pub struct Straight for Object {
        source s_left: Numbers => { Items => s_split },
        source s_right: Numbers => { Items => s_join },
        each s_split: ChooseEach => { A => s_early, B => s_join, C => s_join, D => s_sink },
        each s_early: ChooseEach => { A => s_join, B => s_late, C => s_late, D => s_late },
        node s_join: Choose => { A => s_late, B => s_sink, C => s_other, D => s_late },
        each s_late: ChooseEach => { A => s_sink, B => s_other, C => s_other, D => s_other },
        node s_sink: Keep,
        node s_other: Keep,
    }
}

/// Records what it is told of, and what arrives.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<Vec<(&'static str, u64)>>>);

impl EachNode<Object> for Told {
    type Next = Found;

    fn ahead(&self, item: &Object) {
        self.0.lock().unwrap().push(("ahead", item.number));
    }

    fn each(&mut self, item: &mut Object) -> Found {
        self.0.lock().unwrap().push(("each", item.number));
        Found::Items
    }
}

topology! {
    /// A node that is told of what comes later, behind another one.
    struct Ahead for Object {
        source a_source: Numbers => { Items => a_first },
        each a_first: ChooseEach => { A => a_told, B => a_told, C => a_told, D => a_told },
        each a_told: Told => { Items => a_sink },
        node a_sink: Keep,
    }
}

/// A node with a name that a macro might also use.
struct Index;

impl EachNode<Object> for Index {
    type Next = Found;

    fn each(&mut self, _: &mut Object) -> Found {
        Found::Items
    }
}

topology! {
    struct Named for Object {
        source n_source: Numbers => { Items => n_index },
        each n_index: Index => { Items => n_sink },
        node n_sink: Keep,
    }
}

#[test]
fn a_node_may_have_any_name() {
    let numbers = Numbers { next: 0, counts: vec![3], live: Arc::default() };
    let nodes = Named { n_source: numbers, n_index: Index, n_sink: Keep::default() };
    let mut graph: Fused<Named> = Fused::new(nodes);
    graph.walk();
    assert_eq!(graph.nodes().n_sink.numbers(), [0, 1, 2]);
}

#[derive(Clone, Debug)]
struct Case {
    counts: [Vec<usize>; 2],
    nodes: [(u64, Way); 4],
}

/// Choices of nodes that look at each object do not depend on how objects are batched; others do.
const STEADY: &[Way] = &[Way::Each, Way::Sort];
const ANY: &[Way] = &[Way::Each, Way::Sort, Way::Pairs, Way::Fours, Way::Forward, Way::Pieces];

fn case(ways: &'static [Way]) -> impl Strategy<Value = Case> {
    let counts = || prop::collection::vec(prop_oneof![0..9usize, 0..300usize, Just(256)], 3);
    let way = prop::sample::select(ways);
    ([counts(), counts()], prop::array::uniform4((any::<u64>(), way)))
        .prop_map(|(counts, nodes)| Case { counts, nodes })
}

fn maze(case: &Case, live: &Arc<()>) -> Maze {
    let numbers = |side: usize| Numbers {
        next: side as u64 * 1_000_000,
        counts: case.counts[side].clone(),
        live: live.clone(),
    };
    let choose = |i: usize| Choose { seed: case.nodes[i].0, way: case.nodes[i].1 };
    Maze {
        left: numbers(0),
        right: numbers(1),
        split: choose(0),
        early: choose(1),
        join: choose(2),
        late: choose(3),
        sink: Keep::default(),
        other: Keep::default(),
    }
}

fn straight(case: &Case, live: &Arc<()>) -> Straight {
    let Maze { left, right, split, early, join, late, sink, other } = maze(case, live);
    Straight {
        s_left: left,
        s_right: right,
        s_split: ChooseEach(split),
        s_early: ChooseEach(early),
        s_join: join,
        s_late: ChooseEach(late),
        s_sink: sink,
        s_other: other,
    }
}

/// The result of a case: the sinks' numbers in order, and for each node its objects and its drops.
#[derive(Debug, PartialEq)]
struct Outcome {
    sinks: [Vec<u64>; 2],
    nodes: BTreeMap<String, (u64, u64)>,
}

fn outcome(graph: &mut impl Executor, sinks: [Keep; 2]) -> Outcome {
    for _ in 0..4 {
        graph.walk();
    }
    let nodes =
        graph.stats().into_iter().map(|node| (node.name, (node.objects.unwrap(), node.dropped)));
    Outcome { sinks: sinks.map(|sink| sink.numbers()), nodes: nodes.collect() }
}

fn sorted(mut outcome: Outcome) -> Outcome {
    outcome.sinks.iter_mut().for_each(|numbers| numbers.sort_unstable());
    outcome
}

/// Each way of sending, in the fused executor, which needs no DPDK: `scripts/run-miri` runs this.
#[test]
fn fused_graphs_lose_and_double_nothing() {
    for way in ANY {
        let live = Arc::new(());
        let counts = [vec![0, 9, 40], vec![17, 3, 1]];
        let case = Case { counts, nodes: [1, 2, 3, 4].map(|seed| (seed, *way)) };
        let nodes = maze(&case, &live);
        let sinks = [nodes.sink.clone(), nodes.other.clone()];
        let mut fused: Fused<Maze> = Fused::new(nodes);
        conserved(&outcome(&mut fused, sinks), 70);
        drop(fused);
        let nodes = straight(&case, &live);
        let sinks = [nodes.s_sink.clone(), nodes.s_other.clone()];
        let mut fused: Fused<Straight> = Fused::new(nodes);
        conserved(&outcome(&mut fused, sinks), 70);
        drop(fused);
        assert_eq!(Arc::strong_count(&live), 1, "{way:?}");
    }
}

/// Each of `found` objects is in a sink or was dropped by a node, and in no two places.
fn conserved(outcome: &Outcome, found: usize) {
    let dropped: u64 = outcome.nodes.values().map(|node| node.1).sum();
    let mut kept = outcome.sinks.concat();
    assert_eq!(kept.len() + dropped as usize, found);
    kept.sort_unstable();
    kept.dedup();
    assert_eq!(kept.len() + dropped as usize, found);
}

/// One process has one Eal, so that this is one test.
#[test]
fn executors() {
    let eal = support::eal();
    agree(&eal);
    straight_code_agrees(&eal);
    what_runs_inside_another_node_has_no_calls(&eal);
    more_than_there_is_room_for(&eal);
    more_together_than_there_is_room_for(&eal);
    random_graphs(&eal);
    nodes_are_told_of_objects_ahead(&eal);
}

fn agree(eal: &Eal) {
    let none = Case { counts: [vec![], vec![]], nodes: [(0, Way::Each); 4] };
    let fused: Fused<Maze> = Fused::new(maze(&none, &Arc::new(())));
    let librte: Librte<'_, Maze> = Librte::new(eal, "fused", maze(&none, &Arc::new(()))).unwrap();
    assert_eq!(lines(&fused.dot()), lines(&librte.dot()));

    let mut runner = TestRunner::new(Config { cases: 300, ..Config::default() });
    let strategy = prop_oneof![case(STEADY), case(ANY)];
    let compared = Cell::new(0);
    let run = runner.run(&strategy, |case| {
        let live = Arc::new(());
        let nodes = maze(&case, &live);
        let sinks = [nodes.sink.clone(), nodes.other.clone()];
        let mut fused: Fused<Maze> = Fused::new(nodes);
        let fused_outcome = outcome(&mut fused, sinks);
        drop(fused);
        prop_assert_eq!(Arc::strong_count(&live), 1);

        let nodes = maze(&case, &live);
        let sinks = [nodes.sink.clone(), nodes.other.clone()];
        let mut librte: Librte<'_, Maze> = Librte::new(eal, "maze", nodes).unwrap();
        let librte_outcome = outcome(&mut librte, sinks);
        drop(librte);
        prop_assert_eq!(Arc::strong_count(&live), 1);

        // Each object that came in is in a sink or was dropped by a node, once.
        let found = librte_outcome.nodes["left"].0 + librte_outcome.nodes["right"].0;
        let kept: usize = librte_outcome.sinks.iter().map(Vec::len).sum();
        let dropped: u64 = librte_outcome.nodes.values().map(|node| node.1).sum();
        prop_assert_eq!(found, kept as u64 + dropped);
        if case.nodes.iter().all(|node| STEADY.contains(&node.1)) {
            compared.set(compared.get() + 1);
            prop_assert_eq!(sorted(fused_outcome), sorted(librte_outcome));
        } else {
            let found = fused_outcome.nodes["left"].0 + fused_outcome.nodes["right"].0;
            let kept: usize = fused_outcome.sinks.iter().map(Vec::len).sum();
            let dropped: u64 = fused_outcome.nodes.values().map(|node| node.1).sum();
            prop_assert_eq!(found, kept as u64 + dropped);
        }
        Ok(())
    });
    run.unwrap();
    // About half.
    assert!(compared.get() > 100, "{}", compared.get());
}

/// Nodes of one object at a time: one function when fused, batches in librte_graph.
fn straight_code_agrees(eal: &Eal) {
    let mut runner = TestRunner::new(Config { cases: 200, ..Config::default() });
    let run = runner.run(&case(ANY), |mut case| {
        // Where each object goes may not depend on batches.
        case.nodes[2].1 = Way::Each;
        let live = Arc::new(());
        let nodes = straight(&case, &live);
        let sinks = [nodes.s_sink.clone(), nodes.s_other.clone()];
        let mut fused: Fused<Straight> = Fused::new(nodes);
        let fused_outcome = outcome(&mut fused, sinks);
        drop(fused);
        let nodes = straight(&case, &live);
        let sinks = [nodes.s_sink.clone(), nodes.s_other.clone()];
        let mut librte: Librte<'_, Straight> = Librte::new(eal, "straight", nodes).unwrap();
        let librte_outcome = outcome(&mut librte, sinks);
        drop(librte);
        prop_assert_eq!(Arc::strong_count(&live), 1);
        prop_assert_eq!(sorted(fused_outcome), sorted(librte_outcome));
        Ok(())
    });
    run.unwrap();
}

/// Its objects are counted; it is never called, and has no time of its own.
fn what_runs_inside_another_node_has_no_calls(eal: &Eal) {
    let case = Case { counts: [vec![100], vec![100]], nodes: [(7, Way::Each); 4] };
    let live = Arc::new(());
    let without = |graph: &mut dyn Executor| {
        graph.walk();
        let stats = graph.stats();
        assert!(stats.iter().all(|node| node.objects > Some(0)));
        assert!(stats.iter().all(|node| node.calls.is_some() == node.cycles.is_some()));
        assert!(stats.iter().all(|node| node.calls.is_none_or(|calls| calls > 0)));
        let without = stats.into_iter().filter(|node| node.calls.is_none());
        without.map(|node| node.name).collect::<Vec<_>>()
    };
    let mut fused: Fused<Straight> = Fused::new(straight(&case, &live));
    // Behind `s_split` alone; to `s_late` batches come from `s_join`, too.
    assert_eq!(without(&mut fused), ["s_early"]);
    let mut librte: Librte<'_, Straight> =
        Librte::new(eal, "inside", straight(&case, &live)).unwrap();
    assert_eq!(without(&mut librte), [""; 0]);
}

/// Sends each object and so many copies, one by one or all together.
struct Multiply {
    copies: usize,
    live: Arc<()>,
}

impl Node<Object> for Multiply {
    type Next = Found;

    fn process<O: Outlet<Object, Found>>(&mut self, batch: Batch<'_, Object>, out: &mut O) {
        for item in batch.drain() {
            let number = item.number;
            out.send(Found::Items, item);
            for _ in 0..self.copies {
                let item = support::Item { number, visits: 0, live: self.live.clone() };
                out.send(Found::Items, Box::new(item));
            }
        }
    }
}

topology! {
    struct Multiplied for Object {
        source m_numbers: Numbers => { Items => m_multiply },
        node m_multiply: Multiply => { Items => m_keep },
        node m_keep: Keep,
    }
}

/// More objects than any node has memory for: the fused executor stores them elsewhere, in order;
/// librte_graph takes 65,535, and the others are counted as dropped.
fn more_than_there_is_room_for(eal: &Eal) {
    for copies in [0, 1, 9, 299] {
        let live = Arc::new(());
        let make = || Multiplied {
            m_numbers: Numbers { next: 0, counts: vec![0, 0, 200, 256], live: live.clone() },
            m_multiply: Multiply { copies, live: live.clone() },
            m_keep: Keep::default(),
        };
        let numbers = || (0..456u64).flat_map(|number| std::iter::repeat_n(number, copies + 1));
        let nodes = make();
        let sink = nodes.m_keep.clone();
        let mut fused: Fused<Multiplied> = Fused::new(nodes);
        let told = outcome(&mut fused, [sink, Keep::default()]);
        assert!(told.sinks[0].iter().copied().eq(numbers()), "{copies} copies");
        assert_eq!(told.nodes["m_multiply"], (456, 0));
        drop(fused);

        let nodes = make();
        let sink = nodes.m_keep.clone();
        let mut librte: Librte<'_, Multiplied> = Librte::new(eal, "multiplied", nodes).unwrap();
        let told = outcome(&mut librte, [sink, Keep::default()]);
        let most = usize::from(u16::MAX);
        let dropped = [256usize, 200].map(|found| (found * (copies + 1)).saturating_sub(most));
        assert_eq!(told.nodes["m_multiply"], (456, dropped.iter().sum::<usize>() as u64));
        assert_eq!(told.sinks[0].len() + dropped.iter().sum::<usize>(), 456 * (copies + 1));
        drop(librte);
        assert_eq!(Arc::strong_count(&live), 1);
    }
}

/// How a node sends what it has got.
#[derive(Clone, Copy, Debug)]
enum By {
    Arrays,
    Fronts,
    ManyFronts,
    Batches(usize),
    Forward(usize),
    ForwardWhole,
}

impl By {
    /// How many go together, and whether fewer do, too, at the end.
    fn together(self) -> (usize, bool) {
        match self {
            Self::Arrays | Self::Fronts => (4, false),
            Self::ManyFronts => (32, false),
            Self::Batches(count) | Self::Forward(count) => (count, true),
            Self::ForwardWhole => (usize::MAX, true),
        }
    }
}

/// Sends this many objects one by one, and then the batch that it got.
struct Overfill {
    first: usize,
    by: By,
    live: Arc<()>,
}

const FILLER: u64 = 1_000_000;

impl Node<Object> for Overfill {
    type Next = Found;

    fn process<O: Outlet<Object, Found>>(&mut self, mut batch: Batch<'_, Object>, out: &mut O) {
        for _ in 0..self.first {
            let item = support::Item { number: FILLER, visits: 0, live: self.live.clone() };
            out.send(Found::Items, Box::new(item));
        }
        match self.by {
            By::Arrays => {
                while let Some(items) = batch.take_array::<4>() {
                    out.send_array(Found::Items, items);
                }
            }
            By::Fronts => while out.send_front::<4>(Found::Items, &mut batch) {},
            By::ManyFronts => while out.send_front::<32>(Found::Items, &mut batch) {},
            By::Batches(count) => {
                while !batch.is_empty() {
                    let front = batch.split_front(count);
                    out.send_batch(Found::Items, front);
                }
            }
            By::Forward(count) => {
                while !batch.is_empty() {
                    let front = batch.split_front(count);
                    out.forward(Found::Items, front);
                }
            }
            By::ForwardWhole => out.forward(Found::Items, batch),
        }
    }
}

topology! {
    struct Overfilled for Object {
        source o_numbers: Numbers => { Items => o_overfill },
        node o_overfill: Overfill => { Items => o_keep },
        node o_keep: Keep,
    }
}

/// Objects that are sent together and do not fit into librte_graph's memory are dropped and counted
/// as a whole; fewer objects that come later may fit.
fn more_together_than_there_is_room_for(eal: &Eal) {
    const ROOM: usize = 75;
    let first = usize::from(u16::MAX) - ROOM;
    for by in [
        By::Arrays,
        By::Fronts,
        By::ManyFronts,
        By::Batches(10),
        By::Batches(64),
        By::Batches(200),
        By::Forward(10),
        By::Forward(64),
        By::ForwardWhole,
    ] {
        let live = Arc::new(());
        let nodes = Overfilled {
            o_numbers: Numbers { next: 0, counts: vec![200], live: live.clone() },
            o_overfill: Overfill { first, by, live: live.clone() },
            o_keep: Keep::default(),
        };
        let sink = nodes.o_keep.clone();
        let mut graph: Librte<'_, Overfilled> = Librte::new(eal, "overfilled", nodes).unwrap();
        graph.walk();

        let (together, fewer) = by.together();
        let (mut room, mut expected) = (ROOM, Vec::new());
        for numbers in (0..200u64).collect::<Vec<_>>().chunks(together) {
            if numbers.len() <= room && (fewer || numbers.len() == together) {
                room -= numbers.len();
                expected.extend_from_slice(numbers);
            }
        }
        let kept = sink.numbers();
        let (fillers, kept) = kept.split_at(first);
        assert!(fillers.iter().all(|number| *number == FILLER), "{by:?}");
        assert_eq!(kept, expected, "{by:?}");
        assert_eq!(graph.stats()[1].dropped, 200 - expected.len() as u64, "{by:?}");
        drop(graph);
        assert_eq!(Arc::strong_count(&live), 1, "{by:?}");
    }
}

fn lines(dot: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = dot.lines().collect();
    lines.sort_unstable();
    lines
}

/// Rust nodes in random order, each sending to random later ones, against a plain model.
fn random_graphs(eal: &Eal) {
    let mut runner = TestRunner::new(Config { cases: 100, ..Config::default() });
    let strategy = (1..8usize).prop_flat_map(|nodes| {
        let node =
            (any::<u64>(), prop::bool::ANY, prop::array::uniform4(any::<prop::sample::Index>()));
        (prop::collection::vec(node, nodes), prop::collection::vec(0..300usize, 3))
    });
    let counter = Cell::new(0);
    let run = runner.run(&strategy, |(nodes, counts)| {
        // Names last as long as the process.
        let graph = counter.replace(counter.get() + 1);
        let name = |i: usize| format!("g{graph}-n{i}");
        let sinks: Vec<Keep> = (0..2).map(|_| Keep::default()).collect();
        let live = Arc::new(());
        let first = nodes.len();
        // The targets of each node: later nodes, or one of the two sinks behind the last.
        let targets: Vec<[usize; 4]> = nodes
            .iter()
            .enumerate()
            .map(|(i, (_, _, edges))| edges.map(|edge| i + 1 + edge.index(first + 2 - i - 1)))
            .collect();
        let source = Numbers { next: 0, counts: counts.clone(), live: live.clone() };
        let mut builder = GraphBuilder::<Object>::new(eal, &format!("random-{graph}")).source(
            &format!("g{graph}-source"),
            source,
            &[(Found::Items, &name(0))],
        );
        // A node that nothing leads to is an error of its own.
        let mut wanted: Vec<usize> = Vec::new();
        for i in 0..first + 2 {
            if i == 0 || wanted.iter().any(|w| *w < first && targets[*w].contains(&i)) {
                wanted.push(i);
            }
        }
        for i in &wanted {
            let Some((seed, each, _)) = nodes.get(*i) else {
                builder = builder.node(&name(*i), sinks[i - first].clone(), &[]);
                continue;
            };
            let to = targets[*i].map(name);
            let way = if *each { Way::Each } else { Way::Sort };
            let edges = [Four::A, Four::B, Four::C, Four::D];
            let edges: Vec<(Four, &str)> =
                edges.into_iter().zip(to.iter().map(String::as_str)).collect();
            builder = builder.node(&name(*i), Choose { seed: *seed, way }, &edges);
        }
        let mut graph = builder.build::<true>().unwrap();
        for _ in 0..counts.len() {
            graph.walk();
        }
        let mut expected = [Vec::new(), Vec::new()];
        let total: usize = counts.iter().map(|count| (*count).min(256)).sum();
        for number in 0..total as u64 {
            let mut at = 0;
            while at < first {
                let choose = Choose { seed: nodes[at].0, way: Way::Each };
                at = targets[at][choose.edge(number) as usize];
            }
            expected[at - first].push(number);
        }
        for (sink, expected) in sinks.iter().zip(expected) {
            let mut numbers = sink.numbers();
            numbers.sort_unstable();
            prop_assert_eq!(numbers, expected);
        }
        drop(graph);
        prop_assert_eq!(Arc::strong_count(&live), 1);
        Ok(())
    });
    run.unwrap();
}

/// Each object except the first and last ones is announced, once and before it arrives; nothing
/// else changes.
fn nodes_are_told_of_objects_ahead(eal: &Eal) {
    let nodes = |told: &Told, sink: &Keep| Ahead {
        a_source: Numbers { next: 0, counts: vec![40, 3, 0], live: Arc::new(()) },
        a_first: ChooseEach(Choose { seed: 1, way: Way::Each }),
        a_told: told.clone(),
        a_sink: sink.clone(),
    };
    let look = |walk: &dyn Fn(&Told, &Keep)| {
        let (told, sink) = (Told::default(), Keep::default());
        walk(&told, &sink);
        let numbers: Vec<u64> = sink.numbers().iter().map(|number| number & 0xffff_ffff).collect();
        assert_eq!(numbers, (0..43).collect::<Vec<_>>());
        let seen = told.0.lock().unwrap().clone();
        let of = |what| -> Vec<u64> {
            seen.iter().filter(|(kind, _)| *kind == what).map(|(_, number)| *number).collect()
        };
        assert_eq!(of("each"), (0..43).collect::<Vec<_>>());
        // None of a batch of 3; of 40 neither those that are too near the start nor those that
        // nothing follows.
        let ahead = of("ahead");
        assert!(ahead.len() > 20 && ahead.is_sorted(), "{ahead:?}");
        for number in ahead {
            let place = |kind| seen.iter().position(|found| *found == (kind, number)).unwrap();
            assert!(number >= 3 && place("ahead") < place("each"), "{number}: {seen:?}");
        }
    };
    look(&|told, sink| {
        let mut graph: Fused<Ahead> = Fused::new(nodes(told, sink));
        (0..3).for_each(|_| graph.walk());
    });
    look(&|told, sink| {
        let mut graph: Librte<Ahead> = Librte::new(eal, "ahead", nodes(told, sink)).unwrap();
        (0..3).for_each(|_| graph.walk());
    });
}
