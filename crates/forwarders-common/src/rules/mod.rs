// SPDX-License-Identifier: BSD-3-Clause
//! Files of rules and of routes, in the form that DPDK's l3fwd reads.
//!
//! A line is a comment (`#` in its first column), blank, or begins with what it is:
//!
//! ```text
//! file of rules:   @SOURCE DESTINATION LOW : HIGH LOW : HIGH PROTOCOL/MASK        packets that match are dropped
//!                  RSOURCE DESTINATION LOW : HIGH LOW : HIGH PROTOCOL/MASK PORT   packets that match go on
//! file of routes:  RDESTINATION PORT
//! ```
//!
//! Addresses have a prefix length behind a slash, numbers are decimal, hexadecimal (`0x`) or octal (`0`).
//! The first ports are the source's. Of the rules that match, the first in the file wins.
//!
//! What l3fwd reads wrongly or passes over in silence is an error here: words behind the last field, numbers
//! cut short, a rule that an equal one before it hides. Lines may end in CR LF, and IPv6 addresses may be
//! abbreviated, which l3fwd's own rules may not.

mod acl;
mod address;
mod error;
mod fields;
mod lines;
mod routes;

pub use acl::{AclRule, Action, FiveTuple, acl_of, read_acl};
pub use address::{Address, Prefix};
pub use error::{Mistake, RuleFileError};
pub use routes::{Route, read_routes, routes_of};

/// Rules or routes that a file may have, as in l3fwd.
pub const MAX_RULES: usize = 100_000;

#[cfg(test)]
mod tests;
