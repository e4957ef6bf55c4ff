// SPDX-License-Identifier: BSD-3-Clause
//! Events of ports, which their drivers report on threads of DPDK.
//!
//! Drivers report at any moment: from the interrupt thread, and from within the control call that
//! caused the event, while this crate's lock is held. No closure of the program runs there, because
//! it could call the port and deadlock: events are stored, and the watcher reads them later.

use std::ffi::{c_int, c_void};
use std::marker::PhantomData;
use std::sync::{Arc, Condvar, Mutex, Weak};
use std::time::{Duration, Instant};

use dpdk_sys::layout;

use super::bits::bit_set;
use super::control::PortControl;
use super::error::{PortError, check};
use super::id::PortId;
use super::lock::lock;
use crate::debug::impl_debug;
use crate::eal::Eal;
use crate::mutex::locked;

bit_set! {
    /// Events of a port (`RTE_ETH_EVENT_*`). Each driver reports some of them; all report that the
    /// port is closed.
    pub struct PortEvents {
        /// The link has gone up or down: see [`PortControl::link`].
        LINK = 1 << dpdk_sys::RTE_ETH_EVENT_INTR_LSC, "LINK";
        /// The other end enabled or disabled a queue.
        QUEUE_STATE = 1 << dpdk_sys::RTE_ETH_EVENT_QUEUE_STATE, "QUEUE_STATE";
        /// The device requests a reset: stop the port, configure and start it again.
        RESET = 1 << dpdk_sys::RTE_ETH_EVENT_INTR_RESET, "RESET";
        /// The device was unplugged: [detach](Eal::detach) the port.
        REMOVED = 1 << dpdk_sys::RTE_ETH_EVENT_INTR_RMV, "REMOVED";
        /// The port was closed and its number is free.
        CLOSED = 1 << dpdk_sys::RTE_ETH_EVENT_DESTROY, "CLOSED";
        /// The driver has found an error and is recovering from it.
        RECOVERING = 1 << dpdk_sys::RTE_ETH_EVENT_ERR_RECOVERING, "RECOVERING";
        /// The driver has recovered from the error.
        RECOVERED = 1 << dpdk_sys::RTE_ETH_EVENT_RECOVERY_SUCCESS, "RECOVERED";
        /// The driver could not recover from the error.
        RECOVERY_FAILED = 1 << dpdk_sys::RTE_ETH_EVENT_RECOVERY_FAILED, "RECOVERY_FAILED";
    }
}

/// Events that were not read yet.
struct Seen {
    port: u16,
    events: Mutex<u64>,
    more: Condvar,
}

/// The watchers. Threads of drivers lock this briefly, too, and then take no other lock than that
/// of `Seen`.
static WATCHES: Mutex<Watches> = Mutex::new(Watches { listening: false, seen: Vec::new() });

struct Watches {
    /// DPDK calls [`note`] for all ports, now and in future, so it need not be removed from ports
    /// that are gone.
    listening: bool,
    seen: Vec<Weak<Seen>>,
}

/// Called by DPDK, from any thread.
unsafe extern "C" fn note(
    port: u16,
    event: dpdk_sys::rte_eth_event_type,
    _argument: *mut c_void,
    _answer: *mut c_void,
) -> c_int {
    for seen in locked(&WATCHES).seen.iter().filter_map(Weak::upgrade) {
        if seen.port == port {
            *locked(&seen.events) |= 1 << event;
            seen.more.notify_all();
        }
    }
    0
}

/// Registers [`note`] with DPDK, unless it is registered already.
fn listen(id: PortId) -> Result<(), PortError> {
    let _alone = lock();
    if !id.exists() {
        return Err(PortError::Absent(id));
    }
    if locked(&WATCHES).listening {
        return Ok(());
    }
    for event in
        (0..dpdk_sys::RTE_ETH_EVENT_MAX).filter(|event| PortEvents::ALL.bits() >> event & 1 != 0)
    {
        // SAFETY: the function has the right type, lives for ever and ignores its argument. DPDK
        // does not add it twice.
        check(id, "rte_eth_dev_callback_register", unsafe {
            dpdk_sys::rte_eth_dev_callback_register(
                layout::ETH_ALL,
                event,
                Some(note),
                std::ptr::null_mut(),
            )
        })?;
    }
    locked(&WATCHES).listening = true;
    Ok(())
}

/// Watches a port: its events are stored from now on until they are read. Made by
/// [`PortControl::watch`].
///
/// It may be moved to, and shared with, any thread; each event goes to one reader.
pub struct PortWatch<'eal> {
    seen: Arc<Seen>,
    eal: PhantomData<&'eal Eal>,
}

impl_debug!([] PortWatch<'_>, watch => port: watch.seen.port);

impl PortWatch<'_> {
    /// Returns the events since the last call; does not wait. It takes a lock that only drivers
    /// contend for: call it once every few bursts.
    #[must_use]
    pub fn take(&self) -> PortEvents {
        PortEvents::from_bits(std::mem::take(&mut *locked(&self.seen.events)))
    }

    /// Returns the events since the last call. If there are none, waits for one until `timeout`,
    /// and then returns the empty set.
    #[must_use]
    pub fn wait(&self, timeout: Duration) -> PortEvents {
        let begin = Instant::now();
        let mut events = locked(&self.seen.events);
        while *events == 0 {
            let left = timeout.saturating_sub(begin.elapsed());
            if left.is_zero() {
                break;
            }
            let woken = self.seen.more.wait_timeout(events, left);
            (events, _) = woken.unwrap_or_else(|poison| poison.into_inner());
        }
        PortEvents::from_bits(std::mem::take(&mut *events))
    }
}

impl Drop for PortWatch<'_> {
    fn drop(&mut self) {
        let own = Arc::as_ptr(&self.seen);
        locked(&WATCHES).seen.retain(|seen| seen.as_ptr() != own);
    }
}

impl<'eal> PortControl<'eal> {
    /// Stores the port's events from now on (`rte_eth_dev_callback_register`). Most drivers report
    /// link changes only if [`PortConfig::link_events`](super::PortConfig::link_events) requests
    /// them. Like [`PortControl`], the watch stands for the port's number.
    ///
    /// # Errors
    /// [`PortError::Absent`]; [`PortError::Call`] with `ENOMEM` if DPDK has no memory for it.
    pub fn watch(&self) -> Result<PortWatch<'eal>, PortError> {
        listen(self.id())?;
        let seen =
            Arc::new(Seen { port: self.id().index(), events: Mutex::new(0), more: Condvar::new() });
        locked(&WATCHES).seen.push(Arc::downgrade(&seen));
        Ok(PortWatch { seen, eal: PhantomData })
    }
}
