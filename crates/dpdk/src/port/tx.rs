// SPDX-License-Identifier: BSD-3-Clause
//! A transmit queue.

use std::ffi::c_void;
use std::marker::PhantomData;

use crate::burst::Burst;
use crate::fast::ethdev;

/// A transmit queue of a started port. One owner at a time: it can be sent to an lcore, not shared
/// between two.
///
/// ```compile_fail,E0277
/// fn share(queue: &dpdk::TxQueue<'_>) {
///     fn needs_sync<T: Sync>(_: &T) {}
///     needs_sync(queue);
/// }
/// ```
pub struct TxQueue<'port> {
    ops: *const u8,
    port: u16,
    /// As an index, which it is at every burst.
    queue: usize,
    started: PhantomData<&'port mut ()>,
}

// SAFETY: a queue may be used from any thread, one at a time, which `&mut self` sees to. The raw
// pointer keeps it from being Sync.
unsafe impl Send for TxQueue<'_> {}

impl TxQueue<'_> {
    /// # Safety
    /// The port is started with this queue for all of the lifetime, and no other `TxQueue` for it
    /// exists meanwhile.
    pub(super) unsafe fn new(port: u16, queue: u16) -> Self {
        Self { ops: ethdev::fp_ops(port), port, queue: queue.into(), started: PhantomData }
    }

    /// Offers every packet of the burst once, in order. What the driver takes leaves the burst, from
    /// the front; what it does not take stays inside, the caller's to try again or to drop. Returns
    /// how many were taken. TX callbacks run, as in `rte_eth_tx_burst`; packets that they drop are
    /// gone from the burst and not counted.
    #[inline]
    pub fn send<const N: usize>(&mut self, burst: &mut Burst<'_, N>) -> usize {
        // SAFETY: the port is started while this queue borrows it.
        let callbacks = unsafe { ethdev::tx_callbacks(self.ops, self.queue) };
        if !callbacks.is_null() {
            // SAFETY: they are this queue's.
            unsafe { self.run_callbacks(callbacks, burst) };
        }
        // SAFETY: the port is started while this queue borrows it, `&mut self` makes this the only
        // user, and the burst owns `len` packets (at most 65,535), of which the driver takes the first.
        unsafe {
            let offered = burst.len() as u16;
            let accepted = ethdev::tx_driver(self.ops, self.queue, burst.raw_ptr(), offered);
            burst.give_away_front(usize::from(accepted));
            usize::from(accepted)
        }
    }

    /// # Safety
    /// `callbacks` are this queue's.
    #[cold]
    unsafe fn run_callbacks<const N: usize>(
        &self,
        callbacks: *mut c_void,
        burst: &mut Burst<'_, N>,
    ) {
        let len = burst.len() as u16;
        // SAFETY: the contract is the caller's. The callbacks keep as many packets at the front as they
        // return, and own the others.
        unsafe {
            let kept = dpdk_sys::rte_eth_call_tx_callbacks(
                self.port,
                self.queue as u16,
                burst.raw_ptr(),
                len,
                callbacks,
            );
            debug_assert!(kept <= len);
            burst.set_len(usize::from(kept));
        }
    }

    /// Number of the port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Number of the queue on its port.
    #[must_use]
    pub fn queue(&self) -> u16 {
        self.queue as u16
    }
}
