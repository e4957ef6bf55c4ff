// SPDX-License-Identifier: BSD-3-Clause
//! The routes: those of a file, or those that the C examples have built in.

use std::collections::HashSet;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::Path;

use dpdk::lpm::{Lpm, Lpm6, LpmConfig};
use dpdk::{Eal, PerSocket};
use forwarding::rules::{Address, Prefix, Route, read_routes};

use super::error::SetupError;
use crate::options::ports_of;
use crate::stop::Stop;

/// Ports that the C examples have routes for.
const BUILT_IN: u16 = 8;

/// Routes that a cache near the core holds the entries of, for which to ask ahead costs more than it gains.
const NEAR: usize = 4096;

/// Routes of both families, for each NUMA node.
pub struct Tables<'eal> {
    pub ipv4: PerSocket<Lpm<'eal>>,
    /// Whether lookups of IPv4 are of so many places in memory that they have to be fetched ahead.
    pub spread: bool,
    pub ipv6: PerSocket<Lpm6<'eal>>,
}

impl<'eal> Tables<'eal> {
    /// Reads the files where there are some. Ends early, with some of the routes, when `stop` is raised: DPDK
    /// looks for a free group from the first on, which takes minutes for tens of thousands of long prefixes.
    pub fn load(
        eal: &'eal Eal,
        ports: u32,
        ipv4: Option<&Path>,
        ipv6: Option<&Path>,
        stop: &Stop,
    ) -> Result<Self, SetupError> {
        let ipv4 =
            ipv4.map_or_else(|| Ok(built_in(ports, net4)), |file| read_routes(file, ports))?;
        let ipv6 =
            ipv6.map_or_else(|| Ok(built_in(ports, net6)), |file| read_routes(file, ports))?;
        Ok(Self {
            spread: ipv4.len() > NEAR,
            ipv4: PerSocket::try_new(eal, |socket| {
                let mut table = Lpm::new(eal, &config("ipv4", socket, &ipv4, 24))?;
                add(&ipv4, stop, |at, len, port| table.add(at, len, port))?;
                Ok::<_, SetupError>(table)
            })?,
            ipv6: PerSocket::try_new(eal, |socket| {
                let mut table = Lpm6::new(eal, &config("ipv6", socket, &ipv6, 24))?;
                add(&ipv6, stop, |at, len, port| table.add(at, len, port))?;
                Ok::<_, SetupError>(table)
            })?,
        })
    }
}

/// Those of l3fwd's tables that lead to enabled ports.
fn built_in<A>(ports: u32, network: fn(u16) -> Prefix<A>) -> Vec<Route<A>> {
    let known = ports_of(ports).filter(|port| *port < BUILT_IN);
    known.map(|port| Route { destination: network(port), port, line: 0 }).collect()
}

fn net4(port: u16) -> Prefix<Ipv4Addr> {
    Prefix { network: Ipv4Addr::new(198, 18, port as u8, 0), len: 24 }
}

fn net6(port: u16) -> Prefix<Ipv6Addr> {
    Prefix { network: Ipv6Addr::new(0x2001, 0x200, 0, port, 0, 0, 0, 0), len: 64 }
}

/// A table with room for these. Groups are counted as [`LpmConfig::groups`] says: one for each part of 8
/// bits behind the first `whole` that some prefix goes into, by what stands before it.
fn config<A: Address>(
    name: &str,
    socket: Option<u32>,
    routes: &[Route<A>],
    whole: u8,
) -> LpmConfig {
    let mut parts = HashSet::new();
    for Route { destination: Prefix { network, len }, .. } in routes {
        parts.extend((whole..*len).step_by(8).map(|end| (network.network(end), end)));
    }
    let named = LpmConfig::named(format!("{name}-{}", socket.unwrap_or(0)));
    LpmConfig {
        max_routes: named.max_routes.max(routes.len() as u32),
        groups: named.groups.max(parts.len() as u32 + 1),
        socket,
        ..named
    }
}

fn add<A: Address>(
    routes: &[Route<A>],
    stop: &Stop,
    mut into: impl FnMut(A, u8, u32) -> Result<(), dpdk::lpm::RouteError>,
) -> Result<(), SetupError> {
    for Route { destination: Prefix { network, len }, port, .. } in routes {
        if stop.is_raised() {
            break;
        }
        into(*network, *len, (*port).into())
            .map_err(|reason| SetupError::Route { prefix: format!("{network}/{len}"), reason })?;
    }
    Ok(())
}
