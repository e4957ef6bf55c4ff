// SPDX-License-Identifier: BSD-3-Clause
//! Routes: networks and the ports that packets to them are sent on.

use std::io::BufRead;
use std::path::Path;

use super::fields::{Fields, is_enabled};
use super::lines::{Counts, Kind};
use super::{
    Address, Contents, Mistake, Prefix, Remark, RuleFileError, Strictness, Warning, lines,
};

/// A route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route<A> {
    /// The destination network.
    pub destination: Prefix<A>,
    /// The port that packets are sent on.
    pub port: u16,
    /// Its line in the file, counted from 1.
    pub line: usize,
}

const ROUTES: Kind = Kind {
    name: "routes",
    again: Mistake::SameNetwork,
    repeated: Remark::Replaces,
    counts: Counts::Last,
};

/// Reads a file of routes. Prefixes have a length of at least 1: DPDK's tables have no default
/// route. `ports` is the mask of the program's ports; routes to other ports are left out.
///
/// # Errors
/// See [`RuleFileError`].
pub fn read_routes<A: Address>(
    path: &Path,
    ports: u32,
    strictness: Strictness,
) -> Result<Contents<Route<A>>, RuleFileError> {
    routes_of(lines::open(path)?, path, ports, strictness)
}

/// As [`read_routes`], for a text; errors name the file `path`, whether or not the text is from
/// there.
///
/// # Errors
/// See [`RuleFileError`].
pub fn routes_of<A: Address>(
    text: impl BufRead,
    path: &Path,
    ports: u32,
    strictness: Strictness,
) -> Result<Contents<Route<A>>, RuleFileError> {
    let key = |route: &Route<A>| route.destination;
    let mut lines = 0;
    let parse = |text: &str, line: usize, remarks: &mut Vec<Remark>| {
        lines += 1;
        route(text, line, (ports, strictness), remarks)
    };
    let mut routes = lines::read(text, path, (&ROUTES, strictness), parse, key)?;
    if lines == 0 {
        return Err(RuleFileError::NothingPasses(path.to_owned()));
    }
    if routes.entries.is_empty() {
        let (file, remark) = (path.to_owned(), Remark::NoRoutes);
        routes.warnings.push(Warning { file, line: None, remark });
    }
    Ok(routes)
}

/// A route; none if its port is not in the mask.
fn route<A: Address>(
    text: &str,
    line: usize,
    (ports, strictness): (u32, Strictness),
    remarks: &mut Vec<Remark>,
) -> Result<Option<Route<A>>, Mistake> {
    let (found, mut fields) = Fields::of(text);
    if found != 'R' {
        return Err(Mistake::Lead { found, expected: "R or #" });
    }
    let prefix = |text: &str| Prefix::parse(text, A::of_route);
    let destination = fields.next("destination", A::ROUTE, prefix)?;
    if destination.len == 0 {
        return Err(Mistake::DefaultRoute(A::HALVES));
    }
    let port = match strictness {
        Strictness::Strict => fields.device(ports)?,
        Strictness::AsL3fwd => fields.any_device()?,
    };
    fields.end(strictness, remarks)?;
    if !is_enabled(ports, port) {
        remarks.push(Remark::NotEnabled(port));
        return Ok(None);
    }
    Ok(Some(Route { destination, port, line }))
}
