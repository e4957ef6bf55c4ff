// SPDX-License-Identifier: BSD-3-Clause
//! Copying objects from one stream to another.

/// Objects copied in one iteration of the loop.
const BLOCK: usize = 8;

/// Up to this many the compiler copies inline, if their number is a constant.
const FEW: usize = 16;

/// Copies `count` objects. If wide registers may be used it copies inline, as `rte_memcpy` does: a
/// call of the C library, which also uses them, takes longer than to copy the few hundred words of
/// a stream.
///
/// # Safety
/// `count` objects lie at `from`, and there is memory for them at `to`, which does not overlap.
#[inline(always)]
pub(crate) unsafe fn copy<M>(from: *const M, to: *mut M, count: usize) {
    if !cfg!(target_feature = "avx") || count <= FEW {
        // SAFETY: the contract is the caller's.
        return unsafe { std::ptr::copy_nonoverlapping(from, to, count) };
    }
    let mut at = 0;
    // SAFETY: the contract is the caller's; each object is copied once, and none after the last.
    unsafe {
        while count - at >= BLOCK {
            // In halves, because the compiler would replace a loop over whole blocks by that call.
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
