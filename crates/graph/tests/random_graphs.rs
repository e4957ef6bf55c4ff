// SPDX-License-Identifier: BSD-3-Clause
//! Random graphs, run by both executors and by a plain model.
//!
//! `topology!` needs types and edges at compile time. So each node here has an edge to every later
//! one, and a random table in it says which of them it uses.
#![allow(clippy::unwrap_used)] // A test may.

mod support;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

use dpdk::Eal;
use graph::{
    Batch, EachNode, Executor, Fused, Librte, Next, Node, Outlet, Room, Source, Topology, topology,
};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use support::{Item, Keep, Object, mix};

/// Nodes, in the order of the topologies: sources, those between, sinks.
const NODES: usize = 10;
const SOURCES: Range<usize> = 0..2;
const SINKS: Range<usize> = 8..10;

/// The number of the first object of each source.
const APART: u64 = 1_000_000;

// The edges of nodes with this many later ones that are no source. `Z` leads to the last.
graph::edges! { enum To8 { S, T, U, V, W, X, Y, Z } }
graph::edges! { enum To7 { T, U, V, W, X, Y, Z } }
graph::edges! { enum To6 { U, V, W, X, Y, Z } }
graph::edges! { enum To5 { V, W, X, Y, Z } }
graph::edges! { enum To4 { W, X, Y, Z } }
graph::edges! { enum To3 { X, Y, Z } }
graph::edges! { enum To2 { Y, Z } }

/// The edges of a type, in order.
trait All: Next + Send {
    const ALL: &'static [Self];
}

macro_rules! all {
    ($($edges:ident: $($edge:ident)+;)+) => {
        $(impl All for $edges {
            const ALL: &'static [Self] = &[$(Self::$edge),+];
        })+
    };
}

all! {
    To8: S T U V W X Y Z;
    To7: T U V W X Y Z;
    To6: U V W X Y Z;
    To5: V W X Y Z;
    To4: W X Y Z;
    To3: X Y Z;
    To2: Y Z;
}

/// The call by which a batch node sends objects with the same target.
#[derive(Clone, Copy, Debug)]
enum Call {
    Send,
    Array,
    Front,
    Batch,
    Forward,
    /// Whatever way they go.
    Sort,
    /// By the first five in turn.
    Mixed,
}

const CALLS: [Call; 7] =
    [Call::Send, Call::Array, Call::Front, Call::Batch, Call::Forward, Call::Sort, Call::Mixed];

/// What a node does.
#[derive(Clone, Debug)]
struct Rule {
    seed: u64,
    /// This many numbers in a row have the same target.
    run: u64,
    /// Later nodes, of which each number chooses one; `None` drops it.
    table: Vec<Option<usize>>,
    call: Call,
}

impl Rule {
    /// The node that a number goes to from the node `at`, which cannot drop objects when it is an `each`.
    fn target(&self, at: usize, each: bool, number: u64) -> Option<usize> {
        let first = SOURCES.end.max(at + 1);
        let choice = mix(number / self.run, self.seed) % self.table.len() as u64;
        let later = self.table[choice as usize].or(each.then_some(0))?;
        Some(first + later % (NODES - first))
    }
}

/// A node of any kind.
struct Step<X> {
    at: usize,
    rule: Rule,
    edges: PhantomData<X>,
    /// The next number of a source, and the numbers to produce in each walk, from the end.
    next: u64,
    counts: Vec<usize>,
    live: Arc<()>,
}

impl<X: All> Step<X> {
    fn new(case: &Case, at: usize, live: &Arc<()>) -> Self {
        Self {
            at,
            rule: case.rules[at].clone(),
            edges: PhantomData,
            next: at as u64 * APART,
            counts: case.counts.get(at).cloned().unwrap_or_default(),
            live: live.clone(),
        }
    }

    fn edge(&self, each: bool, item: &Object) -> Option<X> {
        // The edges are those to the last nodes.
        let target = self.rule.target(self.at, each, item.number)?;
        Some(X::ALL[target + X::ALL.len() - NODES])
    }

    /// Sends a batch, neighbours that go the same way together.
    fn spread<O: Outlet<Object, X>>(&self, mut batch: Batch<'_, Object>, out: &mut O) {
        batch.iter_mut().for_each(|item| item.visits |= 1 << self.at);
        let sort = matches!(self.rule.call, Call::Sort);
        let mut turn = 0;
        while let Some(first) = batch.first() {
            let edge = self.edge(false, first);
            let alike = |item: &&Object| match self.edge(false, item) {
                other if sort => other.is_some() == edge.is_some(),
                other => other == edge,
            };
            let count = batch.iter().take_while(alike).count();
            // A batch that is not split can be passed on whole.
            if count == batch.len() {
                return self.send(edge, batch, &mut turn, out);
            }
            self.send(edge, batch.split_front(count), &mut turn, out);
        }
    }

    fn send<O: Outlet<Object, X>>(
        &self,
        edge: Option<X>,
        mut batch: Batch<'_, Object>,
        turn: &mut usize,
        out: &mut O,
    ) {
        let Some(edge) = edge else { return };
        match self.rule.call {
            Call::Sort => out.sort(batch, |item| self.edge(false, item).unwrap()),
            Call::Mixed => {
                while !batch.is_empty() {
                    *turn += 1;
                    let length = 1 + mix(*turn as u64, self.rule.seed) as usize % 200;
                    by(CALLS[*turn % 5], edge, batch.split_front(length), out);
                }
            }
            call => by(call, edge, batch, out),
        }
    }
}

/// Sends all of a batch to an edge.
fn by<X: Next, O: Outlet<Object, X>>(
    call: Call,
    edge: X,
    mut batch: Batch<'_, Object>,
    out: &mut O,
) {
    match call {
        Call::Array => {
            while let Some(items) = batch.take_array::<40>() {
                out.send_array(edge, items);
            }
            while let Some(items) = batch.take_array::<3>() {
                out.send_array(edge, items);
            }
        }
        Call::Front => {
            while out.send_front::<32>(edge, &mut batch) {}
            while out.send_front::<5>(edge, &mut batch) {}
        }
        Call::Batch => {
            let half = batch.len() / 2;
            out.send_batch(edge, batch.split_front(half));
            return out.send_batch(edge, batch);
        }
        Call::Forward => return out.forward(edge, batch),
        Call::Send | Call::Sort | Call::Mixed => {}
    }
    batch.drain().for_each(|item| out.send(edge, item));
}

impl<X: All> Source<Object> for Step<X> {
    type Next = X;

    fn poll<O: Outlet<Object, X>>(&mut self, mut room: Room<'_, Object>, out: &mut O) {
        for _ in 0..self.counts.pop().unwrap_or(0) {
            let item = Item { number: self.next, visits: 0, live: self.live.clone() };
            if room.push(Box::new(item)).is_err() {
                break;
            }
            self.next += 1;
        }
        self.spread(room.into_batch(), out);
    }
}

impl<X: All> Node<Object> for Step<X> {
    type Next = X;

    fn process<O: Outlet<Object, X>>(&mut self, batch: Batch<'_, Object>, out: &mut O) {
        self.spread(batch, out);
    }
}

impl<X: All> EachNode<Object> for Step<X> {
    type Next = X;

    fn each(&mut self, item: &mut Object) -> X {
        item.visits |= 1 << self.at;
        self.edge(true, item).unwrap()
    }
}

/// A topology in which each node has an edge to every later one.
trait Dense: Topology<Object = Object> {
    /// Which nodes look at one object at a time.
    const EACH: [bool; NODES];

    fn new(case: &Case, live: &Arc<()>, sinks: &[Keep; 2]) -> Self;
}

macro_rules! each {
    (node) => {
        false
    };
    (each) => {
        true
    };
}

macro_rules! dense {
    ($($name:ident: $s:ident $t:ident $u:ident $v:ident $w:ident $x:ident;)+) => { $(
        topology! {
            struct $name for Object {
                source one: Step<To8> => { S => s, T => t, U => u, V => v, W => w, X => x, Y => y, Z => z },
                source two: Step<To8> => { S => s, T => t, U => u, V => v, W => w, X => x, Y => y, Z => z },
                $s s: Step<To7> => { T => t, U => u, V => v, W => w, X => x, Y => y, Z => z },
                $t t: Step<To6> => { U => u, V => v, W => w, X => x, Y => y, Z => z },
                $u u: Step<To5> => { V => v, W => w, X => x, Y => y, Z => z },
                $v v: Step<To4> => { W => w, X => x, Y => y, Z => z },
                $w w: Step<To3> => { X => x, Y => y, Z => z },
                $x x: Step<To2> => { Y => y, Z => z },
                node y: Keep,
                node z: Keep,
            }
        }

        impl Dense for $name {
            const EACH: [bool; NODES] =
                [false, false, each!($s), each!($t), each!($u), each!($v), each!($w), each!($x), false, false];

            fn new(case: &Case, live: &Arc<()>, [y, z]: &[Keep; 2]) -> Self {
                Self {
                    one: Step::new(case, 0, live),
                    two: Step::new(case, 1, live),
                    s: Step::new(case, 2, live),
                    t: Step::new(case, 3, live),
                    u: Step::new(case, 4, live),
                    v: Step::new(case, 5, live),
                    w: Step::new(case, 6, live),
                    x: Step::new(case, 7, live),
                    y: y.clone(),
                    z: z.clone(),
                }
            }
        }
    )+ };
}

dense! {
    Batches: node node node node node node;
    Singles: each each each each each each;
    Turns: node each node each node each;
    Pairs: each each node node each each;
}

#[derive(Clone, Debug)]
struct Case {
    counts: [Vec<usize>; 2],
    /// For all but sinks.
    rules: Vec<Rule>,
}

fn case() -> impl Strategy<Value = Case> {
    // Near ones often, so that many meet in one node, whose memory then has to grow.
    let later = prop::option::weighted(0.9, prop_oneof![0..2usize, 0..NODES]);
    let rule = (
        any::<u64>(),
        prop::sample::select(vec![1, 2, 7, 60, 1000]),
        prop::collection::vec(later, 1..6),
        prop::sample::select(CALLS.to_vec()),
    );
    let rule = rule.prop_map(|(seed, run, table, call)| Rule { seed, run, table, call });
    let counts = || prop::collection::vec(prop_oneof![0..9usize, 100..300usize, Just(256)], WALKS);
    ([counts(), counts()], prop::collection::vec(rule, SINKS.start))
        .prop_map(|(counts, rules)| Case { counts, rules })
}

const WALKS: usize = 3;

/// The result of a case.
#[derive(Debug, Default, PartialEq)]
struct Outcome {
    /// For each node, the objects that came to it or from it, and those that it dropped.
    nodes: [(u64, u64); NODES],
    /// The objects at each sink, by the nodes on their way (a bit for each), in order.
    sinks: [BTreeMap<u64, Vec<u64>>; 2],
}

/// Processes one object after the other, each on its own way.
fn model<T: Dense>(case: &Case, burst: usize) -> Outcome {
    let mut outcome = Outcome::default();
    for source in SOURCES {
        let found: usize = case.counts[source].iter().map(|count| (*count).min(burst)).sum();
        for number in (0..found as u64).map(|number| source as u64 * APART + number) {
            let (mut at, mut way) = (source, 0);
            let end = loop {
                outcome.nodes[at].0 += 1;
                if SINKS.contains(&at) {
                    break Some(at);
                }
                way |= 1 << at;
                match case.rules[at].target(at, T::EACH[at], number) {
                    Some(target) => at = target,
                    None => break None,
                }
            };
            match end {
                Some(sink) => {
                    outcome.sinks[sink - SINKS.start].entry(way).or_default().push(number);
                }
                None => outcome.nodes[at].1 += 1,
            }
        }
    }
    outcome
}

/// The result of a graph. Objects with the same way stay in order; different ways may overtake each
/// other.
fn walked(graph: &mut impl Executor, names: &[&str], sinks: [Keep; 2]) -> Outcome {
    for _ in 0..WALKS {
        graph.walk();
    }
    let stats = graph.stats();
    let nodes = std::array::from_fn(|at| {
        let node = stats.iter().find(|node| node.name == names[at]).unwrap();
        (node.objects.unwrap(), node.dropped)
    });
    let sinks = sinks.map(|sink| {
        let mut ways = BTreeMap::<u64, Vec<u64>>::new();
        for number in sink.numbers() {
            ways.entry(number >> 32).or_default().push(number & 0xffff_ffff);
        }
        ways
    });
    Outcome { nodes, sinks }
}

/// Runs random cases of a topology in both executors. Returns how many objects reached sinks, and
/// how many did not.
fn check<T: Dense, const BURST: usize>(eal: &Eal) -> (usize, u64) {
    let names: Vec<&str> = T::NODES.iter().map(|node| node.name).collect();
    let told = Cell::new((0, 0));
    let mut runner = TestRunner::new(Config { cases: 200, ..Config::default() });
    let run = runner.run(&case(), |case| {
        let expected = model::<T>(&case, BURST);
        let live = Arc::new(());

        let sinks = [Keep::default(), Keep::default()];
        let mut fused: Fused<T, BURST> = Fused::new(T::new(&case, &live, &sinks));
        prop_assert_eq!(&walked(&mut fused, &names, sinks), &expected, "fused");
        drop(fused);
        prop_assert_eq!(Arc::strong_count(&live), 1);

        let sinks = [Keep::default(), Keep::default()];
        let nodes = T::new(&case, &live, &sinks);
        let mut librte: Librte<'_, T, BURST> = Librte::new(eal, "dense", nodes).unwrap();
        prop_assert_eq!(&walked(&mut librte, &names, sinks), &expected, "librte_graph");
        drop(librte);
        prop_assert_eq!(Arc::strong_count(&live), 1);

        let kept = expected.sinks.iter().flat_map(BTreeMap::values).map(Vec::len).sum::<usize>();
        let dropped = expected.nodes.iter().map(|node| node.1).sum::<u64>();
        told.set((told.get().0 + kept, told.get().1 + dropped));
        Ok(())
    });
    run.unwrap();
    told.get()
}

/// One process has one Eal, so that this is one test.
#[test]
fn each_object_goes_one_way_in_both_executors() {
    let eal = support::eal();
    let told = [
        check::<Batches, 256>(&eal),
        check::<Singles, 256>(&eal),
        check::<Turns, 256>(&eal),
        check::<Pairs, 256>(&eal),
        check::<Turns, 16>(&eal),
    ];
    for (kept, dropped) in told {
        assert!(kept > 1000 && dropped > 100, "{told:?}");
    }
}
