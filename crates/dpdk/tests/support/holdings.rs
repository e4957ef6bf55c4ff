// SPDX-License-Identifier: BSD-3-Clause
//! What DPDK has allocated: bytes of its heap and named memory zones, of which pools, rings and
//! tables are made. Comparing two of them, taken before and after something, shows leaks.

use std::collections::BTreeSet;
use std::ffi::{CStr, c_void};

/// Compared by `==`; `Debug` shows the zones, to find the ones that leaked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holdings {
    /// Bytes and pieces of the heap of each NUMA node.
    heaps: Vec<(usize, u32)>,
    zones: BTreeSet<String>,
}

impl Holdings {
    /// What is allocated now. DPDK must be running.
    pub fn now() -> Self {
        // SAFETY: EAL runs; indices below the count are valid.
        let sockets = unsafe {
            (0..dpdk_sys::rte_socket_count()).map(|at| dpdk_sys::rte_socket_id_by_idx(at))
        };
        let heaps = sockets.map(|socket| {
            // SAFETY: a struct of integers, which DPDK fills in.
            unsafe {
                let mut heap = std::mem::zeroed::<dpdk_sys::rte_malloc_socket_stats>();
                assert_eq!(dpdk_sys::rte_malloc_get_socket_stats(socket, &raw mut heap), 0);
                (heap.heap_allocsz_bytes, heap.alloc_count)
            }
        });
        let heaps = heaps.collect();
        let mut zones = BTreeSet::new();
        // SAFETY: calls `name` with each zone and this set, which nothing else uses meanwhile.
        unsafe { dpdk_sys::rte_memzone_walk(Some(name), (&raw mut zones).cast()) };
        Self { heaps, zones }
    }
}

/// # Safety
/// `zones` points to a `BTreeSet<String>` that nothing else uses.
unsafe extern "C" fn name(zone: *const dpdk_sys::rte_memzone, zones: *mut c_void) {
    // SAFETY: the contract is the caller's; the name begins a zone and ends with a NUL.
    unsafe {
        let name = CStr::from_ptr(zone.cast()).to_string_lossy().into_owned();
        (*zones.cast::<BTreeSet<String>>()).insert(name);
    }
}
