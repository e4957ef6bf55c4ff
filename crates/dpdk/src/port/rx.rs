// SPDX-License-Identifier: BSD-3-Clause
//! A receive queue.

use std::ffi::c_void;
use std::marker::PhantomData;
use std::mem::MaybeUninit;

use dpdk_sys::rte_mbuf;

use super::callback::{CallbackId, Direction, Packets, Registry, on_receive};
use super::error::PortError;
use super::id::PortId;
use crate::burst::Burst;
use crate::debug::impl_debug;
use crate::fast::ethdev;
use crate::mbuf::Mbuf;

/// A receive queue of a started port. It has one owner at a time: it can be sent to an lcore, but
/// not shared between two.
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
    /// The queue's number as an index, which every burst needs.
    queue: usize,
    /// The registry of its closures.
    callbacks: &'port Registry,
    started: PhantomData<&'port mut ()>,
}

impl_debug!([] RxQueue<'_>, rx => port: rx.port, queue: rx.queue);

// SAFETY: a queue may be polled from any thread, one at a time, which `&mut self` ensures; the same
// holds for its callbacks, which are `Send`. The raw pointer keeps it from being Sync.
unsafe impl Send for RxQueue<'_> {}

impl Drop for RxQueue<'_> {
    fn drop(&mut self) {
        // SAFETY: the only one to poll the queue does not do so any more. What its callbacks borrow lives as
        // long as `'port`, which the compiler holds against this.
        unsafe { self.callbacks.remove_all(self.port, self.queue as u16, Direction::Rx) };
    }
}

impl<'port> RxQueue<'port> {
    /// # Safety
    /// The port is started with this queue for all of `'port`, and no other `RxQueue` for it exists
    /// meanwhile.
    pub(super) unsafe fn new(port: u16, queue: u16, callbacks: &'port Registry) -> Self {
        let ops = ethdev::fp_ops(port);
        Self { ops, port, queue: queue.into(), callbacks, started: PhantomData }
    }

    /// Polls the queue once: appends received packets, as many as the burst has room for, and
    /// returns their number. RX callbacks run, as in `rte_eth_rx_burst`. If the burst is full, the
    /// queue is not polled. Leave room for 32 packets if you can: some drivers receive nothing into
    /// room for less than 4 or 8.
    #[inline]
    pub fn receive<'m, const N: usize>(&mut self, burst: &mut Burst<'m, N>) -> usize
    where
        'port: 'm,
    {
        let before = burst.len();
        let room = burst.spare();
        // SAFETY: the burst has this much room (at most 65,535) behind its last packet, and as many
        // packets there afterwards as were received.
        unsafe {
            let received = self.receive_raw(burst.spare_ptr(), room as u16);
            burst.set_len(before + received);
            received
        }
    }

    /// Polls the queue once, as [`receive`](Self::receive) does: the returned number of elements at
    /// the start of `room` are then packets, which the caller owns.
    #[inline]
    pub fn receive_into<'m>(&mut self, room: &mut [MaybeUninit<Mbuf<'m>>]) -> usize
    where
        'port: 'm,
    {
        let count = room.len().min(u16::MAX.into()) as u16;
        // SAFETY: there is room for so many packets, each a pointer.
        unsafe { self.receive_raw(room.as_mut_ptr().cast(), count) }
    }

    /// # Safety
    /// There is room for `room` packets at `first`. The caller owns as many as are returned; they are
    /// valid while the port's pools are, which is longer than `'port`.
    #[inline]
    unsafe fn receive_raw(&mut self, first: *mut *mut rte_mbuf, room: u16) -> usize {
        if room == 0 {
            return 0;
        }
        // SAFETY: the port is started while this queue borrows it, `&mut self` makes this the only
        // poll, and there is room.
        let (received, callbacks) = unsafe {
            let received = ethdev::rx_driver(self.ops, self.queue, first, room);
            (received, ethdev::rx_callbacks(self.ops, self.queue))
        };
        if callbacks.is_null() {
            return received.into();
        }
        // SAFETY: they are this queue's, and the driver wrote that many packets there. They return no
        // more than there is room for.
        unsafe { self.run_callbacks(callbacks, first, received, room) }.into()
    }

    /// # Safety
    /// `callbacks` are this queue's, and it has just put `received` packets at `first`, where there is
    /// room for `room`.
    #[cold]
    unsafe fn run_callbacks(
        &self,
        callbacks: *mut c_void,
        first: *mut *mut rte_mbuf,
        received: u16,
        room: u16,
    ) -> u16 {
        // SAFETY: the contract is the caller's.
        unsafe {
            dpdk_sys::rte_eth_call_rx_callbacks(
                self.port,
                self.queue as u16,
                first,
                received,
                room,
                callbacks,
            )
        }
    }

    /// Makes every poll from now on run `callback` on the received packets
    /// (`rte_eth_add_rx_callback`), after the callbacks that were added before it. Polls that
    /// receive nothing run it too.
    ///
    /// The callback may read packets, change them, reorder them, free them, keep them for later,
    /// and add others as far as the poll has room. It is dropped by
    /// [`remove_callback`](Self::remove_callback), or with the queue. A panic in it ends the
    /// process.
    ///
    /// ```standalone_crate
    /// use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
    ///
    /// # fn run(mut port: dpdk::Port<'_, dpdk::Started>) -> Result<(), dpdk::PortError> {
    /// let runts = AtomicU64::new(0);
    /// let mut queues = port.queues();
    /// queues.rx[0].add_callback(|packets| {
    ///     packets.retain(|packet| {
    ///         let whole = packet.packet_len() >= 60;
    ///         runts.fetch_add(u64::from(!whole), Relaxed);
    ///         whole
    ///     });
    /// })?;
    /// let mut burst = dpdk::Burst::<32>::new();
    /// queues.rx[0].receive(&mut burst); // holds no runts
    /// # Ok(())
    /// # }
    /// # let (eal, _) = dpdk::Eal::init("doc --no-huge --no-pci --no-shconf --no-telemetry -m 256 --vdev net_null0".split(' '))?;
    /// # let pool = dpdk::Mempool::packet_pool(&eal, &dpdk::PoolConfig { count: 2047, ..dpdk::PoolConfig::named("packets") })?;
    /// # let config = dpdk::PortConfig { rx: vec![dpdk::RxConfig::new(&pool)], tx: vec![Default::default()], ..Default::default() };
    /// # let port = eal.take_port(eal.ports()[0])?.configure(&config)?.start()?;
    /// # run(port)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`PortError::Call`]: `ENOMEM`, or `ENOTSUP` if DPDK was built without callbacks.
    pub fn add_callback<F>(&mut self, callback: F) -> Result<CallbackId, PortError>
    where
        F: FnMut(&mut Packets<'_, 'port>) + Send + 'port,
    {
        let (port, queue) = (self.port, self.queue as u16);
        // SAFETY: the port has this queue, which nobody polls now. Polls hand the function packets of
        // `'port` and the box of this closure; they go through `&mut self`, so one at a time.
        unsafe {
            self.callbacks.add(port, queue, Direction::Rx, callback, |closure| {
                dpdk_sys::rte_eth_add_rx_callback(port, queue, Some(on_receive::<F>), closure)
            })
        }
    }

    /// Removes a callback and drops it; returns true if this queue had it
    /// (`rte_eth_remove_rx_callback`).
    pub fn remove_callback(&mut self, id: CallbackId) -> bool {
        // SAFETY: nobody polls the queue now, and what its callbacks borrow outlives it.
        unsafe { self.callbacks.remove(self.port, self.queue as u16, Direction::Rx, id) }
    }

    /// The port that it belongs to.
    #[must_use]
    pub fn port(&self) -> PortId {
        PortId(self.port)
    }

    /// Number of the queue on its port.
    #[must_use]
    pub fn queue(&self) -> u16 {
        self.queue as u16
    }
}
