// SPDX-License-Identifier: BSD-3-Clause
//! Routes: networks and the ports that lead there.

use std::io::BufRead;
use std::path::Path;

use super::fields::Fields;
use super::lines::Kind;
use super::{Address, Mistake, Prefix, RuleFileError, lines};

/// A route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route<A> {
    /// Where it leads.
    pub destination: Prefix<A>,
    /// The port that packets leave by.
    pub port: u16,
    /// Its line in the file, counted from 1.
    pub line: usize,
}

const ROUTES: Kind = Kind { name: "routes", again: Mistake::SameNetwork };

/// Reads a file of routes. Prefixes have a length of 1 or more: DPDK's tables have no default route. `ports`
/// is the mask of the program's ports.
///
/// # Errors
/// See [`RuleFileError`].
pub fn read_routes<A: Address>(path: &Path, ports: u32) -> Result<Vec<Route<A>>, RuleFileError> {
    routes_of(lines::open(path)?, path, ports)
}

/// As [`read_routes`], of text that is or might be in the file `path`; errors name it.
///
/// # Errors
/// See [`RuleFileError`].
pub fn routes_of<A: Address>(
    text: impl BufRead,
    path: &Path,
    ports: u32,
) -> Result<Vec<Route<A>>, RuleFileError> {
    let key = |route: &Route<A>| route.destination;
    let routes = lines::read(text, path, &ROUTES, |text, line| route(text, line, ports), key)?;
    if routes.is_empty() {
        return Err(RuleFileError::NothingPasses(path.to_owned()));
    }
    Ok(routes)
}

fn route<A: Address>(text: &str, line: usize, ports: u32) -> Result<Route<A>, Mistake> {
    let (found, mut fields) = Fields::of(text);
    if found != 'R' {
        return Err(Mistake::Lead { found, expected: "R or #" });
    }
    let prefix = |text: &str| Prefix::parse(text, A::of_route);
    let destination = fields.next("destination", A::ROUTE, prefix)?;
    if destination.len == 0 {
        return Err(Mistake::DefaultRoute(A::HALVES));
    }
    let port = fields.device(ports)?;
    fields.end()?;
    Ok(Route { destination, port, line })
}
