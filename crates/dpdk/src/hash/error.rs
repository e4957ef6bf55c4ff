// SPDX-License-Identifier: BSD-3-Clause
//! Errors of hash tables.

use crate::errno::Errno;
use crate::numa::UnknownNode;

/// Why a table was not made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HashError {
    /// The machine has no such NUMA node.
    #[error("hash table {name:?}: {node}")]
    Node {
        /// Its name.
        name: String,
        /// The reason.
        node: UnknownNode,
    },
    /// The name holds a NUL byte, is empty, or is too long.
    #[error("hash table {name:?}: a name has 1 to {most} bytes and no NUL byte")]
    Name {
        /// The name.
        name: String,
        /// The most bytes.
        most: usize,
    },
    /// net_memif would mistake the table for its own, and its values for pointers.
    #[error("hash table {0:?}: that is the name of net_memif's own table")]
    Reserved(String),
    /// The capacity is too small or too large.
    #[error("hash table {name:?} for {given} keys: 8 to {most} are possible")]
    Capacity {
        /// The table's name.
        name: String,
        /// The requested value.
        given: u32,
        /// The most.
        most: u32,
    },
    /// `rte_jhash` reads keys in words of 4 bytes.
    #[error(
        "hash table {name:?}: keys of {given} bytes; HashFunction::Jhash takes multiples of 4: fill the key \
         up, or choose HashFunction::Crc"
    )]
    KeyLength {
        /// The table's name.
        name: String,
        /// Bytes of a key.
        given: usize,
    },
    /// DPDK refused: `EEXIST` for a name in use, `ENOMEM` for too little memory.
    #[error(
        "hash table {name:?}: {errno}; choose another name, or give EAL more memory (-m, --socket-mem): about \
         40 bytes for each key are needed besides the keys"
    )]
    Refused {
        /// The table's name.
        name: String,
        /// The reason.
        errno: Errno,
    },
}

/// The table has no room for the key, and was not changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the hash table has no room for the key: make it with more capacity, or extendable")]
pub struct Full;

/// The numbers of keys, hashes and values differ, or there are too many keys; nothing was looked
/// up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LookupError {
    /// They differ in number.
    #[error("{keys} keys and {others} {what}: give one for each key")]
    Lengths {
        /// Keys to look up.
        keys: usize,
        /// The argument that does not fit the keys.
        what: &'static str,
        /// Its number of elements.
        others: usize,
    },
    /// More keys than a mask has bits.
    #[error("{0} keys: a mask has 64 bits; lookup_bulk takes any number")]
    TooMany(usize),
}
