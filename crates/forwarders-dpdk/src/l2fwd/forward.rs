// SPDX-License-Identifier: BSD-3-Clause
//! The packet path: one lcore's loop.

use dpdk::{Burst, Mbuf, Mempool, RxQueue, TxBuffer, TxQueue, tsc};
use forwarders_common::l2fwd::Counts;

use super::counters::PortCounters;
use crate::ethernet::{self, Addresses, write_addresses};
use crate::polling::{BURST, Meter, QueueFigures};
use crate::stop::Stop;

/// One receive queue and where its packets go.
pub(super) struct Lane<'port, O> {
    pub(super) rx: RxQueue<'port>,
    pub(super) out: O,
    /// The addresses to write; `None` to leave packets unchanged.
    pub(super) addresses: Option<Addresses>,
    /// The pool into which shared packets are copied before they are written to.
    pub(super) spare: Mempool<'port>,
    /// Statistics of the polls of `rx`.
    pub(super) figures: &'port QueueFigures,
    pub(super) rx_counters: &'port PortCounters,
    pub(super) tx_counters: &'port PortCounters,
    /// Counts that are not yet added to the shared counters: those are in memory that others read,
    /// so they are updated when the buffers are drained.
    pub(super) counts: Counts,
}

impl<'port, O: Output<'port>> Lane<'port, O> {
    /// Forwards the packets that a poll has put into `burst`.
    #[inline(always)]
    fn forward(&mut self, burst: &mut Burst<'port, BURST>) {
        self.counts.received += burst.len() as u64;
        let written =
            self.addresses.as_ref().is_none_or(|both| write_all(burst.as_mut_slice(), both));
        if !written {
            self.write_rare(burst);
        }
        self.out.forward(burst, &mut self.counts);
    }

    /// Handles packets one by one: shared ones are copied, and dropped if there is no mbuf. Writing
    /// the same addresses twice changes nothing.
    #[cold]
    fn write_rare(&mut self, burst: &mut Burst<'port, BURST>) {
        let Some(addresses) = &self.addresses else { return };
        let received = burst.len();
        let mut written = Burst::<BURST>::new();
        for mbuf in burst.drain() {
            if let Some(mbuf) = write_addresses(mbuf, addresses, &self.spare) {
                // Never refused: both bursts have the same size.
                drop(written.push(mbuf));
            }
        }
        *burst = written;
        self.counts.dropped += (received - burst.len()) as u64;
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

/// As in the C example: a buffer that is sent when it holds 32 packets, and drained every 100 us.
pub(super) struct Buffered<'port> {
    buffer: TxBuffer<'port, BURST>,
    /// Packets dropped by the buffer and already counted.
    dropped: u64,
}

impl<'port> Buffered<'port> {
    pub(super) fn new(queue: TxQueue<'port>) -> Self {
        Self { buffer: TxBuffer::new(queue), dropped: 0 }
    }
}

impl<'port> Output<'port> for Buffered<'port> {
    #[inline(always)]
    fn forward(&mut self, burst: &mut Burst<'port, BURST>, counts: &mut Counts) {
        counts.sent += self.buffer.append(burst) as u64;
    }

    fn drain(&mut self, counts: &mut Counts) {
        counts.sent += self.buffer.flush() as u64;
        counts.dropped += self.buffer.dropped() - self.dropped;
        self.dropped = self.buffer.dropped();
    }
}

/// `--burst-forwarding`: each burst is sent at once.
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

/// Packets that are checked together for whether they may be written.
const GROUP: usize = 8;

/// Writes the addresses of every packet in place. Returns `false`, after writing some or none, if
/// one of them cannot be written in place.
#[inline(always)]
fn write_all(packets: &mut [Mbuf<'_>], addresses: &Addresses) -> bool {
    // As two numbers, which stay in registers while packets are written.
    let (front, back) = ethernet::halves(addresses);
    let write = |header: &mut Addresses| ethernet::write_halves(header, front, back);
    let mut groups = packets.chunks_exact_mut(GROUP);
    let all = groups.by_ref().all(|group| {
        <&mut [_; GROUP]>::try_from(group)
            .is_ok_and(|group| Mbuf::headers_mut(group).map(|all| all.for_each(write)).is_some())
    });
    let rest = groups.into_remainder();
    all && (rest.is_empty() || write_each(rest, front, back))
}

/// [`write_all`] one by one, outside of the loop over groups.
#[inline(never)]
fn write_each(packets: &mut [Mbuf<'_>], front: u64, back: u32) -> bool {
    let write = |header: &mut Addresses| ethernet::write_halves(header, front, back);
    packets.iter_mut().all(|mbuf| mbuf.header_mut().map(write).is_some())
}

/// TSC cycles between two drains: 100 us.
fn drain_interval() -> u64 {
    const MICROSECONDS: u64 = 100;
    tsc::hz().div_ceil(1_000_000) * MICROSECONDS
}

/// Forwards until told to stop. `tick` is called about every 100 us with the cycles since its last
/// call.
///
/// A separate function, so that the loop has all registers.
#[inline(never)]
pub(super) fn run<'port, O: Output<'port>>(
    mut lanes: Vec<Lane<'port, O>>,
    stop: &Stop,
    mut tick: impl FnMut(u64),
) {
    let interval = drain_interval();
    let mut meter = Meter::start(lanes.iter().map(|lane| lane.figures));
    let mut drained = tsc::now();
    let mut now = drained;
    while !stop.is_raised() {
        for lane in &mut lanes {
            // A new one each time, so that the compiler knows that it is empty.
            let mut burst = Burst::<BURST>::new();
            let received = lane.rx.receive(&mut burst);
            // One clock reading serves the statistics and the drain timer.
            now = tsc::now();
            meter.polled(lane.figures, received, now);
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
