// SPDX-License-Identifier: BSD-3-Clause
//! The time stamp counter, as DPDK reads it.

use std::sync::OnceLock;

/// The counter now, in cycles. Not serialising, as `rte_rdtsc`.
#[inline(always)]
#[must_use]
pub fn now() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86_64 has the instruction.
    return unsafe { core::arch::x86_64::_rdtsc() };
    #[cfg(target_arch = "aarch64")]
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

/// Measured cost of one [`now`], in cycles: the median distance of back-to-back readings. Measured
/// at the first call, which allocates, and kept.
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
