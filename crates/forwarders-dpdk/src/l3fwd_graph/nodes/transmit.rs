// SPDX-License-Identifier: BSD-3-Clause
//! The node that sends packets.

use std::collections::BTreeMap;

use dpdk::{Burst, Mbuf, TxQueue};
use graph::{Batch, Node, Outlet};

use super::BURST;

graph::edges! {
    /// Where packets go that are not sent.
    pub enum Transmitted {
        /// The driver did not take them.
        Unsent,
    }
}

/// Sends each packet on the port in its mbuf's port field.
pub struct Transmit<'port> {
    /// By the number of the port.
    ports: Vec<Option<Out<'port>>>,
}

/// A queue, and packets that are to be sent on it.
struct Out<'port> {
    queue: TxQueue<'port>,
    waiting: Burst<'port, BURST>,
}

impl<'port> Transmit<'port> {
    /// By these queues, one for each port.
    pub fn new(mut queues: BTreeMap<u16, TxQueue<'port>>) -> Self {
        let end = queues.keys().max().map_or(0, |last| last + 1);
        let out = |queue| Out { queue, waiting: Burst::new() };
        Self { ports: (0..end).map(|port| queues.remove(&port).map(out)).collect() }
    }

    fn out(&mut self, port: Option<u16>) -> Option<&mut Out<'port>> {
        self.ports.get_mut(usize::from(port?))?.as_mut()
    }

    /// Packets for several ports: those of each are sent together, in their order.
    fn send_by_several<O: Outlet<Mbuf<'port>, Transmitted>>(
        &mut self,
        batch: Batch<'_, Mbuf<'port>>,
        out: &mut O,
    ) {
        for packet in batch.drain() {
            match self.out(packet.port()) {
                Some(port) => {
                    // Refused by a full burst, which is possible if more packets arrived than one
                    // poll returns.
                    if let Err(packet) = port.waiting.push(packet) {
                        port.flush(out);
                        drop(port.waiting.push(packet));
                    }
                }
                None => out.send(Transmitted::Unsent, packet),
            }
        }
        for port in self.ports.iter_mut().flatten() {
            port.flush(out);
        }
    }
}

impl<'port> Out<'port> {
    fn flush<O: Outlet<Mbuf<'port>, Transmitted>>(&mut self, out: &mut O) {
        if self.waiting.is_empty() {
            return;
        }
        self.queue.send(&mut self.waiting);
        for packet in self.waiting.drain() {
            out.send(Transmitted::Unsent, packet);
        }
    }
}

impl<'port> Node<Mbuf<'port>> for Transmit<'port> {
    type Next = Transmitted;

    #[inline]
    fn process<O: Outlet<Mbuf<'port>, Transmitted>>(
        &mut self,
        mut batch: Batch<'_, Mbuf<'port>>,
        out: &mut O,
    ) {
        let first = batch[0].port();
        if batch.iter().any(|packet| packet.port() != first) {
            return self.send_by_several(batch, out);
        }
        if let Some(port) = self.out(first) {
            batch.send_by(&mut port.queue);
        }
        if !batch.is_empty() {
            out.send_batch(Transmitted::Unsent, batch);
        }
    }
}
