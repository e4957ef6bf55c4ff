// SPDX-License-Identifier: BSD-3-Clause
//! The graphs, declared once for both executors.

use dpdk::{Eal, Mbuf};
use graph::{Executor, Fused, GraphError, Librte, Topology, topology};

use super::nodes::{
    BURST, Classify, Discard, Filter, Ip4Lookup, Ip4Rewrite, Ip6Lookup, Ip6Rewrite, Receive,
    Transmit,
};
use super::options;

/// A graph of packets that ends in routing, with the nodes `first` before and `last` after it.
macro_rules! routing {
    ($(#[$doc:meta])* $name:ident<$($lifetime:lifetime),+> { $($first:tt)+ } { $($last:tt)* }) => {
        topology! {
            $(#[$doc])*
            pub struct $name<$($lifetime),+> for Mbuf<'port> {
                $($first)+
                each classify: Classify => { Ipv4 => lookup4, Ipv6 => lookup6, Other => not_ip },
                each lookup4: Ip4Lookup<'port> => { Route => rewrite4, NoRoute => no_route, Expired => expired },
                each lookup6: Ip6Lookup<'port> => { Route => rewrite6, NoRoute => no_route, Expired => expired },
                each rewrite4: Ip4Rewrite => { Send => tx, Drop => unsent },
                each rewrite6: Ip6Rewrite => { Send => tx, Drop => unsent },
                node tx: Transmit<'port> => { Unsent => unsent },
                $($last)*
                node not_ip: Discard,
                node no_route: Discard,
                node expired: Discard,
                node unsent: Discard,
            }
        }
    };
}

routing! {
    /// Packets are routed.
    Router<'port> { source rx: Receive<'port> => { Packets => classify }, } {}
}

routing! {
    /// Packets are filtered first.
    FilteringRouter<'port, 'eal> {
        source rx: Receive<'port> => { Packets => acl },
        node acl: Filter<'port, 'eal> => { Pass => classify, Deny => denied },
    } {
        node denied: Discard,
    }
}

impl<'port> Router<'port> {
    /// The same with a filter after the queues.
    pub fn filtered<'eal>(self, acl: Filter<'port, 'eal>) -> FilteringRouter<'port, 'eal> {
        FilteringRouter {
            rx: self.rx,
            acl,
            classify: self.classify,
            lookup4: self.lookup4,
            lookup6: self.lookup6,
            rewrite4: self.rewrite4,
            rewrite6: self.rewrite6,
            tx: self.tx,
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

/// Makes a graph of these nodes with the selected executor.
pub fn make<'port, T: Topology + Send + 'port>(
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
