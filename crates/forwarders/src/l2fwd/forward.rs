// SPDX-License-Identifier: BSD-3-Clause
//! The packet path: one lcore's loop.

use std::sync::Arc;

use dpdk::{Burst, Mbuf, Mempool, RxQueue, TxBuffer, TxQueue, tsc};

use super::counters::{Counts, PortCounters};
use crate::ethernet::{self, Addresses, write_addresses};
use crate::polling::{BURST, Meter};
use crate::stop::Stop;

/// Where packets go from one receive queue.
pub(super) struct Lane<'port, O> {
    pub(super) rx: RxQueue<'port>,
    pub(super) out: O,
    /// The addresses to write; `None` to leave packets as they are.
    pub(super) addresses: Option<Addresses>,
    /// Where packets that are shared with somebody are copied to before they are written to.
    pub(super) spare: Mempool<'port>,
    pub(super) rx_counters: Arc<PortCounters>,
    pub(super) tx_counters: Arc<PortCounters>,
    /// What the two above have not been told yet: they are in memory that others read, so they are
    /// told when the buffers are drained.
    pub(super) counts: Counts,
}

impl<'port, O: Output<'port>> Lane<'port, O> {
    /// Passes on what a poll has put into `burst`.
    #[inline(always)]
    fn forward(&mut self, burst: &mut Burst<'port, BURST>) {
        let received = burst.len() as u64;
        self.counts.received += received;
        if let Some(addresses) = &self.addresses {
            write_all(burst, addresses, &self.spare);
        }
        self.counts.dropped += received - burst.len() as u64;
        self.out.forward(burst, &mut self.counts);
    }

    fn drain(&mut self) {
        self.out.drain(&mut self.counts);
        let counts = std::mem::take(&mut self.counts);
        self.rx_counters.received(&counts);
        self.tx_counters.sent(&counts);
    }
}

/// How packets leave.
pub(super) trait Output<'port> {
    /// Sends a burst, or keeps it for [`drain`](Self::drain).
    fn forward(&mut self, burst: &mut Burst<'port, BURST>, counts: &mut Counts);
    /// Sends what was kept.
    fn drain(&mut self, counts: &mut Counts);
}

/// The C example's way: into a buffer that is sent whenever it holds 32, and drained every 100 us.
pub(super) struct Buffered<'port>(pub(super) TxBuffer<'port, BURST>);

impl<'port> Output<'port> for Buffered<'port> {
    #[inline(always)]
    fn forward(&mut self, burst: &mut Burst<'port, BURST>, counts: &mut Counts) {
        let dropped = self.0.dropped();
        counts.sent += self.0.append(burst) as u64;
        counts.dropped += self.0.dropped() - dropped;
    }

    fn drain(&mut self, counts: &mut Counts) {
        let dropped = self.0.dropped();
        counts.sent += self.0.flush() as u64;
        counts.dropped += self.0.dropped() - dropped;
    }
}

/// `--burst-forwarding`: each burst leaves as it came.
pub(super) struct Unbuffered<'port>(pub(super) TxQueue<'port>);

impl<'port> Output<'port> for Unbuffered<'port> {
    #[inline(always)]
    fn forward(&mut self, burst: &mut Burst<'port, BURST>, counts: &mut Counts) {
        counts.sent += self.0.send(burst) as u64;
        if !burst.is_empty() {
            counts.dropped += burst.len() as u64;
            burst.clear();
        }
    }

    fn drain(&mut self, _counts: &mut Counts) {}
}

/// Writes the addresses of every packet in place; only when one of them cannot be is the burst taken
/// apart.
#[inline(always)]
fn write_all<'port>(
    burst: &mut Burst<'port, BURST>,
    addresses: &Addresses,
    spare: &Mempool<'port>,
) {
    // As two numbers, which stay in registers while packets are written.
    let (front, back) = ethernet::halves(addresses);
    let write = |mbuf: &mut Mbuf<'port>| {
        mbuf.header_mut().map(|header| ethernet::write_halves(header, front, back)).is_some()
    };
    // Four at a time: the loop itself is a tenth of the work on a packet.
    let mut fours = burst.as_mut_slice().chunks_exact_mut(4);
    let all = fours.by_ref().all(|four| four.iter_mut().all(write))
        && fours.into_remainder().iter_mut().all(write);
    if !all {
        // To write twice changes nothing.
        write_rare(burst, addresses, spare);
    }
}

#[cold]
fn write_rare<'port>(
    burst: &mut Burst<'port, BURST>,
    addresses: &Addresses,
    spare: &Mempool<'port>,
) {
    let mut written = Burst::<BURST>::new();
    for mbuf in burst.drain() {
        if let Some(mbuf) = write_addresses(mbuf, addresses, spare) {
            // Never refused: both bursts have the same size.
            drop(written.push(mbuf));
        }
    }
    *burst = written;
}

/// TSC cycles between two drains: 100 us.
fn drain_interval() -> u64 {
    const MICROSECONDS: u64 = 100;
    tsc::hz().div_ceil(1_000_000) * MICROSECONDS
}

/// Forwards until told to stop. `tick` is called about every 100 us with the cycles since the last
/// call.
pub(super) fn run<'port, O: Output<'port>>(
    mut lanes: Vec<Lane<'port, O>>,
    mut meter: Meter,
    stop: &Stop,
    mut tick: impl FnMut(u64),
) {
    let interval = drain_interval();
    let mut burst = Burst::<BURST>::new();
    let mut drained = tsc::now();
    let mut now = drained;
    while !stop.is_raised() {
        for (index, lane) in lanes.iter_mut().enumerate() {
            let received = lane.rx.receive(&mut burst);
            // One reading serves the figures and the drain timer.
            now = tsc::now();
            meter.polled(index, received, now);
            if received == 0 {
                continue;
            }
            lane.forward(&mut burst);
        }
        let since = now.wrapping_sub(drained);
        if since > interval {
            for lane in &mut lanes {
                lane.drain();
            }
            tick(since);
            drained = now;
        }
    }
    for lane in &mut lanes {
        lane.drain();
    }
}
