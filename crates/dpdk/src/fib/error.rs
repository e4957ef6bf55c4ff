// SPDX-License-Identifier: BSD-3-Clause
//! Errors of forwarding tables.

use crate::errno::Errno;
use crate::numa::UnknownNode;

/// Why a table was not made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FibError {
    /// The machine has no such NUMA node.
    #[error("FIB {name:?}: {node}")]
    Node {
        /// Its name.
        name: String,
        /// The reason.
        node: UnknownNode,
    },
    /// The name holds a NUL byte, is empty, or is too long.
    #[error("FIB {name:?}: a name has 1 to {most} bytes and no NUL byte")]
    Name {
        /// The name.
        name: String,
        /// The most bytes.
        most: usize,
    },
    /// A limit is 0 or too large.
    #[error("FIB {name:?} with {given} {what}: 1 to {most} are possible")]
    Limit {
        /// The table's name.
        name: String,
        /// The limit that was violated.
        what: &'static str,
        /// The requested value.
        given: u64,
        /// The most.
        most: u64,
    },
    /// The default next hop does not fit the entries.
    #[error(
        "FIB {name:?}: invalid default next hop {given}: must be at most {most}; choose larger entries (NextHopSize)"
    )]
    DefaultNextHop {
        /// The table's name.
        name: String,
        /// The next hop.
        given: u64,
        /// The largest.
        most: u64,
    },
    /// Tables for IPv6 have entries of 2, 4 or 8 bytes.
    #[error("FIB {name:?}: tables for IPv6 have entries of 2 bytes at least (NextHopSize::Two)")]
    EntrySize {
        /// The table's name.
        name: String,
    },
    /// DPDK refused: `EEXIST` for a name in use, `ENOMEM` for too little memory.
    #[error(
        "FIB {name:?}: {errno}; choose another name, or give EAL more memory (-m, --socket-mem): 2^24 entries \
         are needed, 256 more for each group, and about 200 bytes for each route"
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
        "invalid prefix length {given}: must be 1 to {bits}; use default_next_hop for a default route"
    )]
    Length {
        /// Its length.
        given: u8,
        /// Bits of an address.
        bits: u8,
    },
    /// The next hop does not fit the entries.
    #[error(
        "invalid next hop {given}: must be at most {most}; choose larger entries (NextHopSize)"
    )]
    NextHop {
        /// The next hop.
        given: u64,
        /// The largest.
        most: u64,
    },
    /// The limit of routes or of groups is reached.
    #[error(
        "the table has no room for the change (a removal may need a group, too): make it with more max_routes or \
         groups"
    )]
    Full,
    /// This change of an IPv6 table must put all routes into a new table (see
    /// [`Fib6::add`](super::Fib6::add)), for which there is not enough memory.
    #[error(
        "no memory for a second table, which this change needs: give EAL more (-m, --socket-mem)"
    )]
    Memory,
    /// There is no such route.
    #[error("there is no such route")]
    Absent,
}
