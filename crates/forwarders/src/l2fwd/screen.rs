// SPDX-License-Identifier: BSD-3-Clause
//! The counters of each port, and the screen that shows them.

use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Packets of one port. Each field has one writer: the lcore that polls the port counts `rx`, the
/// lcore that sends on it the others.
#[derive(Default)]
#[repr(align(64))]
pub struct PortCounters {
    rx: AtomicU64,
    tx: AtomicU64,
    dropped: AtomicU64,
}

impl PortCounters {
    #[inline(always)]
    pub(super) fn received(&self, n: usize) {
        self.rx.store(self.rx.load(Relaxed) + n as u64, Relaxed);
    }

    #[inline(always)]
    pub(super) fn sent(&self, n: usize) {
        self.tx.store(self.tx.load(Relaxed) + n as u64, Relaxed);
    }

    #[inline(always)]
    pub(super) fn dropped(&self, n: usize) {
        self.dropped.store(self.dropped.load(Relaxed) + n as u64, Relaxed);
    }
}

/// Every port's counters, by ascending port.
pub(super) type Counters = Vec<(u16, Arc<PortCounters>)>;

/// Clears the terminal and prints the counters, as the C example does.
pub(super) fn show(counters: &Counters) {
    let mut text =
        String::from("\u{1b}[2J\u{1b}[1;1H\nPort statistics ====================================");
    let (mut sent, mut received, mut dropped) = (0, 0, 0);
    for (port, counters) in counters {
        let (tx, rx, drops) =
            (counters.tx.load(Relaxed), counters.rx.load(Relaxed), counters.dropped.load(Relaxed));
        let _ = write!(
            text,
            "\nStatistics for port {port} ------------------------------\
             \nPackets sent: {tx:>24}\
             \nPackets received: {rx:>20}\
             \nPackets dropped: {drops:>21}"
        );
        sent += tx;
        received += rx;
        dropped += drops;
    }
    let _ = write!(
        text,
        "\nAggregate statistics ===============================\
         \nTotal packets sent: {sent:>18}\
         \nTotal packets received: {received:>14}\
         \nTotal packets dropped: {dropped:>15}\
         \n====================================================\n"
    );
    let mut out = std::io::stdout().lock();
    // A terminal that is gone is no reason to stop forwarding.
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
