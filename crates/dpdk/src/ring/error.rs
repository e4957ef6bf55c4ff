// SPDX-License-Identifier: BSD-3-Clause
//! Errors of rings.

use crate::errno::Errno;
use crate::numa::UnknownNode;

/// Why a ring was not made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RingError {
    /// The machine has no such NUMA node.
    #[error("ring {name:?}: {node}")]
    Node {
        /// Its name.
        name: String,
        /// The reason.
        node: UnknownNode,
    },
    /// The name holds a NUL byte, is empty, or is too long.
    #[error("ring {name:?}: a name has 1 to {most} bytes and no NUL byte")]
    Name {
        /// The name.
        name: String,
        /// The most bytes.
        most: usize,
    },
    /// net_ring would use the ring as one of its own, and take its items for packets.
    #[error("ring {0:?}: names that begin with ETH_RXTX are reserved for net_ring")]
    Reserved(String),
    /// The capacity is 0, or larger than a ring can have.
    #[error("ring {name:?} for {given} items: 1 to {most} items of this size are possible")]
    Capacity {
        /// The ring's name.
        name: String,
        /// The requested value.
        given: u32,
        /// The most.
        most: u32,
    },
    /// DPDK refused: `EEXIST` for a name in use, `ENOMEM` for too little memory.
    #[error(
        "ring {name:?}: {errno}; choose another name, or give EAL more memory (-m, --socket-mem): a ring \
         takes the next power of two above its capacity, times an item's size"
    )]
    Refused {
        /// The ring's name.
        name: String,
        /// The reason.
        errno: Errno,
    },
}

/// Nothing was put into the ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the ring has no room for {0} items: take some out, or put in as many as fit (enqueue_burst)"
)]
pub struct NoRoom(pub usize);

/// Nothing was taken out of the ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TooFew {
    /// The ring has fewer items.
    #[error("the ring has fewer than {0} items: take what is there (dequeue_burst)")]
    Items(usize),
    /// There is not enough room.
    #[error("no room to put {asked} items: {spare} fit")]
    Places {
        /// Items asked for.
        asked: usize,
        /// Room for them.
        spare: usize,
    },
}
