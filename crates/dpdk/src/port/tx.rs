// SPDX-License-Identifier: BSD-3-Clause
//! A transmit queue.

use std::ffi::c_void;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::Range;
use std::ptr::NonNull;

use dpdk_sys::rte_mbuf;

use super::callback::{CallbackId, Direction, Packets, Registry, on_send};
use super::error::PortError;
use super::id::PortId;
use super::tx_guard::TxGuard;
use crate::burst::Burst;
use crate::debug::impl_debug;
use crate::errno::Errno;
use crate::fast::ethdev;
use crate::mbuf::Mbuf;

/// A transmit queue of a started port. It has one owner at a time: it can be sent to an lcore, but
/// not shared between two.
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
    /// The queue's number as an index, which every burst needs.
    queue: usize,
    /// The registry of its closures.
    callbacks: &'port Registry,
    /// Read only if there are callbacks, because a guard comes with one.
    guard: Option<&'port TxGuard<'port>>,
    started: PhantomData<&'port mut ()>,
}

impl_debug!([] TxQueue<'_>, tx => port: tx.port, queue: tx.queue);

// SAFETY: a queue may be used from any thread, one at a time, which `&mut self` ensures; the same
// holds for its callbacks, which are `Send`. The raw pointer keeps it from being Sync.
unsafe impl Send for TxQueue<'_> {}

impl Drop for TxQueue<'_> {
    fn drop(&mut self) {
        // SAFETY: the only one to use the queue does not do so any more. What its callbacks borrow lives as
        // long as `'port`, which the compiler holds against this.
        unsafe { self.callbacks.remove_all(self.port, self.queue as u16, Direction::Tx) };
    }
}

/// Withdraws a refused packet's request if its headers are gone. net_tap from 24.11 on removes a
/// packet's headers to fill in checksums and, if the kernel then refuses the packet, returns it
/// without them: the request would apply to other bytes, or to bytes past the end.
///
/// # Safety
/// `mbuf` is a packet that the driver returned, owned by the caller alone.
#[cold]
unsafe fn look_at_refused(mbuf: *mut rte_mbuf) {
    // SAFETY: the contract is the caller's; the packet stays where it was.
    let mut mbuf = unsafe { ManuallyDrop::new(Mbuf::from_raw(NonNull::new_unchecked(mbuf))) };
    if mbuf.requested().is_some_and(|request| request.headers_len() > mbuf.data().len()) {
        mbuf.withdraw_request();
    }
}

impl<'port> TxQueue<'port> {
    /// # Safety
    /// The port is started with this queue for all of the lifetime, and no other `TxQueue` for it
    /// exists meanwhile. `guard` is what its driver needs, and is posted.
    pub(super) unsafe fn new(
        port: u16,
        queue: u16,
        callbacks: &'port Registry,
        guard: Option<&'port TxGuard<'port>>,
    ) -> Self {
        let ops = ethdev::fp_ops(port);
        Self { ops, port, queue: queue.into(), callbacks, guard, started: PhantomData }
    }

    /// Offers every packet of the burst once, in order. The packets that the driver takes, from the
    /// front, leave the burst; the others stay inside, for the caller to offer again or to drop.
    /// Returns the number of packets taken. TX callbacks run, as in `rte_eth_tx_burst`; packets
    /// that they drop leave the burst and are not counted. Drivers are not called for an empty
    /// burst.
    ///
    /// Some drivers would corrupt memory when they send certain packets, so these packets are changed first:
    /// - net_af_xdp: packets longer than its buffers are freed, and not counted. Packets of several segments, and those whose bytes
    ///   are not in their own buffer, are copied into the pool that the port's first queue receives into, and are not taken
    ///   while that pool is empty.
    /// - net_memif in DPDK releases newer than 22.11: packets with segments from several pools, with external buffers, or with data
    ///   in the headroom are copied as well; a port that does not receive frees them.
    /// - net_af_packet and net_vhost: a requested VLAN tag is inserted here, and stays among the bytes of a packet that is then not
    ///   taken. A packet that is shared, or has no headroom for the tag, is freed.
    #[inline]
    pub fn send<const N: usize>(&mut self, burst: &mut Burst<'_, N>) -> usize {
        // SAFETY: the burst owns `len` packets (at most 65,535); it keeps what the callbacks keep, and
        // gives away what the driver takes of these.
        unsafe {
            let left = self.send_raw(burst.raw_ptr(), burst.len() as u16);
            burst.set_len(left.end);
            burst.give_away_front(left.start);
            left.start
        }
    }

    /// Lets the driver check the burst before it is sent, and write what its device needs for
    /// [requested](Mbuf::request) checksums and segments (`rte_eth_tx_prepare`). Packets that the
    /// driver would not send unchanged leave the burst and go to `refused` with the reason: for
    /// example, requests that the device or the port's configuration does not support (`ENOTSUP`,
    /// `EINVAL`). Returns their number. Packets that are changed or pushed afterwards are not
    /// prepared.
    ///
    /// ```
    /// fn send<const N: usize>(queue: &mut dpdk::TxQueue<'_>, burst: &mut dpdk::Burst<'_, N>) -> usize {
    ///     queue.prepare(burst, |mbuf, _reason| drop(mbuf));
    ///     queue.send(burst)
    /// }
    /// ```
    pub fn prepare<'m, const N: usize>(
        &mut self,
        burst: &mut Burst<'m, N>,
        mut refused: impl FnMut(Mbuf<'m>, Errno),
    ) -> usize {
        let (mut ready, mut count) = (0, 0);
        while ready < burst.len() {
            let rest = burst.len() - ready;
            // SAFETY: as for `send_raw`; the driver reads the packets from the `ready`th on, and
            // all remain the burst's. It writes only to bytes without another owner: requests are
            // made only for those.
            ready += usize::from(unsafe {
                let first = burst.raw_ptr().add(ready);
                ethdev::tx_prepare(self.ops, self.queue, first, rest as u16)
            });
            if ready >= burst.len() {
                break;
            }
            let reason = Errno::last();
            burst.as_mut_slice()[ready..].rotate_left(1);
            // SAFETY: the last packet leaves the burst for the caller.
            let mbuf = unsafe {
                burst.set_len(burst.len() - 1);
                Mbuf::from_raw(NonNull::new_unchecked(*burst.spare_ptr()))
            };
            count += 1;
            refused(mbuf, reason);
        }
        count
    }

    /// Offers `count` packets once, as [`send`](Self::send) does, and returns the range of those
    /// that are left: packets before it were sent, packets after it were dropped by TX callbacks.
    /// Callbacks may have reordered the packets.
    ///
    /// # Safety
    /// `count` packets lie at `first`, which the caller owns; afterwards it owns those that are left.
    #[inline]
    pub unsafe fn send_from(&mut self, first: *mut Mbuf<'_>, count: u16) -> Range<usize> {
        // SAFETY: the contract is the caller's; a packet is a pointer to an mbuf.
        unsafe { self.send_raw(first.cast(), count) }
    }

    /// # Safety
    /// As for `send_from`.
    #[inline]
    unsafe fn send_raw(&mut self, first: *mut *mut rte_mbuf, count: u16) -> Range<usize> {
        // SAFETY: the port is started while this queue borrows it, and `&mut self` makes this the only
        // user. The rest of the contract is the caller's.
        unsafe {
            let callbacks = ethdev::tx_callbacks(self.ops, self.queue);
            if !callbacks.is_null() {
                return self.send_by_callbacks(callbacks, first, count);
            }
            self.offer(first, count)..count.into()
        }
    }

    /// Gives the driver packets from the front, and returns how many it took.
    ///
    /// # Safety
    /// As for `send_from`.
    #[inline(always)]
    unsafe fn offer(&mut self, first: *mut *mut rte_mbuf, count: u16) -> usize {
        // Some drivers read the first packet even of an empty burst.
        if count == 0 {
            return 0;
        }
        // SAFETY: the contract is the caller's; the driver takes the first of the packets that are offered.
        unsafe {
            let accepted = ethdev::tx_driver(self.ops, self.queue, first, count);
            if accepted < count {
                look_at_refused(*first.add(accepted.into()));
            }
            accepted.into()
        }
    }

    /// # Safety
    /// As for `send_from`; `callbacks` are this queue's.
    #[cold]
    unsafe fn send_by_callbacks(
        &mut self,
        callbacks: *mut c_void,
        first: *mut *mut rte_mbuf,
        count: u16,
    ) -> Range<usize> {
        let (port, queue) = (self.port, self.queue as u16);
        // SAFETY: the contract is the caller's. The callbacks keep the packets that are counted, and own the others.
        let mut kept =
            unsafe { dpdk_sys::rte_eth_call_tx_callbacks(port, queue, first, count, callbacks) };
        debug_assert!(kept <= count);
        let mut ready = kept;
        if let Some(guard) = self.guard {
            // SAFETY: the caller's packets, of which it gives up those that are not among the kept.
            let mut packets = unsafe { Packets::new(first, kept, kept) };
            ready = guard.check(&mut packets) as u16;
            kept = packets.len() as u16;
            if ready == 0 && guard.is_called_for_nothing() {
                // SAFETY: the contract is the caller's; the driver reads no packets if the count is
                // 0.
                unsafe { ethdev::tx_driver(self.ops, self.queue, first, 0) };
            }
        }
        // SAFETY: the contract is the caller's.
        unsafe { self.offer(first, ready)..kept.into() }
    }

    /// Makes every burst from now on pass through `callback` before it is offered to the driver
    /// (`rte_eth_add_tx_callback`), after the callbacks that were added before it.
    ///
    /// The callback may read packets, change them, reorder them, and free them: freed packets leave
    /// the burst and are not counted as sent. It cannot keep packets, because they may come from
    /// ports that stop before this one; it can keep a [copy](Mbuf::copy_into). Packets that the
    /// driver does not take pass again when they are offered again. The callback is dropped by
    /// [`remove_callback`](Self::remove_callback), or with the queue. A panic in it ends the
    /// process.
    ///
    /// ```standalone_crate
    /// # fn run(queue: &mut dpdk::TxQueue<'_>) -> Result<(), dpdk::PortError> {
    /// let mut bytes = 0;
    /// let id = queue.add_callback(move |packets| {
    ///     bytes += packets.iter().map(|packet| packet.packet_len()).sum::<usize>();
    ///     if bytes > 1_000_000 {
    ///         packets.clear(); // a budget, and it is spent
    ///     }
    /// })?;
    /// // ...
    /// assert!(queue.remove_callback(id));
    /// # Ok(())
    /// # }
    /// # let (eal, _) = dpdk::Eal::init("doc --no-huge --no-pci --no-shconf --no-telemetry -m 256 --vdev net_null0".split(' '))?;
    /// # let pool = dpdk::Mempool::packet_pool(&eal, &dpdk::PoolConfig { count: 2047, ..dpdk::PoolConfig::named("packets") })?;
    /// # let config = dpdk::PortConfig { rx: vec![dpdk::RxConfig::new(&pool)], tx: vec![Default::default()], ..Default::default() };
    /// # let mut port = eal.take_port(eal.ports()[0])?.configure(&config)?.start()?;
    /// # run(&mut port.queues().tx[0])?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`PortError::Call`]: `ENOMEM`, or `ENOTSUP` if DPDK was built without callbacks.
    pub fn add_callback<F>(&mut self, callback: F) -> Result<CallbackId, PortError>
    where
        F: FnMut(&mut Packets<'_, '_>) + Send + 'port,
    {
        let (port, queue) = (self.port, self.queue as u16);
        // SAFETY: the port has this queue, which nobody uses now. Bursts hand the function their packets
        // and the box of this closure; they go through `&mut self`, so one at a time.
        unsafe {
            self.callbacks.add(port, queue, Direction::Tx, callback, |closure| {
                dpdk_sys::rte_eth_add_tx_callback(port, queue, Some(on_send::<F>), closure)
            })
        }
    }

    /// Removes a callback and drops it; returns true if this queue had it
    /// (`rte_eth_remove_tx_callback`).
    pub fn remove_callback(&mut self, id: CallbackId) -> bool {
        // SAFETY: nobody uses the queue now, and what its callbacks borrow outlives it.
        unsafe { self.callbacks.remove(self.port, self.queue as u16, Direction::Tx, id) }
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
