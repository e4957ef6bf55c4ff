// SPDX-License-Identifier: BSD-3-Clause
//! A DPDK port as the engine sees it.

use dpdk::{Burst, Mbuf, Mempool, Port, RxQueue, Started, TxQueue};
use packet::writer::FrameWriter;

use super::io::{BURST, Frame, Receive, Transmit};

impl Frame for Mbuf<'_> {
    #[inline]
    fn len(&self) -> usize {
        self.packet_len()
    }

    #[inline]
    fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        self.data_mut()
    }
}

/// A started port and the pools from which it sends, one for each transmit queue. Nobody else uses them.
pub struct Link<'eal> {
    /// The port.
    pub port: Port<'eal, Started>,
    /// The pool of its frames, by transmit queue.
    pub tx_pools: Vec<Mempool<'eal>>,
    /// A pool for frames of no flow. The buffers of the other ones may hold bytes that stay.
    pub spare_pool: Mempool<'eal>,
}

/// A receive queue in use.
pub(super) struct RxLane<'port> {
    queue: RxQueue<'port>,
    arrived: Burst<'port, BURST>,
}

/// A transmit queue in use.
pub(super) struct TxLane<'port, 'eal> {
    queue: TxQueue<'port>,
    pool: Mempool<'eal>,
    spare_pool: Mempool<'eal>,
    queued: Burst<'eal, BURST>,
    resident: bool,
}

impl<'port> RxLane<'port> {
    pub fn new(queue: RxQueue<'port>) -> Self {
        RxLane { queue, arrived: Burst::new() }
    }
}

impl<'port, 'eal> TxLane<'port, 'eal> {
    /// Returns a queue, with the writer that represents all writers of its frames, if there is one.
    ///
    /// If all frames have one length and one payload, headers and signatures are always at the same
    /// places. Then the bytes between them are written once, here, and stay: the pool belongs to
    /// this queue alone. This requires that no buffer of the pool is in use now; otherwise frames
    /// are written whole.
    ///
    /// Frames of no flow have their buffers from `spare_pool`, which others use too.
    pub fn new(
        queue: TxQueue<'port>,
        pool: Mempool<'eal>,
        spare_pool: Mempool<'eal>,
        writer: Option<&FrameWriter>,
    ) -> Self {
        let resident = writer.is_some_and(|writer| prepare(&pool, writer));
        TxLane { queue, pool, spare_pool, queued: Burst::new(), resident }
    }
}

/// Writes the constant bytes into every buffer of a pool; returns `false` if some are in use.
fn prepare(pool: &Mempool<'_>, writer: &FrameWriter) -> bool {
    if !pool.is_full() {
        return false;
    }
    let mut all = Vec::with_capacity(pool.capacity());
    while let Some(mut mbuf) = pool.alloc() {
        match mbuf.resize(writer.peek_len()) {
            Some(bytes) => writer.write_still(bytes),
            None => return false,
        }
        all.push(mbuf);
    }
    all.len() == pool.capacity()
}

impl Receive for RxLane<'_> {
    #[inline]
    fn receive(&mut self) -> usize {
        self.arrived.clear();
        self.queue.receive(&mut self.arrived)
    }

    #[inline]
    fn free(&mut self) {
        self.arrived.clear();
    }

    #[inline]
    fn frame(&self, n: usize) -> &[u8] {
        self.arrived.as_slice().get(n).map_or(&[], Mbuf::data)
    }
}

impl<'eal> Transmit for TxLane<'_, 'eal> {
    type Frame = Mbuf<'eal>;

    #[inline]
    fn reserve(&mut self, n: usize) -> Option<&mut [Mbuf<'eal>]> {
        let before = self.queued.len();
        self.pool.fill(&mut self.queued, n).ok()?;
        self.queued.as_mut_slice().get_mut(before..)
    }

    #[inline]
    fn queued(&mut self) -> &mut [Mbuf<'eal>] {
        self.queued.as_mut_slice()
    }

    #[inline]
    fn offer(&mut self) -> usize {
        // Frames that a TX callback drops count as sent too.
        let before = self.queued.len();
        self.queue.send(&mut self.queued);
        before - self.queued.len()
    }

    #[inline]
    fn discard(&mut self) {
        self.queued.clear();
    }

    fn emit(&mut self, frame: &[u8]) -> bool {
        let Some(mut mbuf) = self.spare_pool.alloc() else { return false };
        let Some(bytes) = mbuf.resize(frame.len()) else { return false };
        bytes.copy_from_slice(frame);
        let mut one = Burst::<1>::new();
        one.push(mbuf).is_ok() && self.queue.send(&mut one) == 1
    }

    #[inline]
    fn resident(&self) -> bool {
        self.resident
    }

    fn forget_resident(&mut self) {
        self.resident = false;
    }
}
