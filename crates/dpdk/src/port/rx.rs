// SPDX-License-Identifier: BSD-3-Clause
//! A receive queue.

use std::ffi::c_void;
use std::marker::PhantomData;

use crate::burst::Burst;
use crate::fast::ethdev;

/// A receive queue of a started port. One owner at a time: it can be sent to an lcore, not shared
/// between two.
///
/// ```compile_fail,E0277
/// fn share(queue: &dpdk::RxQueue<'_>) {
///     fn needs_sync<T: Sync>(_: &T) {}
///     needs_sync(queue);
/// }
/// ```
pub struct RxQueue<'port> {
    ops: *const u8,
    port: u16,
    /// As an index, which it is at every burst.
    queue: usize,
    started: PhantomData<&'port mut ()>,
}

// SAFETY: a queue may be polled from any thread, one at a time, which `&mut self` sees to. The raw
// pointer keeps it from being Sync.
unsafe impl Send for RxQueue<'_> {}

impl<'port> RxQueue<'port> {
    /// # Safety
    /// The port is started with this queue for all of `'port`, and no other `RxQueue` for it exists
    /// meanwhile.
    pub(super) unsafe fn new(port: u16, queue: u16) -> Self {
        Self { ops: ethdev::fp_ops(port), port, queue: queue.into(), started: PhantomData }
    }

    /// Polls the queue once: appends what has arrived, as far as the burst has room, and returns how
    /// many packets that were. RX callbacks run, as in `rte_eth_rx_burst`. A full burst polls nothing;
    /// give drivers room for 32 packets where you can, for some receive none into less than 4 or 8.
    #[inline]
    pub fn receive<'m, const N: usize>(&mut self, burst: &mut Burst<'m, N>) -> usize
    where
        'port: 'm,
    {
        let before = burst.len();
        let room = burst.spare();
        if room == 0 {
            return 0;
        }
        // SAFETY: the port is started while this queue borrows it, `&mut self` makes this the only
        // poll, and the burst has this much room (at most 65,535) behind its last packet.
        let (mut received, callbacks) = unsafe {
            let received = ethdev::rx_driver(self.ops, self.queue, burst.spare_ptr(), room as u16);
            (received, ethdev::rx_callbacks(self.ops, self.queue))
        };
        if !callbacks.is_null() {
            // SAFETY: they are this queue's, and the driver wrote that many packets there.
            received = unsafe { self.run_callbacks(callbacks, burst, received) };
        }
        // SAFETY: the driver wrote that many packets there and gave them away; callbacks return no
        // more than there was room for. They are valid while the port's pools are, which is longer.
        unsafe { burst.set_len(before + usize::from(received)) };
        usize::from(received)
    }

    /// # Safety
    /// `callbacks` are this queue's, and it has just put `received` packets behind those of the burst.
    #[cold]
    unsafe fn run_callbacks<const N: usize>(
        &self,
        callbacks: *mut c_void,
        burst: &mut Burst<'_, N>,
        received: u16,
    ) -> u16 {
        let room = burst.spare() as u16;
        // SAFETY: the contract is the caller's; the burst has room for `room` packets there.
        unsafe {
            dpdk_sys::rte_eth_call_rx_callbacks(
                self.port,
                self.queue as u16,
                burst.spare_ptr(),
                received,
                room,
                callbacks,
            )
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
