// SPDX-License-Identifier: BSD-3-Clause
//! The inline lookups of `rte_lpm.h`.

use std::sync::atomic::{AtomicU32, Ordering};

use dpdk_sys::{layout, rte_lpm};

/// Bits of an entry that are a next hop, or the number of a group.
const VALUE: u32 = (1 << 24) - 1;

/// The entry that an address leads to. Relaxed, as in C: what is read of a group depends on the entry that
/// led there.
///
/// # Safety
/// `lpm` is a table that lives; others may change it by C's functions meanwhile, if a group that is in use
/// no more is used again only when this has returned.
#[inline(always)]
unsafe fn entry(lpm: *const rte_lpm, address: u32) -> u32 {
    // SAFETY: the contract is the caller's. The first table has an entry for each 24 bits, the second one
    // for each 8 bits of the groups that entries name; DPDK writes both atomically.
    unsafe {
        let load = |table: *const u32, index: usize| {
            AtomicU32::from_ptr(table.add(index).cast_mut()).load(Ordering::Relaxed)
        };
        let base = lpm.cast::<u8>();
        let entry = load(base.add(layout::LPM_TBL24).cast(), (address >> 8) as usize);
        if entry & layout::LPM_EXTENDED != layout::LPM_EXTENDED {
            return entry;
        }
        let groups = base.add(layout::LPM_TBL8).cast::<*const u32>().read();
        let group = (entry & VALUE) as usize * layout::LPM_GROUP_ENTRIES as usize;
        load(groups, group + (address & 0xff) as usize)
    }
}

const _: () = {
    assert!(layout::LPM_TBL24_ENTRIES == 1 << 24 && layout::LPM_GROUP_ENTRIES == 1 << 8);
    // Next hops and flags share an entry.
    assert!(layout::LPM_EXTENDED & VALUE == 0 && layout::LPM_FOUND & layout::LPM_EXTENDED != 0);
};

/// Has the processor fetch the first entry that an address leads to.
///
/// # Safety
/// `lpm` is a table that lives.
#[inline(always)]
pub(crate) unsafe fn prefetch(lpm: *const rte_lpm, address: u32) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: SSE is part of x86_64; the first table has an entry for each 24 bits.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let table = lpm.cast::<u8>().add(layout::LPM_TBL24).cast::<u32>();
        _mm_prefetch::<_MM_HINT_T0>(table.add((address >> 8) as usize).cast::<i8>());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (lpm, address);
}

/// `rte_lpm_lookup`.
///
/// # Safety
/// As [`entry`].
#[inline(always)]
pub(crate) unsafe fn lookup(lpm: *const rte_lpm, address: u32) -> Option<u32> {
    // SAFETY: the contract is the caller's.
    let entry = unsafe { entry(lpm, address) };
    (entry & layout::LPM_FOUND != 0).then_some(entry & VALUE)
}

/// One of `rte_lpm_lookup_bulk` or `rte_lpm_lookupx4`: `missed` where there is no route.
///
/// # Safety
/// As [`entry`].
#[inline(always)]
pub(crate) unsafe fn lookup_or(lpm: *const rte_lpm, address: u32, missed: u32) -> u32 {
    // SAFETY: the contract is the caller's.
    let entry = unsafe { entry(lpm, address) };
    if entry & layout::LPM_FOUND != 0 { entry & VALUE } else { missed }
}
