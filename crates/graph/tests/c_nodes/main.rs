// SPDX-License-Identifier: BSD-3-Clause
//! DPDK's own nodes with Rust nodes: frames in and frames out, byte by byte; and errors.
#![allow(clippy::unwrap_used, missing_docs)] // A test may.

use std::cell::RefCell;

use dpdk::{Burst, Eal, Mbuf, Mempool, PoolConfig, Port, RxQueue, Started, TxQueue};
use graph::{
    Batch, EachNode, Executor, GraphBuilder, GraphError, Ip4Route, Node, NodeStats, Nowhere,
    Outlet, Room, Source,
};

use frames::{Kind, mixed, random_kinds, routed, routes};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

mod frames;
mod refusals;
#[path = "../../../dpdk/tests/support/mod.rs"]
mod support;

graph::edges! { pub enum Checked { Allowed, Denied } }

/// Denies what a plain access list would: UDP to port 53.
struct Acl;

impl<'m> EachNode<Mbuf<'m>> for Acl {
    type Next = Checked;

    fn each(&mut self, packet: &mut Mbuf<'m>) -> Checked {
        let frame = packet.data();
        if frame.len() >= 38 && frame[36..38] == [0, 53] {
            Checked::Denied
        } else {
            Checked::Allowed
        }
    }
}

/// A sink of ours for packets of C nodes.
struct Discard;

impl<'m> Node<Mbuf<'m>> for Discard {
    type Next = Nowhere;

    fn process<O: Outlet<Mbuf<'m>, Nowhere>>(&mut self, _: Batch<'_, Mbuf<'m>>, _: &mut O) {}
}

fn drain(queue: &mut RxQueue<'_>) -> Vec<Vec<u8>> {
    let mut burst = Burst::<64>::new();
    let mut frames = Vec::new();
    while queue.receive(&mut burst) > 0 {
        frames.extend(burst.drain().map(|packet| packet.data().to_vec()));
    }
    frames
}

fn stat<'s>(stats: &'s [NodeStats], name: &str) -> &'s NodeStats {
    stats.iter().find(|node| node.name == name).unwrap()
}

fn router<'q>(
    eal: &'q Eal,
    name: &str,
    rx: RxQueue<'q>,
    tx: [TxQueue<'q>; 2],
) -> GraphBuilder<'q, Mbuf<'q>> {
    tx.into_iter()
        .fold(acl(GraphBuilder::new(eal, name)), GraphBuilder::ethdev_tx)
        .ethdev_rx(rx, "acl")
        .pkt_cls()
        .ip4(&routes())
        .pkt_drop()
}

fn acl<'q>(graph: GraphBuilder<'q, Mbuf<'q>>) -> GraphBuilder<'q, Mbuf<'q>> {
    graph.each("acl", Acl, &[(Checked::Allowed, "pkt_cls"), (Checked::Denied, "pkt_drop")])
}

/// Sends frames to a graph by a ring, walks it, and looks at all that comes out.
fn route<'q>(
    pool: &Mempool<'q>,
    graph: &mut impl Executor,
    kinds: &[Kind],
    inject: &mut TxQueue<'q>,
    sinks: [&mut RxQueue<'q>; 2],
) {
    let before = graph.stats();
    let mut expected = [Vec::new(), Vec::new()];
    let mut shared = Vec::new();
    for (kinds, first) in kinds.chunks(64).zip((0..).step_by(64)) {
        let mut burst = Burst::<64>::new();
        for (kind, number) in kinds.iter().zip(first..) {
            let mut packet = pool.alloc().unwrap();
            let frame = kind.frame(number);
            packet.resize(frame.len()).unwrap().copy_from_slice(&frame);
            if *kind == Kind::Shared {
                let whole = packet.share();
                packet = whole.clone_into(pool).unwrap();
                shared.push((whole, frame));
            } else if let Some(hop) = kind.next_hop() {
                expected[usize::from(hop.port)].push(routed(frame, hop));
            }
            assert!(burst.push(packet).is_ok());
        }
        assert_eq!(inject.send(&mut burst), kinds.len());
    }
    let (start, mut came) = (received(&before), 0);
    while came < kinds.len() as u64 {
        graph.walk();
        let now = received(&graph.stats()) - start;
        assert!(now > came, "frames are lost");
        came = now;
    }
    for (sink, mut expected) in sinks.into_iter().zip(expected) {
        let mut found = drain(sink);
        // Nodes may reorder flows: only packets that one node sends to one edge keep their order.
        found.sort();
        expected.sort();
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(expected) {
            assert_eq!(*found, expected);
        }
    }
    let count = |kind: &dyn Fn(Kind) -> bool| kinds.iter().filter(|it| kind(**it)).count() as u64;
    let after = graph.stats();
    let objects = |name| stat(&after, name).objects.unwrap() - stat(&before, name).objects.unwrap();
    assert_eq!(objects("acl"), kinds.len() as u64);
    assert_eq!(objects("pkt_cls"), count(&|kind| kind != Kind::Denied));
    assert_eq!(objects("ip4_lookup"), count(&|kind| !matches!(kind, Kind::Denied | Kind::Ipv6)));
    assert_eq!(objects("ip4_rewrite"), count(&|kind| kind.next_hop().is_some()));
    assert_eq!(objects("pkt_drop"), count(&|kind| kind.next_hop().is_none()));
    for (whole, frame) in shared {
        assert_eq!(whole.data(), frame, "bytes that others see were written");
    }
}

fn received(stats: &[NodeStats]) -> u64 {
    stats.iter().find(|node| node.name.starts_with("ethdev_rx-")).unwrap().objects.unwrap()
}

/// One process has one Eal, so that this is one test.
#[test]
fn nodes_of_dpdk() {
    let eal = support::eal(&["net_ring0", "net_ring1", "net_ring2"]);
    let pool = Mempool::packet_pool(&eal, &PoolConfig::named("packets")).unwrap();
    let mut first = support::started_with(&eal, &pool, "net_ring0", 4);
    let mut second = support::started_with(&eal, &pool, "net_ring1", 4);
    let mut third = support::started_with(&eal, &pool, "net_ring2", 1);
    {
        let (first, second) = (first.queues(), second.queues());
        // A ring gives back on its queue what was sent there. Frames come in by queue 0 of the first port and
        // leave by queues 2 and 3, whatever the number of the graph; a second graph has its own.
        let [mut in0, mut in1, tx2, tx3] = <[_; 4]>::try_from(first.tx).ok().unwrap();
        let [rx0, rx1, mut out2, mut out3] = <[_; 4]>::try_from(first.rx).ok().unwrap();
        let [_, _, other_tx2, other_tx3] = <[_; 4]>::try_from(second.tx).ok().unwrap();
        let [spare, _, mut other_out2, mut other_out3] =
            <[_; 4]>::try_from(second.rx).ok().unwrap();

        refusals::without_a_port(&eal);
        let mut one = router(&eal, "one", rx0, [tx2, other_tx2]).build::<true>().unwrap();
        let kinds = mixed(300);
        route(&pool, &mut one, &kinds, &mut in0, [&mut out2, &mut other_out2]);
        route(
            &pool,
            &mut one,
            &[Kind::To([198, 19, 1, 1])],
            &mut in0,
            [&mut out2, &mut other_out2],
        );
        assert!(pool.is_full());
        let config = Config { cases: 100, failure_persistence: None, ..Config::default() };
        let (graph, inject) = (RefCell::new(&mut one), RefCell::new(&mut in0));
        let sinks = RefCell::new([&mut out2, &mut other_out2]);
        TestRunner::new(config)
            .run(&random_kinds(), |kinds| {
                let [first, second] = &mut *sinks.borrow_mut();
                let (graph, inject) = (&mut **graph.borrow_mut(), &mut **inject.borrow_mut());
                route(&pool, graph, &kinds, inject, [first, second]);
                prop_assert!(pool.is_full());
                Ok(())
            })
            .unwrap();

        let mut two = router(&eal, "two", rx1, [tx3, other_tx3]).build::<true>().unwrap();
        route(&pool, &mut two, &kinds, &mut in1, [&mut out3, &mut other_out3]);
        route(&pool, &mut one, &kinds[3..9], &mut in0, [&mut out2, &mut other_out2]);
        assert!(pool.is_full());

        let dot = one.dot();
        for edge in [
            r#""ethdev_rx-0-0"->"acl""#,
            r#""acl"->"pkt_cls""#,
            r#""pkt_cls"->"ip4_lookup""#,
            r#""ip4_rewrite"->"ethdev_tx-1""#,
        ] {
            assert!(dot.contains(edge), "{dot}");
        }

        cluster(&eal, &one, &two);
        watched(&eal, &mut two);
        while_they_live(&eal, &mut third);

        // Dropping one does not destroy another, whatever the order.
        drop(one);
        let again = lonely(&eal, "again", spare).build::<true>().unwrap();
        drop(again);
        route(&pool, &mut two, &kinds, &mut in1, [&mut out3, &mut other_out3]);
        assert!(pool.is_full());
    }
    redirected(&eal, &pool, &mut third);
    full(&eal, &pool, &mut third);
    assert!(pool.is_full());
    more_than_sixteen_bits(&eal, &mut third);
}

fn lonely<'q>(eal: &'q Eal, name: &str, rx: RxQueue<'q>) -> GraphBuilder<'q, Mbuf<'q>> {
    GraphBuilder::new(eal, name).ethdev_rx(rx, "pkt_drop").pkt_drop()
}

/// Errors while graphs with `ip4_rewrite` live.
fn while_they_live<'eal>(eal: &'eal Eal, third: &mut Port<'eal, Started>) {
    let queue = third.queues().rx.remove(0);
    assert_eq!(
        refusals::refused(lonely(eal, "late", queue)),
        "port 2 has no nodes yet, and gets none while a graph with ip4_rewrite exists: \
         let the first graph send to all ports"
    );
}

fn cluster(eal: &Eal, one: &impl Executor, two: &impl Executor) {
    let all = graph::cluster_stats(eal, &["one", "t*"]).unwrap();
    let sum = |name: &str| {
        stat(&one.stats(), name).objects.unwrap() + stat(&two.stats(), name).objects.unwrap()
    };
    for name in ["acl", "ip4_rewrite", "pkt_drop", "ethdev_tx-1"] {
        let node = all.iter().find(|node| node.name == name).unwrap();
        assert_eq!(node.objects, sum(name));
        assert!(node.calls > 0 && node.cycles > 0);
    }
    let alone = graph::cluster_stats(eal, &["two"]).unwrap();
    let node = alone.iter().find(|node| node.name == "acl").unwrap();
    assert_eq!(Some(node.objects), stat(&two.stats(), "acl").objects);
    assert!(!alone.iter().any(|node| node.name == "ethdev_rx-0-0"));
    let none = graph::cluster_stats(eal, &["no-such-*"]).unwrap_err();
    assert!(
        none.to_string().starts_with(r#"DPDK has no statistics of graphs named ["no-such-*"]"#)
    );
    assert!(graph::cluster_stats(eal, &["a\0"]).is_err());
    // As many as would leave one in a count of 16 bits.
    let many = graph::cluster_stats(eal, &vec!["two"; (1 << 16) + 1]).unwrap_err();
    assert!(many.to_string().starts_with("65537 patterns"), "{many}");
}

/// Statistics of a graph that another lcore walks.
fn watched(eal: &Eal, two: &mut (impl Executor + Send)) {
    let polls = || {
        let stats = graph::cluster_stats(eal, &["two"]).unwrap();
        stats.iter().find(|node| node.name == "ethdev_rx-0-1").unwrap().calls
    };
    let before = polls();
    eal.scope(|scope| {
        scope.launch(eal.workers()[0], || (0..100_000).for_each(|_| two.walk())).unwrap();
        let (mut last, mut looks) = (before, 0);
        while last < before + 100_000 && looks < 10_000_000 {
            let now = polls();
            assert!(now >= last);
            (last, looks) = (now, looks + 1);
        }
    });
    assert_eq!(polls(), before + 100_000);
}

/// Edges of C nodes that lead elsewhere in one graph.
fn redirected<'eal>(eal: &'eal Eal, pool: &Mempool<'eal>, port: &mut Port<'eal, Started>) {
    let mut queues = port.queues();
    let (rx, mut tx) = (queues.rx.remove(0), queues.tx.remove(0));
    let mut burst = Burst::<64>::new();
    for kind in [Kind::Ipv6, Kind::Denied, Kind::Short] {
        let mut packet = pool.alloc().unwrap();
        let frame = kind.frame(1);
        packet.resize(frame.len()).unwrap().copy_from_slice(&frame);
        assert!(burst.push(packet).is_ok());
    }
    assert_eq!(tx.send(&mut burst), 3);
    let mut graph = GraphBuilder::<Mbuf<'_>>::new(eal, "redirected")
        .ethdev_rx(rx, "pkt_cls")
        .pkt_cls()
        .lead("pkt_cls", "ip4_lookup", "discard")
        .node("discard", Discard, &[])
        .pkt_drop()
        .build::<false>()
        .unwrap();
    graph.walk();
    let stats = graph.stats();
    assert_eq!(stat(&stats, "discard").dropped, 2);
    assert_eq!(stat(&stats, "discard").objects, None);
    assert_eq!(
        graph::cluster_stats(eal, &["redirect*"]).unwrap_err().to_string(),
        r#"the graph "redirected" counts nothing: build it with STATS, or leave it out"#
    );
    assert!(graph.traced().is_none());
    drop(graph);
    // Its edges are its own.
    let said = refusals::refused(acl(GraphBuilder::new(eal, "unled")).pkt_cls().pkt_drop());
    assert!(said.contains(r#""ip4_lookup", which is not in the graph"#), "{said}");
    let other = [Ip4Route { length: 17, ..routes()[0] }];
    let said = GraphBuilder::<Mbuf<'_>>::new(eal, "other").ip4(&other).ethdev_tx(tx);
    assert!(matches!(said.build::<true>(), Err(GraphError::Route { .. })));
    assert!(matches!(
        GraphBuilder::<Mbuf<'_>>::new(eal, "other").ip4(&[]).build::<true>(),
        Err(GraphError::RoutesDiffer)
    ));
}

graph::edges! { enum Made { Packets } }

/// As many packets as there is room for.
struct Endless<'p>(Mempool<'p>);

impl<'p: 'm, 'm> Source<Mbuf<'m>> for Endless<'p> {
    type Next = Made;

    fn poll<O: Outlet<Mbuf<'m>, Made>>(&mut self, mut room: Room<'_, Mbuf<'m>>, out: &mut O) {
        room.fill(&mut std::iter::from_fn(|| self.0.alloc()));
        out.forward(Made::Packets, room.into_batch());
    }
}

/// What a queue does not take is dropped and counted.
fn full<'eal>(eal: &'eal Eal, pool: &Mempool<'eal>, port: &mut Port<'eal, Started>) {
    let mut queues = port.queues();
    let (mut rx, tx) = (queues.rx.remove(0), queues.tx.remove(0));
    let mut graph = GraphBuilder::<Mbuf<'_>>::new(eal, "full")
        .source("endless", Endless(*pool), &[(Made::Packets, "ethdev_tx-2")])
        .ethdev_tx(tx)
        .pkt_drop()
        .build::<true>()
        .unwrap();
    (0..5).for_each(|_| graph.walk());
    let dropped = stat(&graph.stats(), "pkt_drop").objects.unwrap();
    assert_eq!(drain(&mut rx).len() as u64 + dropped, 5 * 256);
    assert!(dropped > 0, "no queue was full");
}

graph::edges! { enum Kept { Send, Drop } }

/// Keeps packets until it has as many as it is to send to both edges, in one run.
struct Hoard<'m> {
    kept: Vec<Mbuf<'m>>,
    send: usize,
    drop: usize,
}

impl<'m> Node<Mbuf<'m>> for Hoard<'m> {
    type Next = Kept;

    fn process<O: Outlet<Mbuf<'m>, Kept>>(&mut self, batch: Batch<'_, Mbuf<'m>>, out: &mut O) {
        self.kept.extend(batch.drain());
        if self.kept.len() >= self.send + self.drop {
            self.kept.drain(..self.send).for_each(|packet| out.send(Kept::Send, packet));
            self.kept.drain(..self.drop).for_each(|packet| out.send(Kept::Drop, packet));
        }
    }
}

/// Packets that a queue does not take go to a node for which so many wait already that the number
/// C's enqueue would ask for does not fit 16 bits: it would ask for too little memory, and write
/// past the end.
fn more_than_sixteen_bits<'eal>(eal: &'eal Eal, port: &mut Port<'eal, Started>) {
    let config = PoolConfig { count: 60_000, data_room: 192, ..PoolConfig::named("many") };
    let pool = Mempool::packet_pool(eal, &config).unwrap();
    let mut queues = port.queues();
    let (mut rx, tx) = (queues.rx.remove(0), queues.tx.remove(0));
    let hoard = Hoard { kept: Vec::new(), send: 34_000, drop: 20_000 };
    let mut graph = GraphBuilder::<Mbuf<'_>>::new(eal, "many")
        .source("packets", Endless(pool), &[(Made::Packets, "hoard")])
        .node("hoard", hoard, &[(Kept::Send, "ethdev_tx-2"), (Kept::Drop, "pkt_drop")])
        .ethdev_tx(tx)
        .pkt_drop()
        .build::<true>()
        .unwrap();
    let dropped = |graph: &graph::Graph<'_, _>| stat(&graph.stats(), "pkt_drop").objects.unwrap();
    for _ in 0..=54_000 / 256 {
        graph.walk();
    }
    let sent = drain(&mut rx).len() as u64;
    assert!(sent > 0 && sent < 34_000, "{sent} packets were taken");
    assert_eq!(sent + dropped(&graph), 54_000);
    drop(graph);
    assert!(pool.is_full());
    // Anything written past the end of a node's memory would be found by the next owner of that
    // memory.
    for number in 0..16 {
        let name = format!("after-{number}");
        let config = PoolConfig { count: 63, cache: 0, data_room: 192, ..PoolConfig::named(name) };
        assert!(Mempool::packet_pool(eal, &config).unwrap().is_full());
    }
}
