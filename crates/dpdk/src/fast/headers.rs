// SPDX-License-Identifier: BSD-3-Clause
//! Checks whether the first bytes of each of several packets may be written.

use dpdk_sys::{layout, rte_mbuf};

use super::mbuf::{SHARED, field, has_header, refcnt};

/// Returns true if an mbuf has one owner, bytes of its own, and at least `len` of them (see
/// [`has_header`]).
///
/// # Safety
/// `mbuf` is valid; `len` is 64 at most.
#[inline(always)]
pub(crate) unsafe fn is_own(mbuf: *const rte_mbuf, len: u16) -> bool {
    // Separate tests, each a jump that is never taken: faster than one test of all.
    // SAFETY: the contract is the caller's.
    unsafe {
        has_header(mbuf, len)
            && refcnt(mbuf) == 1
            && field::<u64>(mbuf, layout::MBUF_OL_FLAGS) & SHARED == 0
    }
}

/// Returns true if [`is_own`] holds for all. May return false although it holds if one has 32,768
/// bytes or more.
///
/// # Safety
/// The mbufs are valid and the caller owns a reference to each; `len` is 64 at most.
#[inline(always)]
pub(crate) unsafe fn all_own<const K: usize>(mbufs: &[*mut rte_mbuf; K], len: u16) -> bool {
    #[cfg(all(target_arch = "x86_64", not(miri)))] // Miri runs no assembly.
    if const { sse2::FITS } {
        // SAFETY: the contract is the caller's.
        return unsafe { sse2::all_own(mbufs, len) };
    }
    // SAFETY: the contract is the caller's.
    mbufs.iter().all(|&mbuf| unsafe { is_own(mbuf, len) })
}

/// Two instructions per packet; [`is_own`] takes eight.
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod sse2 {
    use std::arch::asm;
    use std::arch::x86_64::{__m128i, _mm_extract_epi16, _mm_set1_epi16, _mm_setzero_si128};
    use std::sync::atomic::{Ordering, fence};

    use dpdk_sys::{layout, rte_mbuf};

    use super::SHARED;

    const LANES: usize = size_of::<__m128i>() / size_of::<u16>();
    /// The 16 bytes that hold the reference count and the flags, and those that hold the length.
    const OWNERS: usize = layout::MBUF_REFCNT / 16 * 16;
    const LENGTHS: usize = layout::MBUF_DATA_LEN / 16 * 16;
    /// Its place in them, in units of 16 bits.
    const REFCNT: usize = (layout::MBUF_REFCNT - OWNERS) / 2;
    const FLAGS: usize = (layout::MBUF_OL_FLAGS + 6).wrapping_sub(OWNERS) / 2;
    const LENGTH: usize = (layout::MBUF_DATA_LEN - LENGTHS) / 2;

    /// True if this release's mbuf has the layout that this test needs: count and flags adjacent,
    /// and the tested flags the uppermost 16.
    pub(super) const FITS: bool = FLAGS < LANES && SHARED << 16 >> 16 == 0;

    /// # Safety
    /// As [`super::all_own`].
    #[inline(always)]
    pub(super) unsafe fn all_own<const K: usize>(mbufs: &[*mut rte_mbuf; K], len: u16) -> bool {
        // SAFETY: SSE2 is part of x86_64.
        let (mut owners, mut lengths) = unsafe { (_mm_setzero_si128(), _mm_set1_epi16(i16::MAX)) };
        for mbuf in mbufs {
            // Not loads of the language: another owner may change the count meanwhile, by an atomic
            // access of another width. To the processor each lane is one.
            // SAFETY: reads 32 bytes of a valid mbuf, which is aligned to a cache line.
            unsafe {
                asm!(
                    "por {owners}, [{mbuf} + {at_owners}]",
                    "pminsw {lengths}, [{mbuf} + {at_lengths}]",
                    owners = inout(xmm_reg) owners,
                    lengths = inout(xmm_reg) lengths,
                    mbuf = in(reg) *mbuf,
                    at_owners = const OWNERS,
                    at_lengths = const LENGTHS,
                    options(pure, readonly, nostack, preserves_flags),
                );
            }
        }
        // One reference is the caller's, so no count is 0, and the OR of all is 1 only if each is
        // 1. Lengths are compared as signed numbers: 32,768 or more counts as too short.
        // SAFETY: as above.
        let (refcnt, flags, shortest) = unsafe {
            (
                _mm_extract_epi16::<{ REFCNT as i32 }>(owners),
                _mm_extract_epi16::<{ FLAGS as i32 & 7 }>(owners),
                _mm_extract_epi16::<{ LENGTH as i32 }>(lengths),
            )
        };
        let own =
            refcnt == 1 && flags & (SHARED >> 48) as i32 == 0 && shortest as i16 >= len as i16;
        // As in `refcnt`: everything that other owners did before they gave up their references has
        // happened.
        fence(Ordering::Acquire);
        own
    }
}
