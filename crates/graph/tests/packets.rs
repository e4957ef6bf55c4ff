// SPDX-License-Identifier: BSD-3-Clause
//! Packets of real queues through both executors: what comes in goes out or is counted, and every buffer is
//! back in its pool.
#![allow(clippy::unwrap_used, missing_docs)] // A test may.

use dpdk::{Eal, Mbuf, Mempool, PoolConfig, RxQueue, TxQueue};
use graph::{
    Batch, EachNode, Executor, Fused, Librte, Node, Nowhere, Outlet, Room, Source, topology,
};

#[path = "../../dpdk/tests/support/mod.rs"]
mod support;

graph::edges! { pub enum Received { Packets } }
graph::edges! { pub enum Turn { Send, Keep } }

struct Receive<'port>(RxQueue<'port>);

impl<'port: 'm, 'm> Source<Mbuf<'m>> for Receive<'port> {
    type Next = Received;

    fn poll<O: Outlet<Mbuf<'m>, Received>>(&mut self, mut room: Room<'_, Mbuf<'m>>, out: &mut O) {
        let received = room.receive(&mut self.0);
        assert_eq!(room.spare(), 256 - received);
        out.forward(Received::Packets, room.into_batch());
    }
}

/// Every third packet is not sent.
struct Third(u32);

impl<'m> EachNode<Mbuf<'m>> for Third {
    type Next = Turn;

    fn each(&mut self, packet: &mut Mbuf<'m>) -> Turn {
        assert_eq!(packet.packet_len(), 60);
        self.0 += 1;
        if self.0 % 3 == 0 { Turn::Keep } else { Turn::Send }
    }
}

struct Send<'port> {
    queue: TxQueue<'port>,
    sent: usize,
}

impl<'m> Node<Mbuf<'m>> for Send<'_> {
    type Next = Nowhere;

    fn process<O: Outlet<Mbuf<'m>, Nowhere>>(&mut self, mut batch: Batch<'_, Mbuf<'m>>, _: &mut O) {
        let before = batch.len();
        let sent = batch.send_by(&mut self.queue);
        assert_eq!(before, sent + batch.len());
        self.sent += sent;
    }
}

/// Leaves every packet in its batch.
struct Discard;

impl<'m> Node<Mbuf<'m>> for Discard {
    type Next = Nowhere;

    fn process<O: Outlet<Mbuf<'m>, Nowhere>>(&mut self, _: Batch<'_, Mbuf<'m>>, _: &mut O) {}
}

topology! {
    struct Thirds<'port> for Mbuf<'port> {
        source receive: Receive<'port> => { Packets => third },
        each third: Third => { Send => send, Keep => discard },
        node send: Send<'port>,
        node discard: Discard,
    }
}

/// Packets found, sent and dropped in ten walks over a device without end.
fn ten_walks<'eal>(
    eal: &'eal Eal,
    pool: &Mempool<'eal>,
    make: impl for<'port> FnOnce(Thirds<'port>, &dyn Fn(&mut dyn Executor) -> Counts) -> Counts,
) -> Counts {
    let mut port = support::started(eal, pool, "net_null0");
    let counts = {
        let mut queues = port.queues();
        let nodes = Thirds {
            receive: Receive(queues.rx.remove(0)),
            third: Third(0),
            send: Send { queue: queues.tx.remove(0), sent: 0 },
            discard: Discard,
        };
        make(nodes, &|graph| {
            for _ in 0..10 {
                graph.walk();
            }
            let stats = graph.stats();
            let objects: Vec<u64> = stats.iter().map(|node| node.objects.unwrap()).collect();
            (objects, stats[3].dropped)
        })
    };
    port.stop().unwrap();
    counts
}

type Counts = (Vec<u64>, u64);

#[test]
fn packets() {
    let eal = support::eal(&["net_null0,size=60"]);
    let pool = Mempool::packet_pool(&eal, &PoolConfig::named("packets")).unwrap();
    let fused = ten_walks(&eal, &pool, |nodes, walk| {
        let mut graph: Fused<Thirds<'_>> = Fused::new(nodes);
        let counts = walk(&mut graph);
        assert_eq!(graph.nodes().send.sent as u64, counts.0[2]);
        counts
    });
    assert!(pool.is_full());
    let librte = ten_walks(&eal, &pool, |nodes, walk| {
        let mut graph: Librte<'_, Thirds<'_>> = Librte::new(&eal, "thirds", nodes).unwrap();
        assert!(graph.traced().is_none());
        graph.trace(Vec::new(), 10);
        // Another one in its place; nodes that are looked at stay traced.
        graph.trace(Vec::new(), 3000);
        graph.with_nodes(|_| ());
        let counts = walk(&mut graph);
        assert_eq!(graph.with_nodes(|nodes| nodes.send.sent) as u64, counts.0[2]);
        assert_eq!(graph.traced().unwrap().unwrap(), 3000);
        counts
    });
    assert!(pool.is_full());
    assert_eq!(fused, librte);
    let (objects, dropped) = fused;
    assert_eq!(objects, [2560, 2560, 1707, 853]);
    assert_eq!(dropped, 853);
}
