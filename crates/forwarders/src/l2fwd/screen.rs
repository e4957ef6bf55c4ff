// SPDX-License-Identifier: BSD-3-Clause
//! The screen that shows the counters of each port, and when it does.

use std::fmt::Write as _;
use std::io::Write as _;
use std::thread::sleep;
use std::time::Duration;

use dpdk::tsc;

use super::counters::{Counters, Counts};
use crate::stop::Stop;

/// Shows the counters every `period` TSC cycles; never when that is 0.
pub(super) struct Screen<'c> {
    period: u64,
    elapsed: u64,
    counters: &'c Counters,
}

impl<'c> Screen<'c> {
    /// A screen that is shown every `period_s` seconds.
    pub(super) fn new(period_s: u32, counters: &'c Counters) -> Self {
        Self { period: u64::from(period_s) * tsc::hz(), elapsed: 0, counters }
    }

    /// Before the first packet. The C example's timer counts from the TSC's zero, so that the first
    /// screen is shown at once (on a machine that was started longer ago than the period).
    pub(super) fn begin(&mut self) {
        self.tick(tsc::now());
    }

    /// Notes that TSC `cycles` have passed.
    pub(super) fn tick(&mut self, cycles: u64) {
        if self.period == 0 {
            return;
        }
        self.elapsed += cycles;
        if self.elapsed >= self.period {
            self.elapsed = 0;
            show(self.counters);
        }
    }

    /// For a main lcore that polls nothing. (The C example shows no screen then.)
    pub(super) fn wait(&mut self, stop: &Stop) {
        let mut before = tsc::now();
        while !stop.is_raised() {
            sleep(Duration::from_millis(10));
            let now = tsc::now();
            self.tick(now.wrapping_sub(before));
            before = now;
        }
    }
}

/// Clears the terminal and prints the counters, as the C example does.
fn show(counters: &Counters) {
    let mut text =
        String::from("\u{1b}[2J\u{1b}[1;1H\nPort statistics ====================================");
    let mut total = Counts::default();
    for (port, counters) in counters {
        let counts = counters.read();
        total.add(counts);
        let Counts { sent, received, dropped } = counts;
        let _ = write!(
            text,
            "\nStatistics for port {port} ------------------------------\
             \nPackets sent: {sent:>24}\
             \nPackets received: {received:>20}\
             \nPackets dropped: {dropped:>21}"
        );
    }
    let Counts { sent, received, dropped } = total;
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
