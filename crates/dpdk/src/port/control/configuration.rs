// SPDX-License-Identifier: BSD-3-Clause
//! The number of a port's configuration, whether the port has the queues that its driver expects,
//! and whether it may be closed.
//!
//! Drivers sum statistics over as many queues as the port is configured for, and some do not check
//! that these queues exist: net_vhost reports its number of queues before any is set up, and its
//! statistics then follow null pointers. Other drivers might do so after the setup of a queue has
//! failed.
//!
//! After some drivers have set up a queue, or have failed to, a port must not be closed or
//! configured again: its driver says so in `Driver::after_rx_setup`. When all queues have been set
//! up, it may be closed.
//!
//! The set of extended statistics may change with each configuration, because it includes queues;
//! so each configuration has a number.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use dpdk_sys::layout;

use crate::port::driver::Restrictions;
use crate::port::error::PortError;
use crate::port::id::PortId;
use crate::port::info;

/// For each port, its configuration's number times eight, plus three flags. Read and written under
/// the lock of ports.
static STATES: [AtomicU32; layout::MAX_ETHPORTS] =
    [const { AtomicU32::new(0) }; layout::MAX_ETHPORTS];

/// When each configuration began, in ms of [`CLOCK`]; 0 if none has.
static BEGAN: [AtomicU64; layout::MAX_ETHPORTS] =
    [const { AtomicU64::new(0) }; layout::MAX_ETHPORTS];
static CLOCK: LazyLock<Instant> = LazyLock::new(Instant::now);

/// All of its queues are set up.
const COMPLETE: u32 = 1;
/// Its driver may free memory twice.
const AT_RISK: u32 = 2;
/// It must not be configured again.
const HELD: u32 = 4;
const NUMBER: u32 = 8;

fn state(id: PortId) -> u32 {
    STATES.get(usize::from(id.0)).map_or(0, |state| state.load(Ordering::Relaxed))
}

fn set(id: PortId, to: u32) {
    if let Some(state) = STATES.get(usize::from(id.0)) {
        state.store(to, Ordering::Relaxed);
    }
}

/// Records that the port was added, or is being configured: a new configuration begins, whose
/// queues may not exist. The caller holds the lock.
pub(in crate::port) fn begin(id: PortId) {
    set(id, (state(id) & !COMPLETE).wrapping_add(NUMBER));
    if let Some(began) = BEGAN.get(usize::from(id.0)) {
        began.store(1 + now_ms(), Ordering::Relaxed);
    }
}

fn now_ms() -> u64 {
    CLOCK.elapsed().as_millis() as u64
}

/// Returns true if the port with this number was added or configured within this time: it may get
/// its queues in a moment.
pub(crate) fn began_within(port: u16, time: Duration) -> bool {
    let began = BEGAN.get(usize::from(port)).map_or(0, |began| began.load(Ordering::Relaxed));
    began != 0 && u128::from(now_ms().saturating_sub(began - 1)) < time.as_millis()
}

/// Records that all queues of the configuration are set up. The caller holds the lock.
pub(in crate::port) fn complete(id: PortId) {
    set(id, (state(id) | COMPLETE) & !AT_RISK);
}

/// Adds the restrictions that follow from the setup of a receive queue, or its failure. The caller
/// holds the lock.
pub(in crate::port) fn restrict(id: PortId, restrictions: Restrictions) {
    let held = if restrictions.no_configure { HELD } else { 0 };
    let at_risk = if restrictions.no_close { AT_RISK } else { 0 };
    set(id, state(id) | held | at_risk);
}

/// Returns true if the port must not be configured. The caller holds the lock.
pub(in crate::port) fn is_held(id: PortId) -> bool {
    state(id) & HELD != 0
}

/// Returns true if the port may be closed. The caller holds the lock.
pub(crate) fn may_be_closed(id: PortId) -> bool {
    state(id) & AT_RISK == 0
}

/// Records that the port and its queues are being removed. The caller holds the lock.
pub(in crate::port) fn end(id: PortId) {
    set(id, state(id) & !(COMPLETE | HELD));
}

/// The number of the configuration. The caller holds the lock.
pub(super) fn number(id: PortId) -> u32 {
    state(id) / NUMBER
}

/// Returns true if DPDK's telemetry may ask a driver for the statistics of the port with this
/// number: it has all queues that its driver expects, even if none. The caller holds the lock.
pub(crate) fn may_be_counted(port: u16) -> bool {
    let id = PortId(port);
    let has_none =
        |info: dpdk_sys::rte_eth_dev_info| info.nb_rx_queues == 0 && info.nb_tx_queues == 0;
    check(id).is_ok() || info::query(id).is_ok_and(has_none)
}

/// Refuses operations in which a driver would use queues that may not exist. The caller holds the
/// lock.
pub(super) fn check(id: PortId) -> Result<(), PortError> {
    // DPDK itself reports a port that is gone.
    let fine = state(id) & COMPLETE != 0 || !id.exists();
    if fine { Ok(()) } else { Err(PortError::NotConfigured(id)) }
}
