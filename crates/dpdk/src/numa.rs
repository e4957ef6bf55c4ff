// SPDX-License-Identifier: BSD-3-Clause
//! NUMA nodes as DPDK takes them.

use std::ffi::c_int;

/// A node's number; `SOCKET_ID_ANY` for any node that has memory.
pub(crate) fn socket_id(socket: Option<u32>) -> c_int {
    socket.map_or(-1, |socket| socket as c_int)
}
