// SPDX-License-Identifier: BSD-3-Clause
//! `rte_prefetch0`.

/// Prefetches a cache line into all levels. Any address is allowed, because a prefetch does not
/// fault. Does nothing on processors other than x86_64 and aarch64.
#[inline(always)]
pub(crate) fn prefetch(at: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: SSE is part of x86_64, and a prefetch does not fault.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(at.cast::<i8>());
    }
    // The intrinsic is for nightly compilers only.
    #[cfg(target_arch = "aarch64")]
    // SAFETY: a prefetch does not fault, and changes neither memory, stack nor flags.
    unsafe {
        std::arch::asm!("prfm pldl1keep, [{}]", in(reg) at, options(readonly, nostack, preserves_flags));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = at;
}
