// SPDX-License-Identifier: BSD-3-Clause
//! Timing: walks of an arm, in one window, or slice by slice with other arms in between.

use std::fs::File;
use std::os::unix::fs::FileExt;

use dpdk::tsc;

use crate::arm::{Arm, Packets};

/// Maximum walks of a window, so that no request takes the machine for longer than a minute or so.
pub const MOST_WALKS: u64 = 1 << 32;
/// Warm-up walks, which are not timed: after them streams have grown, code is cached and branches are predicted.
const WARM: u64 = 8;

/// The result of timed walks.
pub struct Window {
    pub sunk: u64,
    pub cycles: u64,
    /// A digest of the work of these walks and of the warm-up walks before them.
    pub work: u64,
    /// Nanoseconds for which this thread waited for its CPU meanwhile; `None` if the kernel does not report it.
    pub waited_ns: Option<u64>,
}

impl Window {
    /// Times this many walks, after a few that warm up.
    pub fn of(arm: &mut dyn Arm, walks: u64, packets: &mut Packets, waiting: &Waiting) -> Self {
        packets.reset();
        arm.walk(WARM);
        let sunk = arm.sunk();
        let before = waiting.ns();
        let cycles = timed(arm, walks);
        let waited_ns = before.zip(waiting.ns()).map(|(before, now)| now.saturating_sub(before));
        Self { sunk: arm.sunk() - sunk, cycles, work: packets.digest(), waited_ns }
    }
}

/// Finds how many walks take this many microseconds.
pub fn walks_in(arm: &mut dyn Arm, us: u64) -> u64 {
    let wanted = tsc::hz() / 1_000_000 * us;
    let mut walks = WARM;
    // Double the number of walks until they take a tenth of the time or more.
    loop {
        let cycles = timed(arm, walks);
        if cycles >= wanted / 10 || walks >= MOST_WALKS {
            return (walks as f64 * wanted as f64 / cycles.max(1) as f64) as u64 + 1;
        }
        walks *= 2;
    }
}

fn timed(arm: &mut dyn Arm, walks: u64) -> u64 {
    let begin = tsc::now();
    arm.walk(walks);
    tsc::now().wrapping_sub(begin)
}

/// How long this thread has been ready to run while its CPU did something else: the second number in its schedstat.
pub struct Waiting(Option<File>);

impl Waiting {
    /// Opens the schedstat of the calling thread. The same thread must read it.
    pub fn new() -> Self {
        Self(File::open("/proc/thread-self/schedstat").ok())
    }

    fn ns(&self) -> Option<u64> {
        let mut text = [0; 96];
        let read = self.0.as_ref()?.read_at(&mut text, 0).ok()?;
        let mut numbers = text.get(..read)?.split(|byte| *byte == b' ');
        std::str::from_utf8(numbers.nth(1)?).ok()?.parse().ok()
    }
}
