// SPDX-License-Identifier: BSD-3-Clause
//! DPDK's own nodes beside ours.

use std::io::Write;

use dpdk::{Lcore, Mbuf, RxQueue, TxQueue};

use super::builder::GraphBuilder;
use super::c_nodes::{CLASSIFY, DROP};
use super::ip4::Ip4Route;
use super::trace::Trace;

/// # DPDK's own nodes
/// Nodes of librte_node stand in a graph of packets beside ours, under the names that they have there. Our
/// nodes name them as targets: `pkt_cls`, `ip4_lookup`, `pkt_drop`, `ethdev_tx-0` for port 0. Their
/// own edges lead where DPDK has them lead, or elsewhere in this graph by [`lead`](Self::lead); those to nodes
/// of other ports, and to nodes that are not offered here (`ip6_lookup` of later releases), lead to
/// `pkt_drop`.
///
/// ```no_run
/// use dpdk::{Mbuf, RxQueue, TxQueue};
/// use graph::{EachNode, Executor, GraphBuilder, Ip4NextHop, Ip4Route};
///
/// graph::edges! { pub enum Checked { Allowed, Denied } }
///
/// /// Denies frames to 02:00:00:00:00:99.
/// struct Check;
/// impl<'m> EachNode<Mbuf<'m>> for Check {
///     type Next = Checked;
///     fn each(&mut self, packet: &mut Mbuf<'m>) -> Checked {
///         if packet.data().starts_with(&[2, 0, 0, 0, 0, 0x99]) { Checked::Denied } else { Checked::Allowed }
///     }
/// }
///
/// fn run<'port>(eal: &'port dpdk::Eal, rx: RxQueue<'port>, tx: TxQueue<'port>) -> Result<(), graph::GraphError> {
///     let (destination, source) = ([2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 1]);
///     let next_hop = Ip4NextHop { port: tx.port().index(), destination, source };
///     let route = Ip4Route { address: [198, 18, 0, 0].into(), length: 15, next_hop };
///     let mut graph = GraphBuilder::new(eal, "router")
///         .ethdev_rx(rx, "check")
///         .each("check", Check, &[(Checked::Allowed, "pkt_cls"), (Checked::Denied, "pkt_drop")])
///         .pkt_cls()
///         .ip4(&[route])
///         .ethdev_tx(tx)
///         .pkt_drop()
///         .build::<true>()?;
///     for _ in 0..1_000_000 {
///         graph.walk();
///     }
///     Ok(())
/// }
/// ```
impl<'eal, 'm> GraphBuilder<'eal, Mbuf<'m>> {
    /// Adds `ethdev_rx-PORT-QUEUE`, which polls this queue in each walk and sends what came to `target`. Where the
    /// driver tells no packet types, DPDK puts a callback on the queue that looks for IPv4 and IPv6, one more
    /// for each graph that the queue comes to stand in.
    pub fn ethdev_rx<'port: 'eal + 'm>(mut self, queue: RxQueue<'port>, target: &str) -> Self {
        self.c_nodes.receive.push((queue.port().index(), queue.queue(), target.to_owned()));
        self.keep(queue);
        self
    }

    /// Adds `ethdev_tx-PORT`, which sends by this queue, and to `pkt_drop` what the driver does not take.
    pub fn ethdev_tx<'port: 'eal>(mut self, queue: TxQueue<'port>) -> Self {
        self.c_nodes.transmit.push((queue.port().index(), queue.queue()));
        self.keep(queue);
        self
    }

    /// Adds `pkt_cls`, which sends packets of IPv4, by the type that the receiving port found, to `ip4_lookup`, and
    /// others to `pkt_drop`.
    pub fn pkt_cls(mut self) -> Self {
        self.c_nodes.plain.push(CLASSIFY);
        self
    }

    /// Adds `pkt_drop`, which frees packets. Its count of objects is how many.
    pub fn pkt_drop(mut self) -> Self {
        self.c_nodes.plain.push(DROP);
        self
    }

    /// Adds `ip4_lookup` and `ip4_rewrite` with these routes, whose ports need an `ethdev_tx` each. A packet gets
    /// the addresses of its next hop, a TTL less by one (a TTL of 0 becomes 255) and a checksum to
    /// match. Packets without a route go to `pkt_drop`, as do those with less than 34 bytes in their first segment,
    /// and those whose bytes have other owners.
    ///
    /// DPDK has one table of routes in a process, which nothing leaves: the first graph gives it the routes,
    /// and others name the same.
    pub fn ip4(mut self, routes: &[Ip4Route]) -> Self {
        self.c_nodes.routes.get_or_insert_default().extend(routes);
        self
    }

    /// Lets the edge of a node of DPDK's that leads to `from` lead to `to`, in this graph alone.
    pub fn lead(mut self, node: &str, from: &str, to: &str) -> Self {
        self.c_nodes.led.push((node.to_owned(), from.to_owned(), to.to_owned()));
        self
    }

    /// Asks for memory on the NUMA node of an lcore, which is to walk the graph; without it, that of the main lcore
    /// for graphs with [`ip4`](Self::ip4), and any for others.
    pub fn on(mut self, lcore: Lcore) -> Self {
        self.c_nodes.lcore = Some(lcore);
        self
    }

    /// Writes packets as they come to nodes, at most so many in all (a packet counts at each node), to a pcapng file,
    /// each with a comment that names the graph and the node. It is for looking, not for speed: each packet is copied
    /// and each node takes a lock. A walk goes on when nothing can be written; [`Graph::traced`](crate::Graph::traced)
    /// tells.
    pub fn trace(mut self, out: impl Write + Send + 'static, packets: u64) -> Self {
        self.trace = Some(Trace::new(Box::new(out), &self.name, packets));
        self
    }
}
