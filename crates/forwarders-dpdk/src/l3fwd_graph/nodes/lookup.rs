// SPDX-License-Identifier: BSD-3-Clause
//! Looks up the port that a packet is to be sent on.

use dpdk::Mbuf;
use dpdk::lpm::{Lookups, Lpm6};
use graph::EachNode;

use super::header::{ETHERNET, IPV4, IPV6, field};

graph::edges! {
    /// The result of a lookup.
    pub enum Found {
        /// A route; the packet has the number of its port.
        Route,
        /// None.
        NoRoute,
        /// The packet's TTL or hop limit has expired.
        Expired,
    }
}

/// The smallest TTL with which a router may forward a packet (RFC 1812, 5.3.1).
const LEAST_TTL: u8 = 2;

/// Looks IPv4 destinations up.
pub struct Ip4Lookup<'t> {
    routes: Lookups<'t>,
    spread: bool,
}

impl<'t> Ip4Lookup<'t> {
    /// With `spread`, the table is larger than a nearby cache, and entries are prefetched.
    pub fn new(routes: Lookups<'t>, spread: bool) -> Self {
        Self { routes, spread }
    }
}

impl<'m> EachNode<Mbuf<'m>> for Ip4Lookup<'_> {
    type Next = Found;

    #[inline(always)]
    fn ahead(&self, packet: &Mbuf<'m>) {
        if !self.spread {
            return;
        }
        if let Some(header) = packet.header::<IPV4>() {
            self.routes.prefetch(u32::from_be_bytes(field(header, ETHERNET + 16)));
        }
    }

    #[inline]
    fn each(&mut self, packet: &mut Mbuf<'m>) -> Found {
        let Some(header) = packet.header::<IPV4>() else { return Found::NoRoute };
        let (ttl, destination) = (header[ETHERNET + 8], field(header, ETHERNET + 16));
        if ttl < LEAST_TTL {
            return Found::Expired;
        }
        let Some(port) = self.routes.lookup(u32::from_be_bytes(destination)) else {
            return Found::NoRoute;
        };
        packet.set_port(port as u16);
        Found::Route
    }
}

/// Looks IPv6 destinations up.
pub struct Ip6Lookup<'t>(pub &'t Lpm6<'t>);

impl<'m> EachNode<Mbuf<'m>> for Ip6Lookup<'_> {
    type Next = Found;

    #[inline]
    fn each(&mut self, packet: &mut Mbuf<'m>) -> Found {
        let Some(header) = packet.header::<IPV6>() else { return Found::NoRoute };
        let (hops, destination) = (header[ETHERNET + 7], field(header, ETHERNET + 24));
        if hops < LEAST_TTL {
            return Found::Expired;
        }
        let Some(port) = self.0.lookup(&destination) else { return Found::NoRoute };
        packet.set_port(port as u16);
        Found::Route
    }
}
