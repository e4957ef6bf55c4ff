// SPDX-License-Identifier: BSD-3-Clause
//! Files of rules and of routes.

use std::fmt::Debug;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::Path;

use forwarders_common::rules::{AclRule, Address, Route, RuleFileError, acl_of, routes_of};

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
    let found: Result<Vec<AclRule<A>>, _> = acl_of(bytes, Path::new("fuzzed"), PORTS);
    let lines = found.map(|rules| rules.iter().map(|rule| rule.line).collect());
    in_order(lines, bytes);
}

fn routes_for<A: Address + Debug>(bytes: &[u8]) {
    let found: Result<Vec<Route<A>>, _> = routes_of(bytes, Path::new("fuzzed"), PORTS);
    if let Ok(routes) = &found {
        assert!(routes.iter().all(|route| PORTS & 1 << route.port != 0));
        assert!(routes.iter().all(|route| (1..=A::BITS).contains(&route.destination.len)));
    }
    in_order(found.map(|routes| routes.iter().map(|route| route.line).collect()), bytes);
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
