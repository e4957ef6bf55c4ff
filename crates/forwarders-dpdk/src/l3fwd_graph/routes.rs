// SPDX-License-Identifier: BSD-3-Clause
//! The routes: from a file, or the built-in ones of the C examples.

use std::collections::HashSet;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::Path;

use dpdk::lpm::{Lpm, Lpm6, LpmConfig, RouteError};
use dpdk::{Eal, PerSocket};
use forwarders_common::rules::{Address, Prefix, Route, RuleFileError, Strictness, read_routes};

use super::error::SetupError;
use super::options::Options;
use super::warnings;
use crate::options::ports_of;
use crate::stop::Stop;

/// Ports that the C examples have routes for.
const BUILT_IN: u16 = 8;

/// The number of routes whose entries fit a cache near the core: prefetching then costs more than
/// it gains.
const NEAR: usize = 4096;

/// Routes of both families, for each NUMA node.
pub struct Tables<'eal> {
    pub ipv4: PerSocket<Lpm<'eal>>,
    /// True if IPv4 lookups access so much memory that entries should be prefetched.
    pub spread: bool,
    pub ipv6: PerSocket<Lpm6<'eal>>,
}

impl<'eal> Tables<'eal> {
    /// Reads the files, if any. Ends early, with some of the routes, if `stop` is set: DPDK
    /// searches for a free group from the first on, which takes minutes for tens of thousands of
    /// long prefixes.
    pub fn load(eal: &'eal Eal, options: &Options, stop: &Stop) -> Result<Self, SetupError> {
        let read = (options.port_mask, options.strictness);
        let ipv4 = Known::new(options.routes_ipv4.as_deref(), read, net4)?;
        let ipv6 = Known::new(options.routes_ipv6.as_deref(), read, net6)?;
        let go_on = || !stop.is_raised();
        Ok(Self {
            spread: ipv4.routes.len() > NEAR,
            ipv4: PerSocket::try_new(eal, |socket| {
                let mut table = Lpm::new(eal, &config("ipv4", socket, &ipv4.routes, 24))?;
                ipv4.add(go_on, |at, len, port| table.add(at, len, port))?;
                Ok::<_, SetupError>(table)
            })?,
            ipv6: PerSocket::try_new(eal, |socket| {
                let mut table = Lpm6::new(eal, &config("ipv6", socket, &ipv6.routes, 24))?;
                ipv6.add(go_on, |at, len, port| table.add(at, len, port))?;
                Ok::<_, SetupError>(table)
            })?,
        })
    }
}

/// Routes of a family.
struct Known<'f, A> {
    /// The file; `None` for the built-in routes.
    file: Option<&'f Path>,
    routes: Vec<Route<A>>,
}

impl<'f, A: Address> Known<'f, A> {
    /// The routes of a file, or those of l3fwd's tables that lead to enabled ports.
    fn new(
        file: Option<&'f Path>,
        (ports, strictness): (u32, Strictness),
        network: fn(u16) -> Prefix<A>,
    ) -> Result<Self, RuleFileError> {
        let built_in = || {
            let known = ports_of(ports).filter(|port| *port < BUILT_IN);
            known.map(|port| Route { destination: network(port), port, line: 0 }).collect()
        };
        let Some(path) = file else { return Ok(Self { file, routes: built_in() }) };
        let contents = read_routes(path, ports, strictness)?;
        warnings::tell(&contents.warnings);
        Ok(Self { file, routes: contents.entries })
    }

    /// Adds them to a table, until `stop` is set.
    fn add(
        &self,
        go_on: impl Fn() -> bool,
        mut into: impl FnMut(A, u8, u32) -> Result<(), RouteError>,
    ) -> Result<(), SetupError> {
        for Route { destination: Prefix { network, len }, port, line } in &self.routes {
            if !go_on() {
                break;
            }
            into(*network, *len, (*port).into()).map_err(|reason| SetupError::Route {
                file: self.file.map(Path::to_owned),
                line: *line,
                prefix: format!("{network}/{len}"),
                reason,
            })?;
        }
        Ok(())
    }
}

fn net4(port: u16) -> Prefix<Ipv4Addr> {
    Prefix { network: Ipv4Addr::new(198, 18, port as u8, 0), len: 24 }
}

fn net6(port: u16) -> Prefix<Ipv6Addr> {
    Prefix { network: Ipv6Addr::new(0x2001, 0x200, 0, port, 0, 0, 0, 0), len: 64 }
}

/// A table with room for these. Groups are counted as [`LpmConfig::groups`] describes: one for each
/// further 8 bits after the first `whole` that some prefix extends into, by the bits before them.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_that_a_table_refuses_is_told_with_its_file_and_line() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("routes");
        std::fs::write(&file, "# to port 0\nR10.0.0.0/8 0\nR10.1.0.0/16 0\n").unwrap();
        let known = Known::new(Some(&file), (1, Strictness::Strict), net4).unwrap();
        let mut room = 1;
        let mut into = |_, _, _| {
            room -= 1;
            if room < 0 { Err(RouteError::Full) } else { Ok(()) }
        };
        let said = known.add(|| true, &mut into).unwrap_err().to_string();
        let expected =
            format!("{}: line 3: the route 10.1.0.0/16: the table has no", file.display());
        assert!(said.starts_with(&expected), "{said}");
        known.add(|| false, &mut into).unwrap();
        // Without a file there is no line to tell.
        let known = Known::new(None, (0b10, Strictness::Strict), net6).unwrap();
        let said = known.add(|| true, |_, _, _| Err(RouteError::Full)).unwrap_err().to_string();
        assert!(said.starts_with("the route 2001:200:0:1::/64: the table"), "{said}");
    }
}
