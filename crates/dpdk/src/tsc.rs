// SPDX-License-Identifier: BSD-3-Clause
//! The time stamp counter: raw cycles, their rate, and what reading it costs.

use std::sync::OnceLock;

/// The counter now, in cycles. Not serialising, as `rte_rdtsc`.
#[inline(always)]
#[must_use]
pub fn now() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86_64 has the instruction.
    return unsafe { core::arch::x86_64::_rdtsc() };
    #[cfg(not(target_arch = "x86_64"))]
    // SAFETY: no preconditions.
    return unsafe { dpdk_sys::lr_rdtsc() };
}

/// Cycles per second, as DPDK found out. 0 before [`Eal::init`](crate::Eal::init).
#[must_use]
pub fn hz() -> u64 {
    // SAFETY: reads a global that is written once, by rte_eal_init.
    unsafe { dpdk_sys::rte_get_tsc_hz() }
}

/// Measured cost of one [`now`], in cycles: the median distance of back-to-back readings. Measured
/// at the first call and kept.
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

#[cfg(test)]
mod tests {
    #[test]
    fn the_counter_runs_and_its_cost_is_plausible() {
        let before = super::now();
        assert!(super::cost() < 100_000);
        assert!(super::now() > before);
    }
}
