// SPDX-License-Identifier: BSD-3-Clause
//! The loop of an lcore: receives, balances, sends.

use dpdk::qsbr::{Reader, Replaceable};
use dpdk::{Burst, RxQueue, Stop, TxQueue, tsc};

use crate::balancer::{BURST, Balancer};
use crate::capture::Capture;
use crate::tables::{Tables, ticks};

/// The queues of a port that an lcore polls. Packets leave by the port that they came on.
pub struct QueuePair<'p> {
    pub rx: RxQueue<'p>,
    pub tx: TxQueue<'p>,
    pub received: Capture,
    pub sent: Capture,
}

/// The work of an lcore.
pub struct Worker<'p, 'e, 'q, 't> {
    pub queues: Vec<QueuePair<'p>>,
    pub reader: Reader<'q>,
    pub tables: &'t Replaceable<'q, Tables<'e>>,
    pub balancer: Balancer,
}

impl Worker<'_, '_, '_, '_> {
    /// Runs until it is asked to stop.
    pub fn run(mut self, stop: &Stop) {
        let mut online = self.reader.online();
        while !stop.is_set() {
            let now = ticks(tsc::now());
            let tables = self.tables.read(&online);
            for pair in &mut self.queues {
                let mut burst = Burst::<BURST>::new();
                let received = pair.rx.receive(&mut burst);
                if received == 0 {
                    continue;
                }
                self.balancer.counters.received(received);
                pair.received.see(burst.as_slice());
                self.balancer.balance(tables, &mut burst, now);
                pair.sent.see(burst.as_slice());
                if !burst.is_empty() {
                    pair.tx.send(&mut burst);
                    self.balancer.counters.unsent(burst.len());
                }
            }
            self.balancer.age(now, tables.idle);
            // No reference into the tables is left: they may be exchanged.
            online.quiescent();
        }
    }
}
