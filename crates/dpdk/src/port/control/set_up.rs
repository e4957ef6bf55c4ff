// SPDX-License-Identifier: BSD-3-Clause
//! Whether a port has the queues that its driver believes it has.
//!
//! Drivers add statistics up over their queues, as many as the port is said to have, and some do not look whether
//! those are there: net_vhost says how many it will have before any is set up, and its statistics follow null pointers
//! then. So might another's where setting a queue up has failed.

use std::sync::atomic::{AtomicBool, Ordering};

use dpdk_sys::layout;

use crate::port::error::PortError;
use crate::port::id::PortId;

/// Read and written under the lock of ports.
static SET_UP: [AtomicBool; layout::MAX_ETHPORTS] =
    [const { AtomicBool::new(false) }; layout::MAX_ETHPORTS];

/// Notes that all queues of a port's configuration are set up, or that they may not be. The caller holds the lock.
pub(in crate::port) fn note(id: PortId, all: bool) {
    if let Some(set_up) = SET_UP.get(usize::from(id.0)) {
        set_up.store(all, Ordering::Relaxed);
    }
}

/// Refuses to have a driver look at queues that may not be there. The caller holds the lock.
pub(super) fn check(id: PortId) -> Result<(), PortError> {
    let set_up = SET_UP.get(usize::from(id.0)).is_some_and(|it| it.load(Ordering::Relaxed));
    // Of a port that is gone DPDK says so.
    if set_up || !id.exists() { Ok(()) } else { Err(PortError::NotConfigured(id)) }
}
