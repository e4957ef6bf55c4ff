// SPDX-License-Identifier: BSD-3-Clause
//! NUMA nodes as DPDK takes them.

use std::ffi::c_int;

/// The machine has no such NUMA node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "NUMA node {requested} does not exist: DPDK found {known} (lscpu lists them); `socket: None` takes any node"
)]
pub struct UnknownNode {
    /// The requested node.
    pub requested: u32,
    /// How many nodes DPDK found.
    pub known: u32,
}

/// Numbers from here on are heaps of memory that a program has brought itself (`rte_malloc_heap_create`).
const EXTERNAL: u32 = 256;

/// A node's number; `SOCKET_ID_ANY` for any node that has memory. Callers have an Eal.
pub(crate) fn socket_id(socket: Option<u32>) -> Result<c_int, UnknownNode> {
    let Some(requested) = socket else { return Ok(-1) };
    // SAFETY: EAL runs, because the caller has an Eal.
    let known = unsafe { dpdk_sys::rte_socket_count() };
    // SAFETY: as above; a negative number is returned for an index that is too large.
    let is_known = |index| unsafe { dpdk_sys::rte_socket_id_by_idx(index) } == requested as c_int;
    if requested >= EXTERNAL && requested <= c_int::MAX as u32 || (0..known).any(is_known) {
        return Ok(requested as c_int);
    }
    Err(UnknownNode { requested, known })
}
