// SPDX-License-Identifier: BSD-3-Clause
//! `rte_lpm_lookupx4` with SSE2, which every x86_64 processor has.

use std::arch::asm;
use std::arch::x86_64::{
    __m128i, _mm_and_si128, _mm_andnot_si128, _mm_castsi128_ps, _mm_movemask_ps, _mm_or_si128,
    _mm_set1_epi32, _mm_slli_epi32, _mm_srai_epi32, _mm_storeu_si128, _mm_unpacklo_epi32,
    _mm_unpacklo_epi64,
};

use dpdk_sys::{layout, rte_lpm};

use super::lpm::{VALUE, in_group, next_hop, rare};

/// The distance of an entry's two flags from its highest bit: the flag that it is valid, and the
/// flag that it names a group.
const FOUND_TO_SIGN: i32 = 7;
const GROUP_TO_SIGN: i32 = 6;

const _: () = {
    assert!(layout::LPM_FOUND == 0x8000_0000 >> FOUND_TO_SIGN);
    assert!(layout::LPM_EXTENDED == 0x8000_0000 >> FOUND_TO_SIGN | 0x8000_0000 >> GROUP_TO_SIGN);
};

/// Looks up all addresses, four at a time (`rte_lpm_lookupx4`). There is one branch for four
/// addresses, not one for each: a wrong prediction discards the reads of the following ones.
///
/// # Safety
/// As [`super::lpm::lookup`].
#[inline(always)]
pub(super) unsafe fn lookup_row<const N: usize>(
    lpm: *const rte_lpm,
    addresses: &[u32; N],
    hops: &mut [u32; N],
    missed: u32,
) {
    const { assert!(N % 4 == 0) };
    for n in (0..N).step_by(4) {
        // SAFETY: SSE2 is part of x86_64, and the places of four hops are written; otherwise the contract is the
        // caller's.
        let groups = unsafe {
            let entry = |n: usize| first_in_vector(lpm, addresses[n]);
            let four = _mm_unpacklo_epi64(
                _mm_unpacklo_epi32(entry(n), entry(n + 1)),
                _mm_unpacklo_epi32(entry(n + 2), entry(n + 3)),
            );
            let found = _mm_slli_epi32::<FOUND_TO_SIGN>(four);
            let group = _mm_and_si128(found, _mm_slli_epi32::<GROUP_TO_SIGN>(four));
            let found = _mm_srai_epi32::<31>(found);
            let hop = _mm_and_si128(found, _mm_and_si128(four, _mm_set1_epi32(VALUE as i32)));
            let none = _mm_andnot_si128(found, _mm_set1_epi32(missed as i32));
            _mm_storeu_si128(hops[n..n + 4].as_mut_ptr().cast(), _mm_or_si128(hop, none));
            _mm_movemask_ps(_mm_castsi128_ps(group))
        };
        if groups != 0 {
            rare();
            for m in (n..n + 4).filter(|m| groups >> (m - n) & 1 != 0) {
                // SAFETY: the contract is the caller's; a group's number is stored in place of a
                // next hop.
                hops[m] = next_hop(unsafe { in_group(lpm, hops[m], addresses[m]) }, missed);
            }
        }
    }
}

/// The instruction of [`first_in_vector`].
#[cfg(not(target_feature = "avx"))]
macro_rules! movd {
    () => {
        "movd {entry}, dword ptr [{table} + 4 * {index}]"
    };
}
#[cfg(target_feature = "avx")]
macro_rules! movd {
    () => {
        "vmovd {entry}, dword ptr [{table} + 4 * {index}]"
    };
}

/// `first`, with zeros above. The compiler would move an atomic load into a vector through another
/// register.
///
/// # Safety
/// As [`super::lpm::lookup`].
#[inline(always)]
unsafe fn first_in_vector(lpm: *const rte_lpm, address: u32) -> __m128i {
    let entry;
    // SAFETY: reads the four bytes that `first` reads, which the processor does at once, for they are aligned.
    unsafe {
        asm!(
            movd!(),
            entry = lateout(xmm_reg) entry,
            table = in(reg) lpm.cast::<u8>().add(layout::LPM_TBL24),
            index = in(reg) (address >> 8) as usize,
            options(readonly, nostack, preserves_flags),
        );
    }
    entry
}
