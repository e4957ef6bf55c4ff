// SPDX-License-Identifier: BSD-3-Clause
//! What is timed: walks of an arm, once, or slice by slice with other arms in between.

use std::fs::File;
use std::os::unix::fs::FileExt;

use dpdk::tsc;

use crate::arm::{Arm, Packets};

/// Walks of a window at most: no request takes the machine for longer than a minute or so.
pub const MOST_WALKS: u64 = 1 << 32;
/// Walks before those that are timed, so that streams have grown, code is cached and branches are known.
const WARM: u64 = 8;

/// Walks that were timed.
pub struct Window {
    pub sunk: u64,
    pub cycles: u64,
    /// A digest of the work of these walks and of those before that warmed up.
    pub work: u64,
    /// Nanoseconds for which this thread waited for its CPU meanwhile; `None` where the kernel does not tell.
    pub waited_ns: Option<u64>,
}

impl Window {
    /// So many walks, behind a few that are not timed.
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

/// How many walks take so many microseconds.
pub fn walks_in(arm: &mut dyn Arm, us: u64) -> u64 {
    let wanted = tsc::hz() / 1_000_000 * us;
    let mut walks = WARM;
    // Until so many take a tenth of the time or more.
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

/// For how long this thread has been ready to run while its CPU did something else: the second number of its schedstat.
pub struct Waiting(Option<File>);

impl Waiting {
    /// Of the thread that calls, which must be the one that asks.
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
