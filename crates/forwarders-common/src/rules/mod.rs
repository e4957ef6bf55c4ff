// SPDX-License-Identifier: BSD-3-Clause
//! Files of rules and of routes, in the form that DPDK's l3fwd reads.
//!
//! A line is a comment (`#` in its first column), blank, or begins with its kind:
//!
//! ```text
//! file of rules:   @SOURCE DESTINATION LOW : HIGH LOW : HIGH PROTOCOL/MASK [FLAGS/MASK]        packets that match are dropped
//!                  RSOURCE DESTINATION LOW : HIGH LOW : HIGH PROTOCOL/MASK PORT [FLAGS/MASK]   packets that match go on
//! file of routes:  RDESTINATION PORT
//! ```
//!
//! Addresses have a prefix length after a slash; numbers are decimal, hexadecimal (`0x`) or octal
//! (`0`). The first ports are the source's. Of the rules that match, the first in the file wins.
//!
//! `FLAGS/MASK` is the last column of ClassBench's filter sets: 16 bits of which the upper eight are the TCP
//! header's flags (`0x0200` is SYN) and the lower eight are 0. l3fwd ignores it, as it ignores any word there.
//!
//! What l3fwd silently accepts is read with a [`Warning`] that names file and line, or is an error
//! with [`Strictness::Strict`]: words after the last field, a rule that is hidden by an equal one
//! before it, a route to a port that is not enabled, a second route to the same network (the last
//! one is used). What l3fwd misreads is always an error: truncated numbers, signs, several slashes.
//! Lines may end in CR LF, and IPv6 addresses may be abbreviated, which l3fwd does not allow in
//! rules.

mod acl;
mod address;
mod error;
mod fields;
mod lines;
mod routes;
mod warning;

pub use acl::{AclRule, Action, FiveTuple, TcpFlags, acl_of, read_acl};
pub use address::{Address, Prefix};
pub use error::{Mistake, RuleFileError};
pub use routes::{Route, read_routes, routes_of};
pub use warning::{Contents, Remark, Strictness, Warning};

/// Rules or routes that a file may have, as in l3fwd.
pub const MAX_RULES: usize = 100_000;

#[cfg(test)]
mod tests;
