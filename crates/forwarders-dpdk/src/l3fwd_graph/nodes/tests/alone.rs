// SPDX-License-Identifier: BSD-3-Clause
//! Tests a node between two sources, with a sink at each of its edges.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use dpdk::{Eal, Mbuf, Mempool};
use graph::{Batch, Node, NodeStats, Nowhere, Outlet, Room, Source, Topology};

use super::super::BURST;
use crate::l3fwd_graph::{options, topology};

/// What executes the graphs.
pub const EXECUTORS: [options::Executor; 2] = [options::Executor::Dpdk, options::Executor::Fused];

/// Packets per walk: none, one, a full poll, one less, and two full polls at once.
pub const SIZES: [usize; 6] = [0, 1, BURST - 1, BURST, BURST + 1, 2 * BURST];

/// The pool for the packets.
#[derive(Clone, Copy)]
pub struct Bench<'eal> {
    pub eal: &'eal Eal,
    pub pool: Mempool<'eal>,
}

impl<'eal> Bench<'eal> {
    /// A packet that carries a port number.
    pub fn packet(&self, frame: &[u8], port: u16) -> Mbuf<'eal> {
        let mut packet = self.pool.alloc().unwrap();
        packet.resize(frame.len()).unwrap().copy_from_slice(frame);
        packet.set_port(port);
        packet
    }
}

graph::edges! { pub enum Fed { Packets } }

/// A source that sends its packets, as many as there is room for, in one walk.
pub struct Feed<'m>(std::vec::IntoIter<Mbuf<'m>>);

impl<'m> Source<Mbuf<'m>> for Feed<'m> {
    type Next = Fed;

    fn poll<O: Outlet<Mbuf<'m>, Fed>>(&mut self, mut room: Room<'_, Mbuf<'m>>, out: &mut O) {
        room.fill(&mut self.0);
        if self.0.len() > 0 {
            assert_eq!(room.spare(), 0);
        }
        out.forward(Fed::Packets, room.into_batch());
    }
}

/// A packet at a sink: its bytes, and its port number.
pub type Out = (Vec<u8>, Option<u16>);

/// The packets that left on each edge, in order.
pub type ByEdge = BTreeMap<&'static str, Vec<Out>>;

/// The same, while a walk runs.
#[derive(Clone, Default)]
pub struct Seen(Arc<Mutex<ByEdge>>);

impl Seen {
    /// The packets since the last call.
    pub fn by_edge(&self) -> ByEdge {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// A sink at the end of an edge.
pub struct Keep {
    edge: &'static str,
    seen: Seen,
}

impl Keep {
    pub fn new(edge: &'static str, seen: &Seen) -> Self {
        Self { edge, seen: seen.clone() }
    }
}

impl<'m> Node<Mbuf<'m>> for Keep {
    type Next = Nowhere;

    fn process<O: Outlet<Mbuf<'m>, Nowhere>>(&mut self, batch: Batch<'_, Mbuf<'m>>, _: &mut O) {
        let mut seen = self.seen.0.lock().unwrap();
        let kept = seen.entry(self.edge).or_default();
        kept.extend(
            batch
                .drain()
                .map(|packet| (packet.segment_data().flatten().copied().collect(), packet.port())),
        );
    }
}

/// Declares a topology: a node between two sources, with a sink at each of its edges. Its `of`
/// constructs one. DPDK keeps a node's name together with its edges for ever, so each topology has
/// names of its own.
macro_rules! alone {
    (
        $name:ident<$($lifetime:lifetime),+>: $left:ident, $right:ident
            => $kind:ident $field:ident: $node:ty => $($edge:ident),+
    ) => {
        graph::topology! {
            #[allow(non_snake_case)]
            struct $name<$($lifetime),+> for dpdk::Mbuf<'port> {
                source $left: $crate::l3fwd_graph::nodes::tests::alone::Feed<'port> => { Packets => $field },
                source $right: $crate::l3fwd_graph::nodes::tests::alone::Feed<'port> => { Packets => $field },
                $kind $field: $node => { $($edge => $edge),+ },
                $(node $edge: $crate::l3fwd_graph::nodes::tests::alone::Keep,)+
            }
        }

        impl<$($lifetime),+> $name<$($lifetime),+> {
            fn of(
                $field: $node,
                [$left, $right]: [$crate::l3fwd_graph::nodes::tests::alone::Feed<'port>; 2],
                seen: &$crate::l3fwd_graph::nodes::tests::alone::Seen,
            ) -> Self {
                use $crate::l3fwd_graph::nodes::tests::alone::Keep;
                Self { $left, $right, $field, $($edge: Keep::new(stringify!($edge), seen)),+ }
            }
        }
    };
}
pub(super) use alone;

/// Sends packets through a node in one walk, and returns the packets per edge and the node's
/// counters. `make` is the topology's `of` with a node.
pub fn run<'port, T: Topology + Send + 'port>(
    eal: &'port Eal,
    executor: options::Executor,
    mut packets: Vec<Mbuf<'port>>,
    make: impl FnOnce([Feed<'port>; 2], &Seen) -> T,
) -> (ByEdge, NodeStats) {
    let count = packets.len();
    let seen = Seen::default();
    let rest = packets.split_off(count.min(BURST));
    // librte_graph runs the last source first.
    let in_turn = match executor {
        options::Executor::Dpdk => [rest, packets],
        options::Executor::Fused => [packets, rest],
    };
    let feeds = in_turn.map(|packets| Feed(packets.into_iter()));
    let mut graph = topology::make(eal, executor, "alone", make(feeds, &seen)).unwrap();
    graph.walk();
    // After the sources.
    let stats = graph.stats().swap_remove(2);
    assert_eq!(stats.objects, Some(count as u64));
    (seen.by_edge(), stats)
}

/// A packet and its expected result.
pub struct Case<'eal> {
    pub what: &'static str,
    packet: Box<dyn Fn(Bench<'eal>) -> Mbuf<'eal>>,
    edge: &'static str,
    after: Out,
}

/// The port on which packets were received.
pub const CAME: u16 = 7;

impl<'eal> Case<'eal> {
    /// A frame that leaves on this edge, unchanged.
    pub fn new(what: &'static str, frame: Vec<u8>, edge: &'static str) -> Self {
        let after = (frame.clone(), Some(CAME));
        Self { what, packet: Box::new(move |bench| bench.packet(&frame, CAME)), edge, after }
    }

    /// With another packet of the same bytes as input.
    pub fn packet(mut self, packet: impl Fn(Bench<'eal>) -> Mbuf<'eal> + 'static) -> Self {
        self.packet = Box::new(packet);
        self
    }

    /// With this port number when it leaves.
    pub fn port(mut self, port: Option<u16>) -> Self {
        self.after.1 = port;
        self
    }

    /// With these bytes when it leaves.
    pub fn bytes(mut self, bytes: Vec<u8>) -> Self {
        self.after.0 = bytes;
        self
    }
}

/// Sends the cases through a node: each by itself, then batches in which some neighbours take the
/// same edge and some do not. Order is kept on each edge, and nothing is lost.
pub fn check<'eal, T: Topology + Send + 'eal>(
    bench: Bench<'eal>,
    cases: &[Case<'eal>],
    make: impl Fn([Feed<'eal>; 2], &Seen) -> T,
) {
    for executor in EXECUTORS {
        for case in cases {
            let packets = vec![(case.packet)(bench)];
            let (seen, _) = run(bench.eal, executor, packets, &make);
            let expected = [(case.edge, vec![case.after.clone()])].into();
            assert_eq!(seen, expected, "{executor:?}: {}", case.what);
        }
        for size in SIZES {
            let (mut packets, mut expected) = (Vec::new(), ByEdge::new());
            for case in mixed(cases).take(size) {
                packets.push((case.packet)(bench));
                expected.entry(case.edge).or_default().push(case.after.clone());
            }
            let (seen, stats) = run(bench.eal, executor, packets, &make);
            assert_alike(&seen, &expected, &format!("{executor:?}: a batch of {size}"));
            assert_eq!(stats.dropped, 0);
        }
    }
}

/// Checks that these packets left on each edge, in this order.
pub fn assert_alike(seen: &ByEdge, expected: &ByEdge, context: &str) {
    for edge in expected.keys().chain(seen.keys()) {
        let [came, due] = [seen, expected].map(|all| all.get(edge).map_or(&[][..], |all| all));
        let place = came.iter().zip(due).position(|(came, due)| came != due);
        let differ = place.map(|place| (&came[place], &due[place]));
        assert!(differ.is_none(), "{context}: {edge}, packet {place:?}: {differ:02x?}");
        assert_eq!(came.len(), due.len(), "{context}: {edge}");
    }
}

/// The cases repeated endlessly: runs of one, two and three of each.
pub fn mixed<C>(cases: &[C]) -> impl Iterator<Item = &C> {
    (0..).flat_map(move |turn: usize| {
        let case = &cases[(turn * 7 + turn / cases.len()) % cases.len()];
        std::iter::repeat_n(case, 1 + turn % 3)
    })
}
