// SPDX-License-Identifier: BSD-3-Clause
//! DPDK's own nodes in a graph with Rust nodes.

use std::io::Write;

use dpdk::{Lcore, Mbuf, RxQueue, TxQueue};

use super::builder::GraphBuilder;
use super::c_nodes::{CLASSIFY, DROP};
use super::ip4::Ip4Route;
use super::trace::Trace;

/// # DPDK's own nodes
/// Nodes of librte_node can be added to a graph of packets, under DPDK's names. Rust nodes name
/// them as targets: `pkt_cls`, `ip4_lookup`, `pkt_drop`, `ethdev_tx-0` for port 0. Their own edges
/// lead to DPDK's targets, or to another node of this graph after [`lead`](Self::lead). Edges to
/// nodes of other ports, and to nodes that are not supported here (`ip6_lookup` of later releases),
/// lead to `pkt_drop`.
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
    /// Adds `ethdev_rx-PORT-QUEUE`, which polls this queue in each walk and sends the packets to
    /// `target`. If the driver reports no packet types, DPDK adds a callback to the queue that
    /// detects IPv4 and IPv6, another one for each graph that the queue is added to.
    pub fn ethdev_rx<'port: 'eal + 'm>(mut self, queue: RxQueue<'port>, target: &str) -> Self {
        self.c_nodes.receive.push((queue.port().index(), queue.queue(), target.to_owned()));
        self.keep(queue);
        self
    }

    /// Adds `ethdev_tx-PORT`, which sends on this queue; packets that the driver does not take go
    /// to `pkt_drop`.
    pub fn ethdev_tx<'port: 'eal>(mut self, queue: TxQueue<'port>) -> Self {
        self.c_nodes.transmit.push((queue.port().index(), queue.queue()));
        self.keep(queue);
        self
    }

    /// Adds `pkt_cls`, which sends packets whose type, as detected by the receiving port, is IPv4
    /// to `ip4_lookup`, and others to `pkt_drop`.
    pub fn pkt_cls(mut self) -> Self {
        self.c_nodes.plain.push(CLASSIFY);
        self
    }

    /// Adds `pkt_drop`, which frees packets. Its object count is the number of packets freed.
    pub fn pkt_drop(mut self) -> Self {
        self.c_nodes.plain.push(DROP);
        self
    }

    /// Adds `ip4_lookup` and `ip4_rewrite` with these routes, whose ports need an `ethdev_tx` each.
    /// A packet gets the MAC addresses of its next hop, a TTL that is one less (a TTL of 0 becomes
    /// 255) and an updated checksum. Packets without a route go to `pkt_drop`, as do those with
    /// less than 34 bytes in their first segment, and those whose bytes have other owners.
    ///
    /// DPDK has one routing table in a process, from which nothing is removed: the first graph sets
    /// the routes, and other graphs must have the same.
    pub fn ip4(mut self, routes: &[Ip4Route]) -> Self {
        self.c_nodes.routes.get_or_insert_default().extend(routes);
        self
    }

    /// Makes the edge of one of DPDK's nodes that leads to `from` lead to `to`, in this graph only.
    pub fn lead(mut self, node: &str, from: &str, to: &str) -> Self {
        self.c_nodes.led.push((node.to_owned(), from.to_owned(), to.to_owned()));
        self
    }

    /// Allocates the graph's memory on the NUMA node of an lcore, which should be the one that
    /// walks the graph. By default it is on the main lcore's node for graphs with
    /// [`ip4`](Self::ip4), and on any for others.
    pub fn on(mut self, lcore: Lcore) -> Self {
        self.c_nodes.lcore = Some(lcore);
        self
    }

    /// Writes packets as they arrive at nodes to a pcapng file, each with a comment that names the
    /// graph and the node. At most `packets` are written in all (a packet counts at each node). It
    /// is for debugging, not for speed: each packet is copied, and each node takes a lock. If
    /// writing fails, the walk continues; [`Graph::traced`](crate::Graph::traced) returns the
    /// error.
    pub fn trace(mut self, out: impl Write + Send + 'static, packets: u64) -> Self {
        self.trace = Some(Trace::new(Box::new(out), &self.name, packets));
        self
    }
}
