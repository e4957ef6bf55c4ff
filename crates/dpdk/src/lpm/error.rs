// SPDX-License-Identifier: BSD-3-Clause
//! Errors of routing tables.

use crate::errno::Errno;
use crate::numa::UnknownNode;

/// Why a table was not made, or not shared.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LpmError {
    /// The machine has no such NUMA node.
    #[error("LPM table {name:?}: {node}")]
    Node {
        /// Its name.
        name: String,
        /// The reason.
        node: UnknownNode,
    },
    /// The name holds a NUL byte, is empty, or is too long.
    #[error("LPM table {name:?}: a name has 1 to {most} bytes and no NUL byte")]
    Name {
        /// The name.
        name: String,
        /// The most bytes.
        most: usize,
    },
    /// A limit is 0 or too large.
    #[error("LPM table {name:?} with {given} {what}: 1 to {most} are possible")]
    Limit {
        /// The table's name.
        name: String,
        /// The limit that was violated.
        what: &'static str,
        /// The requested value.
        given: u32,
        /// The most.
        most: u32,
    },
    /// DPDK refused: `EEXIST` for a name in use, `ENOMEM` for too little memory.
    #[error(
        "LPM table {name:?}: {errno}; choose another name, or give EAL more memory (-m, --socket-mem): 64 \
         MiB are needed, 1 KiB for each group, and room for the routes"
    )]
    Refused {
        /// The table's name.
        name: String,
        /// The reason.
        errno: Errno,
    },
}

/// Why a route was not added or removed. The table was not changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RouteError {
    /// Too short or too long.
    #[error(
        "invalid prefix length {given}: must be 1 to {bits}; add two prefixes of length 1 for a default route"
    )]
    Length {
        /// Its length.
        given: u8,
        /// Bits of an address.
        bits: u8,
    },
    /// The next hop does not fit the entries.
    #[error("invalid next hop {given}: must be at most {most}")]
    NextHop {
        /// The next hop.
        given: u32,
        /// The largest.
        most: u32,
    },
    /// The limit of routes or groups is reached, or readers of a shared table have not been
    /// quiescent since groups were released.
    #[error(
        "the table has no room for the change: make it with more max_routes or groups; where it is shared, let \
         its readers be quiescent"
    )]
    Full,
    /// There is no such route.
    #[error("there is no such route")]
    Absent,
}

/// `addresses` and `hops` differ in length; nothing was looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{addresses} addresses and {hops} places for next hops: give one place for each address")]
pub struct LookupError {
    /// Addresses to look up.
    pub addresses: usize,
    /// Places for next hops.
    pub hops: usize,
}
