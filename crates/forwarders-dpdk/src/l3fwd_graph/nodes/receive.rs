// SPDX-License-Identifier: BSD-3-Clause
//! The source of packets.

use dpdk::{Mbuf, RxQueue, tsc};
use graph::{Outlet, Room, Source};

use crate::polling::{Meter, QueueFigures};

graph::edges! {
    /// Packets that a queue had.
    pub enum Received { Packets }
}

/// Polls the queues of an lcore, one in each walk.
pub struct Receive<'port> {
    queues: Vec<(RxQueue<'port>, &'port QueueFigures)>,
    /// The queue that is polled next.
    turn: usize,
    /// Set at the first poll.
    meter: Option<Meter<'port>>,
}

impl<'port> Receive<'port> {
    /// A source for these queues, each with the statistics of its polls.
    pub fn new(queues: Vec<(RxQueue<'port>, &'port QueueFigures)>) -> Self {
        Self { queues, turn: 0, meter: None }
    }
}

impl<'port> Source<Mbuf<'port>> for Receive<'port> {
    type Next = Received;

    #[inline]
    fn poll<O: Outlet<Mbuf<'port>, Received>>(
        &mut self,
        mut room: Room<'_, Mbuf<'port>>,
        out: &mut O,
    ) {
        let all = &self.queues;
        let meter =
            self.meter.get_or_insert_with(|| Meter::start(all.iter().map(|(_, figures)| *figures)));
        self.turn = if self.turn + 1 < self.queues.len() { self.turn + 1 } else { 0 };
        let Some((queue, figures)) = self.queues.get_mut(self.turn) else { return };
        let received = room.receive(queue);
        meter.polled(figures, received, tsc::now());
        if received > 0 {
            out.forward(Received::Packets, room.into_batch());
        }
    }
}
