// SPDX-License-Identifier: BSD-3-Clause
//! Errors of ACLs.

use super::Algorithm;
use crate::errno::Errno;
use crate::numa::UnknownNode;

/// Why an ACL was not made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AclError {
    /// The machine has no such NUMA node.
    #[error("ACL {name:?}: {node}")]
    Node {
        /// Its name.
        name: String,
        /// The reason.
        node: UnknownNode,
    },
    /// The name holds a NUL byte, is empty, or is too long.
    #[error("ACL {name:?}: a name has 1 to {most} bytes and no NUL byte")]
    Name {
        /// The name.
        name: String,
        /// The most bytes.
        most: usize,
    },
    /// Names are unique in a process.
    #[error("an ACL named {0:?} already exists: choose another name, or drop that ACL first")]
    Taken(String),
    /// No rules, or more than DPDK can count.
    #[error("ACL {name:?} for {rules} rules: 1 to {most} of so many fields are possible")]
    Rules {
        /// The ACL's name.
        name: String,
        /// Rules asked for.
        rules: u32,
        /// The most of this layout.
        most: u32,
    },
    /// The CPU lacks the instructions, or EAL's `--force-max-simd-bitwidth` forbids them.
    #[error(
        "{0:?} cannot be used on this CPU or with EAL's --force-max-simd-bitwidth: use Algorithm::Best"
    )]
    Algorithm(Algorithm),
    /// DPDK has not enough memory on that NUMA node.
    #[error("ACL {name:?}: {errno}; give EAL more memory (-m, --socket-mem)")]
    Memory {
        /// The ACL's name.
        name: String,
        /// DPDK's answer.
        errno: Errno,
    },
}

/// Why an ACL was not built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The rules need more than `AclConfig::max_memory`.
    #[error("the rules need more than max_memory = {0} bytes: allow more, or 0 for no limit")]
    Limit(usize),
    /// DPDK refused: `ENOMEM` for too little memory.
    #[error(
        "rte_acl_build: {0}; its messages are above. Give EAL more memory (-m, --socket-mem), or set max_memory"
    )]
    Refused(Errno),
}

/// Why packets were not classified. Nothing was written, except with [`Short`](Self::Short):
/// verdicts of earlier packets may have been.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClassifyError {
    /// A packet ends before the last field.
    #[error("packet {index} has {len} bytes, the layout needs {needed}")]
    Short {
        /// Its index among the packets.
        index: usize,
        /// Bytes that it has.
        len: usize,
        /// Bytes that the layout needs.
        needed: usize,
    },
    /// The number of verdicts differs from that of packets.
    #[error("{verdicts} verdicts for {packets} packets: give one for each packet")]
    Verdicts {
        /// Verdicts given.
        verdicts: usize,
        /// Packets to classify.
        packets: usize,
    },
    /// The inputs were collected for an ACL whose layout needs fewer bytes.
    #[error(
        "inputs of {checked} bytes for an ACL that needs {needed}: collect them with this ACL's inputs()"
    )]
    Foreign {
        /// Bytes that each input has at least.
        checked: usize,
        /// Bytes that the layout needs.
        needed: usize,
    },
}
