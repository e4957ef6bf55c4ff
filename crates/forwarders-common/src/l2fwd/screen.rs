// SPDX-License-Identifier: BSD-3-Clause
//! The screen with the counters of each port, and when it is printed.

use std::fmt::Write as _;
use std::thread::sleep;
use std::time::Duration;

use measure::clock;

use super::counters::{Counted, Counts};
use crate::say_on;
use crate::stop::Stop;

/// Prints the counters every `period` TSC cycles; never if that is 0.
pub struct Screen<'c> {
    period: u64,
    elapsed: u64,
    counters: &'c dyn Counted,
}

impl<'c> Screen<'c> {
    /// A screen that is printed every `period_s` seconds, with a time stamp counter of `hz` cycles
    /// per second.
    #[must_use]
    pub fn new(period_s: u32, tsc_hz: u64, counters: &'c dyn Counted) -> Self {
        Self { period: u64::from(period_s) * tsc_hz, elapsed: 0, counters }
    }

    /// Called before the first packet. The C example's timer counts from the TSC's zero, so that
    /// the first screen is printed at once (if the machine was started longer ago than the period).
    pub fn begin(&mut self) {
        self.tick(clock::now());
    }

    /// Records that TSC `cycles` have passed.
    pub fn tick(&mut self, cycles: u64) {
        if self.period == 0 {
            return;
        }
        self.elapsed += cycles;
        if self.elapsed >= self.period {
            self.elapsed = 0;
            show(self.counters);
        }
    }

    /// The loop of a main lcore that polls nothing. (The C example prints no screen then.)
    pub fn wait(&mut self, stop: &Stop) {
        let mut before = clock::now();
        while !stop.is_raised() {
            sleep(Duration::from_millis(10));
            let now = clock::now();
            self.tick(now.wrapping_sub(before));
            before = now;
        }
    }
}

/// Clears the terminal and prints the counters, as the C example does.
fn show(counters: &dyn Counted) {
    let mut text =
        String::from("\u{1b}[2J\u{1b}[1;1H\nPort statistics ====================================");
    let mut total = Counts::default();
    for (port, counts) in counters.read() {
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
    say_on!("{text}");
}
