// SPDX-License-Identifier: BSD-3-Clause
//! The graphs, written down once for both executors.

use dpdk::{Eal, Mbuf};
use graph::{Executor, Fused, GraphError, Librte, Topology, topology};

use super::nodes::{
    BURST, Classify, Discard, Filter, Ip4Lookup, Ip4Rewrite, Ip6Lookup, Ip6Rewrite, Receive,
    Transmit,
};
use super::options;

topology! {
    /// Packets are routed.
    pub struct Router<'port> for Mbuf<'port> {
        source ethdev_rx: Receive<'port> => { Packets => pkt_cls },
        each pkt_cls: Classify => { Ipv4 => ip4_lookup, Ipv6 => ip6_lookup, Other => not_ip },
        each ip4_lookup: Ip4Lookup<'port> => { Route => ip4_rewrite, NoRoute => no_route, Expired => expired },
        each ip6_lookup: Ip6Lookup<'port> => { Route => ip6_rewrite, NoRoute => no_route, Expired => expired },
        each ip4_rewrite: Ip4Rewrite => { Send => ethdev_tx, Drop => unsent },
        each ip6_rewrite: Ip6Rewrite => { Send => ethdev_tx, Drop => unsent },
        node ethdev_tx: Transmit<'port> => { Unsent => unsent },
        node not_ip: Discard,
        node no_route: Discard,
        node expired: Discard,
        node unsent: Discard,
    }
}

topology! {
    /// Packets are asked for first.
    pub struct FilteringRouter<'port, 'eal> for Mbuf<'port> {
        source ethdev_rx: Receive<'port> => { Packets => pkt_acl },
        node pkt_acl: Filter<'port, 'eal> => { Pass => pkt_cls, Deny => denied },
        each pkt_cls: Classify => { Ipv4 => ip4_lookup, Ipv6 => ip6_lookup, Other => not_ip },
        each ip4_lookup: Ip4Lookup<'port> => { Route => ip4_rewrite, NoRoute => no_route, Expired => expired },
        each ip6_lookup: Ip6Lookup<'port> => { Route => ip6_rewrite, NoRoute => no_route, Expired => expired },
        each ip4_rewrite: Ip4Rewrite => { Send => ethdev_tx, Drop => unsent },
        each ip6_rewrite: Ip6Rewrite => { Send => ethdev_tx, Drop => unsent },
        node ethdev_tx: Transmit<'port> => { Unsent => unsent },
        node denied: Discard,
        node not_ip: Discard,
        node no_route: Discard,
        node expired: Discard,
        node unsent: Discard,
    }
}

impl<'port> Router<'port> {
    /// The same with a filter behind the queues.
    pub fn filtered<'eal>(self, pkt_acl: Filter<'port, 'eal>) -> FilteringRouter<'port, 'eal> {
        FilteringRouter {
            ethdev_rx: self.ethdev_rx,
            pkt_acl,
            pkt_cls: self.pkt_cls,
            ip4_lookup: self.ip4_lookup,
            ip6_lookup: self.ip6_lookup,
            ip4_rewrite: self.ip4_rewrite,
            ip6_rewrite: self.ip6_rewrite,
            ethdev_tx: self.ethdev_tx,
            denied: Discard,
            not_ip: self.not_ip,
            no_route: self.no_route,
            expired: self.expired,
            unsent: self.unsent,
        }
    }
}

/// A graph that an lcore can walk.
pub type Walked<'port> = Box<dyn Executor + Send + 'port>;

/// Has an executor run these nodes.
pub fn make<'port, T: Topology + 'port>(
    eal: &'port Eal,
    executor: options::Executor,
    name: &str,
    nodes: T,
) -> Result<Walked<'port>, GraphError> {
    Ok(match executor {
        options::Executor::Dpdk => Box::new(Librte::<T, BURST>::new(eal, name, nodes)?),
        options::Executor::Fused => Box::new(Fused::<T, BURST>::new(nodes)),
    })
}
