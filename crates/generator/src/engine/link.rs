// SPDX-License-Identifier: BSD-3-Clause
//! A DPDK port as the engine sees it.

use dpdk::{Burst, Mbuf, Mempool, Port, RxQueue, Started, TxQueue};

use super::io::{BURST, Frame, Io};

impl Frame for Mbuf<'_> {
    #[inline]
    fn resize(&mut self, len: usize) -> Option<&mut [u8]> {
        Mbuf::resize(self, len)
    }
}

/// A started port and the pool from which it sends. Nobody else uses that pool.
pub struct Link<'eal> {
    /// The port.
    pub port: Port<'eal, Started>,
    /// Where its frames come from.
    pub tx_pool: Mempool<'eal>,
}

impl<'eal> Link<'eal> {
    /// The port's queues, one of each, for as long as the engine polls. `frame_len` is the length of
    /// all frames that will be sent, if they have one length.
    ///
    /// With one length, headers and signatures are always at the same places, so that the bytes
    /// between them are written once, here, and stay: the pool is this port's alone. That holds
    /// only if every buffer is at home now; else frames are written whole.
    pub(super) fn open(&mut self, frame_len: Option<usize>) -> Option<Queues<'_, 'eal>> {
        let resident = frame_len.is_some_and(|len| blank(&self.tx_pool, len));
        let mut queues = self.port.queues();
        let (rx, tx) = (queues.rx.pop()?, queues.tx.pop()?);
        Some(Queues {
            rx,
            tx,
            pool: self.tx_pool,
            arrived: Burst::new(),
            queued: Burst::new(),
            resident,
        })
    }
}

/// Blanks every buffer of a pool; `false` if some are away.
fn blank(pool: &Mempool<'_>, len: usize) -> bool {
    if !pool.is_full() {
        return false;
    }
    let mut all = Vec::with_capacity(pool.capacity());
    while let Some(mut mbuf) = pool.alloc() {
        match mbuf.resize(len) {
            Some(bytes) => packet::template::Template::write_blank(bytes),
            None => return false,
        }
        all.push(mbuf);
    }
    all.len() == pool.capacity()
}

/// A port's queues in use.
pub(super) struct Queues<'port, 'eal> {
    rx: RxQueue<'port>,
    tx: TxQueue<'port>,
    pool: Mempool<'eal>,
    arrived: Burst<'port, BURST>,
    queued: Burst<'eal, BURST>,
    resident: bool,
}

impl<'eal> Io for Queues<'_, 'eal> {
    type Frame = Mbuf<'eal>;

    #[inline]
    fn receive(&mut self, mut look: impl FnMut(&[u8])) -> usize {
        let n = self.rx.receive(&mut self.arrived);
        for mbuf in self.arrived.iter() {
            look(mbuf.data());
        }
        self.arrived.clear();
        n
    }

    #[inline]
    fn reserve(&mut self, n: usize) -> Option<&mut [Mbuf<'eal>]> {
        let before = self.queued.len();
        self.pool.fill(&mut self.queued, n).ok()?;
        self.queued.as_mut_slice().get_mut(before..)
    }

    #[inline]
    fn offer(&mut self) -> usize {
        // What a TX callback drops is gone too, and the port's business.
        let before = self.queued.len();
        self.tx.send(&mut self.queued);
        before - self.queued.len()
    }

    #[inline]
    fn discard(&mut self) {
        self.queued.clear();
    }

    #[inline]
    fn resident(&self) -> bool {
        self.resident
    }
}
