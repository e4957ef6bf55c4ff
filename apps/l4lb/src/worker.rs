// SPDX-License-Identifier: BSD-3-Clause
//! The loop of an lcore: receives, balances, sends.

use dpdk::pcapng::Tap;
use dpdk::qsbr::{Reader, Replaceable};
use dpdk::{Burst, RxQueue, Stop, TxQueue, tsc};

use crate::balancer::{BURST, Balancer};
use crate::capture::Taps;
use crate::tables::{Tables, ticks};

/// The queues of a port that an lcore polls. Packets leave by the port that they came on.
pub struct Lane<'p> {
    pub rx: RxQueue<'p>,
    pub tx: TxQueue<'p>,
    pub taps: Taps,
}

/// The work of an lcore.
pub struct Worker<'p, 'e, 'q, 't> {
    pub lanes: Vec<Lane<'p>>,
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
            for lane in &mut self.lanes {
                let mut burst = Burst::<BURST>::new();
                let received = lane.rx.receive(&mut burst);
                if received == 0 {
                    continue;
                }
                self.balancer.counters.received(received);
                let tap = lane.taps.current();
                capture(tap, &burst);
                self.balancer.balance(tables, &mut burst, now);
                capture(tap, &burst);
                if !burst.is_empty() {
                    lane.tx.send(&mut burst);
                    self.balancer.counters.unsent(burst.len());
                }
            }
            self.balancer.age(now, tables.idle);
            // No reference into the tables is left: they may be exchanged.
            online.quiescent();
        }
    }
}

/// Copies the packets of a burst into the ring of a capture, if there is one.
#[inline(always)]
pub fn capture(tap: &mut Option<Tap>, burst: &Burst<'_, BURST>) {
    if let Some(tap) = tap {
        tap.capture(burst.iter());
    }
}
