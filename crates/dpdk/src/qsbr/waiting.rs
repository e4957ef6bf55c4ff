// SPDX-License-Identifier: BSD-3-Clause
//! What a table has given up while readers may still look at it.

use std::ffi::CString;
use std::ptr::NonNull;

use dpdk_sys::{layout, rte_ring};

/// DPDK's queue of parts of a table that wait for readers (`rte_rcu_qsbr_dq`), of which only the ring is known. DPDK frees it
/// with the table if it is empty; if not, because a reader is online and has not been quiescent, it keeps the ring and
/// its name for ever.
pub(crate) struct Waiting {
    ring: Option<NonNull<rte_ring>>,
}

// SAFETY: the pointer is used once, by whoever owns the table then.
unsafe impl Send for Waiting {}
// SAFETY: through `&Waiting` nothing is done.
unsafe impl Sync for Waiting {}

impl Waiting {
    /// The queue that DPDK has just made for a table; its name begins with `prefix`, and is cut to what a ring's may
    /// have.
    pub(crate) fn of(prefix: &str, table: &str) -> Self {
        let mut name = format!("{prefix}{table}").into_bytes();
        name.truncate(layout::RING_NAME_SIZE - 1);
        let ring = CString::new(name).ok().and_then(|name| {
            // SAFETY: looks a ring up by its name, which no other has while the table lives.
            NonNull::new(unsafe { dpdk_sys::rte_ring_lookup(name.as_ptr()) })
        });
        Self { ring }
    }

    /// Forgets what waits, so that DPDK frees the queue.
    ///
    /// # Safety
    /// The table lives, and is only freed from now on.
    pub(crate) unsafe fn forget(&mut self) {
        if let Some(ring) = self.ring.take() {
            // SAFETY: the ring lives as long as the table, and nobody else uses it. What is inside are numbers of parts
            // of the table.
            unsafe { dpdk_sys::rte_ring_reset(ring.as_ptr()) };
        }
    }
}
