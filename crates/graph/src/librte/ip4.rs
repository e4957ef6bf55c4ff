// SPDX-License-Identifier: BSD-3-Clause
//! Routes of DPDK's `ip4_lookup` and `ip4_rewrite`.

use std::collections::BTreeMap;
use std::fmt;
use std::net::Ipv4Addr;

use dpdk::Errno;

use super::error::GraphError;

/// A route of DPDK's nodes `ip4_lookup` and `ip4_rewrite`.
///
/// ```
/// use graph::{Ip4NextHop, Ip4Route};
///
/// let next_hop = Ip4NextHop {
///     port: 1,
///     destination: [0x02, 0, 0, 0, 0, 0x01],
///     source: [0x02, 0, 0, 0, 0, 0x02],
/// };
/// let route = Ip4Route { address: [198, 18, 0, 0].into(), length: 15, next_hop };
/// assert_eq!(route.to_string(), "198.18.0.0/15");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ip4Route {
    /// Packets to this prefix; bits after its length are ignored.
    pub address: Ipv4Addr,
    /// Bits of the prefix, 1 to 32.
    pub length: u8,
    /// Where its packets are sent.
    pub next_hop: Ip4NextHop,
}

impl Ip4Route {
    fn prefix(&self) -> (u32, u8) {
        let bits = u32::MAX.checked_shl(32 - u32::from(self.length)).unwrap_or(0);
        (u32::from(self.address) & bits, self.length)
    }
}

impl fmt::Display for Ip4Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

/// Where the packets of a route are sent. At most 64 different ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ip4NextHop {
    /// Number of the port, [`PortId::index`](dpdk::PortId::index).
    pub port: u16,
    /// The destination MAC address to write.
    pub destination: [u8; 6],
    /// The source MAC address to write.
    pub source: [u8; 6],
}

/// `RTE_GRAPH_IP4_REWRITE_MAX_NH`, which is in no header.
const MOST_HOPS: usize = 64;

/// Numbers the next hops.
fn number(routes: &[Ip4Route]) -> BTreeMap<Ip4NextHop, u16> {
    let mut numbers = BTreeMap::new();
    for route in routes {
        let next = numbers.len() as u16;
        numbers.entry(route.next_hop).or_insert(next);
    }
    numbers
}

/// Checks that DPDK can take the routes of a graph with these transmit ports.
pub(super) fn check(routes: &[Ip4Route], ports: &[u16]) -> Result<(), GraphError> {
    let wrong = |route: &Ip4Route, what: String| Err(GraphError::Route { route: *route, what });
    let mut known = BTreeMap::new();
    for route in routes {
        if !(1..=32).contains(&route.length) {
            return wrong(route, "a prefix has 1 to 32 bits".into());
        }
        let port = route.next_hop.port;
        if !ports.contains(&port) {
            return wrong(route, format!("the graph has no node ethdev_tx-{port}"));
        }
        if let Some(before) = known.insert(route.prefix(), route.next_hop) {
            if before != route.next_hop {
                return wrong(
                    route,
                    "another route to the same prefix has another next hop".into(),
                );
            }
        }
    }
    let hops = number(routes).len();
    if hops > MOST_HOPS { Err(GraphError::NextHops(hops)) } else { Ok(()) }
}

/// Adds the routes to DPDK's table, for the rest of the process; returns how many were added, too.
/// No graph with these nodes is walked meanwhile, and one has been made.
pub(super) fn add(routes: &[Ip4Route]) -> (usize, Result<(), GraphError>) {
    let numbers = number(routes);
    for (added, route) in routes.iter().enumerate() {
        let hop = route.next_hop;
        let number = numbers[&hop];
        let mut addresses = [0; 12];
        addresses[..6].copy_from_slice(&hop.destination);
        addresses[6..].copy_from_slice(&hop.source);
        // SAFETY: DPDK copies the 12 bytes; the port has a node, for which it has an edge, and the next hop is
        // among those that it has room for.
        let code = unsafe {
            let code = dpdk_sys::rte_node_ip4_rewrite_add(
                number,
                addresses.as_mut_ptr(),
                addresses.len() as u8,
                hop.port,
            );
            if code < 0 {
                code
            } else {
                dpdk_sys::rte_node_ip4_route_add(
                    route.address.into(),
                    route.length,
                    number,
                    dpdk_sys::RTE_NODE_IP4_LOOKUP_NEXT_REWRITE,
                )
            }
        };
        if code < 0 {
            let error = GraphError::RouteRefused { route: *route, errno: Errno(-code) };
            return (added, Err(error));
        }
    }
    (routes.len(), Ok(()))
}
