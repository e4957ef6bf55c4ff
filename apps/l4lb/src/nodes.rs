// SPDX-License-Identifier: BSD-3-Clause
//! The load balancer as the nodes of a graph.

use dpdk::dynfield::DynField;
use dpdk::qsbr::{Reader, Replaceable, Snapshot};
use dpdk::{Eal, Mbuf, RxQueue, Stop, TxQueue, tsc};
use graph::{
    Batch, EachNode, Executor, Fused, GraphError, Librte, Node, Nowhere, Outlet, Room, Source,
    topology,
};

use crate::balancer::{BURST, Balancer, Verdict, apply};
use crate::capture::Capture;
use crate::counters::{Counters, Reason};
use crate::tables::{Tables, ticks};
use crate::worker::QueuePair;

graph::edges! { pub enum FromRx { Packets } }
graph::edges! { pub enum FromBalance { Pass, Dropped } }
graph::edges! { pub enum FromForward { Out, Dropped } }

/// What the node `balance` tells the node `forward`: the backend's number, and a hash of the flow.
type Ticket = u64;

/// Polls one queue in each walk, in turn.
pub struct Rx<'p> {
    queues: Vec<(RxQueue<'p>, Capture)>,
    next: usize,
}

impl<'p> Source<Mbuf<'p>> for Rx<'p> {
    type Next = FromRx;

    #[inline(always)]
    fn poll<O: Outlet<Mbuf<'p>, FromRx>>(&mut self, mut room: Room<'_, Mbuf<'p>>, out: &mut O) {
        let (polled, several) = (self.next, self.queues.len() > 1);
        self.next = if polled + 1 < self.queues.len() { polled + 1 } else { 0 };
        let Some((queue, capture)) = self.queues.get_mut(polled) else { return };
        if room.receive(queue) == 0 {
            return;
        }
        let mut batch = room.into_batch();
        capture.see(&batch);
        if several {
            // For the node `tx`.
            batch.iter_mut().for_each(|packet| packet.set_port(polled as u16));
        }
        out.forward(FromRx::Packets, batch);
    }
}

/// Chooses a backend for each packet.
pub struct Balance<'t, 'q, 'e> {
    tables: &'t Snapshot<'t, 'q, Tables<'e>>,
    balancer: Balancer,
    ticket: DynField<Ticket>,
}

impl<'p> Node<Mbuf<'p>> for Balance<'_, '_, '_> {
    type Next = FromBalance;

    #[inline(always)]
    fn process<O: Outlet<Mbuf<'p>, FromBalance>>(
        &mut self,
        mut batch: Batch<'_, Mbuf<'p>>,
        out: &mut O,
    ) {
        let Self { tables, balancer, ticket } = self;
        let now = ticks(tsc::now());
        balancer.counters.received(batch.len());
        tables.with(|tables| {
            while !batch.is_empty() {
                let part = batch.split_front(BURST);
                let mut verdicts = [Verdict::drop(Reason::Other); BURST];
                balancer.verdicts(tables, &part, &mut verdicts, now);
                let mut verdicts = verdicts.iter();
                out.sort(part, |packet| {
                    let Some(verdict) = verdicts.next() else { return FromBalance::Dropped };
                    let Some(backend) = verdict.backend else {
                        balancer.counters.dropped(verdict.why);
                        return FromBalance::Dropped;
                    };
                    let of_flow = u64::from(verdict.entropy);
                    ticket.write(packet, u64::from(backend.number) << 16 | of_flow);
                    FromBalance::Pass
                });
            }
        });
    }
}

/// Encapsulates or translates each packet.
pub struct Forward<'t, 'q, 'e> {
    tables: &'t Snapshot<'t, 'q, Tables<'e>>,
    counters: Counters,
    ticket: DynField<Ticket>,
}

impl<'p> EachNode<Mbuf<'p>> for Forward<'_, '_, '_> {
    type Next = FromForward;

    #[inline(always)]
    fn each(&mut self, packet: &mut Mbuf<'p>) -> FromForward {
        let ticket = self.ticket.read(packet);
        let (number, entropy) = ((ticket >> 16) as u32, ticket as u16);
        let passes = self.tables.with(|tables| {
            let verdict = Verdict::pass(tables.backend(number), entropy);
            apply(tables, packet, &verdict, &mut self.counters)
        });
        if passes { FromForward::Out } else { FromForward::Dropped }
    }
}

/// Sends packets by the port that they came on.
pub struct Tx<'p> {
    queues: Vec<(TxQueue<'p>, Capture)>,
    counters: Counters,
}

impl<'p> Node<Mbuf<'p>> for Tx<'p> {
    type Next = Nowhere;

    #[inline(always)]
    fn process<O: Outlet<Mbuf<'p>, Nowhere>>(&mut self, mut batch: Batch<'_, Mbuf<'p>>, _: &mut O) {
        // A walk has packets of one queue.
        let polled = match batch.first().and_then(Mbuf::port) {
            Some(polled) if self.queues.len() > 1 => usize::from(polled),
            _ => 0,
        };
        if let Some((queue, capture)) = self.queues.get_mut(polled) {
            capture.see(&batch);
            batch.send_by(queue);
        }
        // The graph drops what is left.
        self.counters.unsent(batch.len());
    }
}

/// Drops packets, which other nodes have counted.
pub struct Dropped;

impl<'p> Node<Mbuf<'p>> for Dropped {
    type Next = Nowhere;

    #[inline(always)]
    fn process<O: Outlet<Mbuf<'p>, Nowhere>>(&mut self, _: Batch<'_, Mbuf<'p>>, _: &mut O) {}
}

topology! {
    /// The load balancer of an lcore.
    pub struct Nodes<'p, 't, 'q, 'e> for Mbuf<'p> {
        source rx: Rx<'p> => { Packets => balance },
        node balance: Balance<'t, 'q, 'e> => { Pass => forward, Dropped => dropped },
        each forward: Forward<'t, 'q, 'e> => { Out => tx, Dropped => dropped },
        node tx: Tx<'p>,
        node dropped: Dropped,
    }
}

/// An lcore's work.
pub struct GraphWorker<'p, 'e, 'q, 't> {
    pub queues: Vec<QueuePair<'p>>,
    pub reader: Reader<'q>,
    pub tables: &'t Replaceable<'q, Tables<'e>>,
    pub balancer: Balancer,
    /// Of the nodes `forward` and `tx`.
    pub counters: [Counters; 2],
    pub ticket: DynField<Ticket>,
}

impl<'p, 'e, 'q> GraphWorker<'p, 'e, 'q, '_> {
    /// Walks the graph, as one function, until it is asked to stop.
    pub fn run_fused(mut self, stop: &Stop) {
        let tables = self.tables.snapshot(self.reader.online());
        let nodes = nodes(self.queues, &tables, self.balancer, self.counters, self.ticket);
        let mut graph: Fused<_, BURST, false> = Fused::new(nodes);
        while !stop.is_set() {
            graph.walk();
            let idle = tables.with(|tables| tables.idle);
            graph.nodes_mut().balance.balancer.age(ticks(tsc::now()), idle);
            // No packet is under way: the next walk gets the newest tables.
            tables.renew();
        }
    }

    /// Walks the graph by librte_graph until it is asked to stop.
    pub fn run_librte(mut self, eal: &'e Eal, name: &str, stop: &Stop) -> Result<(), GraphError> {
        let tables = self.tables.snapshot(self.reader.online());
        let nodes = nodes(self.queues, &tables, self.balancer, self.counters, self.ticket);
        let mut graph: Librte<'_, _, BURST, false> = Librte::new(eal, name, nodes)?;
        let mut aged = 0;
        while !stop.is_set() {
            graph.walk();
            // librte_graph is told of nodes that were lent, which takes long: once in a tick.
            let now = ticks(tsc::now());
            if now != aged {
                aged = now;
                let idle = tables.with(|tables| tables.idle);
                graph.with_nodes(|nodes| nodes.balance.balancer.age(now, idle));
            }
            tables.renew();
        }
        Ok(())
    }
}

/// The nodes, all of which read the same tables until the end of a walk.
fn nodes<'p, 't, 'q, 'e>(
    queues: Vec<QueuePair<'p>>,
    tables: &'t Snapshot<'t, 'q, Tables<'e>>,
    balancer: Balancer,
    counters: [Counters; 2],
    ticket: DynField<Ticket>,
) -> Nodes<'p, 't, 'q, 'e> {
    let (mut rx, mut tx) = (Vec::new(), Vec::new());
    for pair in queues {
        rx.push((pair.rx, pair.received));
        tx.push((pair.tx, pair.sent));
    }
    let [of_forward, of_tx] = counters;
    Nodes {
        rx: Rx { queues: rx, next: 0 },
        balance: Balance { tables, balancer, ticket },
        forward: Forward { tables, counters: of_forward, ticket },
        tx: Tx { queues: tx, counters: of_tx },
        dropped: Dropped,
    }
}
