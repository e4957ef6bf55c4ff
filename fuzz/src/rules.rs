// SPDX-License-Identifier: BSD-3-Clause
//! Files of rules and of routes.

use std::fmt::Debug;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::Path;

use forwarders_common::rules::{
    AclRule, Address, Contents, Route, RuleFileError, Strictness, acl_of, routes_of,
};

const PORTS: u32 = 0b1101;

/// Reads the bytes as a file of rules for IPv4 and for IPv6.
pub fn rules(bytes: &[u8]) {
    rules_of::<Ipv4Addr>(bytes);
    rules_of::<Ipv6Addr>(bytes);
}

/// Reads the bytes as a file of routes for IPv4 and for IPv6.
pub fn routes(bytes: &[u8]) {
    routes_for::<Ipv4Addr>(bytes);
    routes_for::<Ipv6Addr>(bytes);
}

fn rules_of<A: Address + Debug>(bytes: &[u8]) {
    let read = |strictness| acl_of(bytes, Path::new("fuzzed"), PORTS, strictness);
    let lines = |rules: &[AclRule<A>]| rules.iter().map(|rule| rule.line).collect();
    both(read, lines, bytes);
}

fn routes_for<A: Address + Debug>(bytes: &[u8]) {
    let read = |strictness| routes_of(bytes, Path::new("fuzzed"), PORTS, strictness);
    let lines = |routes: &[Route<A>]| {
        assert!(routes.iter().all(|route| PORTS & 1 << route.port != 0));
        assert!(routes.iter().all(|route| (1..=A::BITS).contains(&route.destination.len)));
        routes.iter().map(|route| route.line).collect()
    };
    both(read, lines, bytes);
}

/// Reads as l3fwd and strictly: what the latter takes the former takes, the same and without a warning. `lines` gives those of
/// the entries.
fn both<T: Debug + PartialEq>(
    read: impl Fn(Strictness) -> Result<Contents<T>, RuleFileError>,
    lines: impl Fn(&[T]) -> Vec<usize>,
    bytes: &[u8],
) {
    let (as_l3fwd, strict) = (read(Strictness::AsL3fwd), read(Strictness::Strict));
    if let Ok(strict) = &strict {
        assert_eq!(strict.warnings, []);
        assert_eq!(as_l3fwd.as_ref().ok(), Some(strict));
    }
    for found in [as_l3fwd, strict] {
        in_order(found.map(|found| lines(&found.entries)), bytes);
    }
}

/// Errors name the file; what is read comes from lines that there are.
fn in_order(lines: Result<Vec<usize>, RuleFileError>, bytes: &[u8]) {
    match lines {
        Ok(lines) => {
            let most = bytes.split(|byte| *byte == b'\n').count();
            assert!(lines.windows(2).all(|pair| pair[0] < pair[1]));
            assert!(lines.iter().all(|line| (1..=most).contains(line)));
        }
        Err(error) => assert!(error.to_string().contains("fuzzed"), "{error}"),
    }
}
