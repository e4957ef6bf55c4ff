// SPDX-License-Identifier: BSD-3-Clause
//! Keeps net_memif's interrupt handlers apart from everything else that uses its ports.
//!
//! The driver answers its peers in handlers on DPDK's interrupt thread. They map and unmap the
//! shared memory and free control channels, without taking a lock. So here
//! - a handler runs while no queue of the driver is polled ([`gate`]);
//! - a handler and a control call (configure, stop, close, remove) take turns ([`apart`]);
//! - a handler that was unregistered, or whose handle was freed, does not run again
//!   ([`interpose`]);
//! - peers of other users, and descriptors that a peer must not send, do not reach a handler ([`peers`]).

mod gate;
mod interpose;
mod peers;

use std::sync::{Mutex, MutexGuard};

use super::driver::Driver;
use super::id::PortId;
use super::info;
use crate::mutex::locked;

pub(super) use gate::Gate;

/// Held by a handler, and by control calls. A thread that also needs the lock of ports takes that
/// one first; a handler never takes it.
static TURN: Mutex<()> = Mutex::new(());

/// Waits until no handler runs, and keeps handlers waiting until it is dropped.
pub(crate) struct Apart {
    _turn: MutexGuard<'static, ()>,
}

impl Drop for Apart {
    fn drop(&mut self) {
        interpose::close_sent();
    }
}

/// Held in a control call that must not run at the same time as the driver's handlers; `None` for
/// other drivers. Not held in `rte_eth_dev_start`: there a client may wait for a handler of the
/// same process to accept it.
pub(crate) fn apart(id: PortId) -> Option<Apart> {
    is_shared(id).then(|| Apart { _turn: locked(&TURN) })
}

/// Returns true if the port's driver shares memory with its interrupt handlers, and the two can be
/// kept apart.
pub(super) fn is_shared(id: PortId) -> bool {
    interpose::is_found()
        && info::query(id).is_ok_and(|info| Driver::of_info(&info).shares_with_interrupts)
}
