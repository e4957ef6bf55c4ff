// SPDX-License-Identifier: BSD-3-Clause
//! Copying objects from one stream to another.

/// Objects that are copied in one turn of the loop.
const BLOCK: usize = 8;

/// Up to so many the compiler copies in place by itself, where it knows how many they are.
const FEW: usize = 16;

/// Copies `count` objects. Where wide registers may be used it does so in place, as `rte_memcpy` does: to call the
/// C library, which has as wide ones, takes longer than to copy the few hundred words of a stream.
///
/// # Safety
/// So many objects lie at `from`, and there is memory for them at `to`, apart from it.
#[inline(always)]
pub(crate) unsafe fn copy<M>(from: *const M, to: *mut M, count: usize) {
    if !cfg!(target_feature = "avx") || count <= FEW {
        // SAFETY: the contract is the caller's.
        return unsafe { std::ptr::copy_nonoverlapping(from, to, count) };
    }
    let mut at = 0;
    // SAFETY: the contract is the caller's; each object is copied once, and none behind the last.
    unsafe {
        while count - at >= BLOCK {
            // In halves, for of a loop of whole blocks the compiler would make that call again.
            std::ptr::copy_nonoverlapping(from.add(at), to.add(at), BLOCK / 2);
            let half = at + BLOCK / 2;
            std::ptr::copy_nonoverlapping(from.add(half), to.add(half), BLOCK / 2);
            at += BLOCK;
        }
        for some in [4, 2, 1] {
            if count & some != 0 {
                std::ptr::copy_nonoverlapping(from.add(at), to.add(at), some);
                at += some;
            }
        }
    }
}
