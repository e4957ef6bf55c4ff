// SPDX-License-Identifier: BSD-3-Clause
//! The time stamp counter, as DPDK reads it.

use std::sync::OnceLock;

/// The counter now, in cycles. Not serialising, as `rte_rdtsc`.
#[inline(always)]
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

/// Median distance of back-to-back readings, in cycles; measured at the first call and kept.
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
