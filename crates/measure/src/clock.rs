// SPDX-License-Identifier: BSD-3-Clause
//! The time stamp counter, as DPDK reads it.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// The counter now, in cycles. Not serialising, like `rte_rdtsc`.
#[inline(always)]
#[must_use]
pub fn now() -> u64 {
    // Miri has no counter: nanoseconds of the system's clock.
    #[cfg(miri)]
    return {
        static START: OnceLock<Instant> = OnceLock::new();
        START.get_or_init(Instant::now).elapsed().as_nanos() as u64
    };
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: every x86_64 has the instruction.
    return unsafe { core::arch::x86_64::_rdtsc() };
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    {
        let cycles: u64;
        // SAFETY: the virtual counter can be read in user space wherever Linux runs; DPDK reads it too.
        unsafe {
            core::arch::asm!("mrs {}, cntvct_el0", out(reg) cycles, options(nomem, nostack));
        }
        cycles
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!("linerate-measure can read the time stamp counter of x86_64 and aarch64 only");

/// Measured cost of one [`now`], in cycles: the median difference of back-to-back readings.
/// Measured in the first call, which allocates, and cached.
#[must_use]
pub fn cost() -> u64 {
    static COST: OnceLock<u64> = OnceLock::new();
    *COST.get_or_init(|| {
        const READINGS: usize = 1001;
        let mut distances: Vec<u64> = (0..READINGS)
            .map(|_| {
                let before = now();
                now().wrapping_sub(before)
            })
            .collect();
        distances.sort_unstable();
        distances[READINGS / 2]
    })
}

/// Measured rate of [`now`], in cycles per second, against the system's monotonic clock. Measured
/// in the first call, which sleeps for 50 ms, and cached.
///
/// At both ends the clocks are read several times, and the reading that took the fewest cycles is
/// used, so that interruptions do not count. The error is some tens of nanoseconds in 50 ms, about
/// one part in a million.
#[must_use]
pub fn hz() -> u64 {
    static HZ: OnceLock<u64> = OnceLock::new();
    *HZ.get_or_init(|| {
        let (cycles, instant) = together();
        std::thread::sleep(Duration::from_millis(50));
        let (later, end) = together();
        let elapsed = end.duration_since(instant).as_nanos().max(1);
        (u128::from(later.wrapping_sub(cycles)) * 1_000_000_000 / elapsed) as u64
    })
}

/// Both clocks at one time: the counter in the middle of the reading of the other.
fn together() -> (u64, Instant) {
    const READINGS: usize = 16;
    let read = || {
        let before = now();
        let instant = Instant::now();
        let took = now().wrapping_sub(before);
        (took, before.wrapping_add(took / 2), instant)
    };
    let first = read();
    let best = (1..READINGS).map(|_| read()).fold(first, |best, each| match each.0 < best.0 {
        true => each,
        false => best,
    });
    (best.1, best.2)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_counter_runs_and_its_cost_is_plausible() {
        let before = super::now();
        assert!(super::cost() < 100_000);
        assert!(super::now() > before);
    }

    #[test]
    fn the_rate_is_that_of_the_clock() {
        let hz = super::hz();
        assert!((1_000_000..10_000_000_000).contains(&hz), "{hz}");
        assert_eq!(hz, super::hz());
    }
}
