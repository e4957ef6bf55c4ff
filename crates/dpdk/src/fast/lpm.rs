// SPDX-License-Identifier: BSD-3-Clause
//! The inline lookup of one address in `rte_lpm.h`; `lpm_bulk` has those of several.

use std::sync::atomic::{AtomicU32, Ordering};

use dpdk_sys::{layout, rte_lpm};

/// The bits of an entry that hold a next hop, or a group's number.
pub(super) const VALUE: u32 = (1 << 24) - 1;

/// The entry for an address. Relaxed, as in C: the read of a group depends on the entry that names
/// it.
///
/// # Safety
/// `lpm` is a table that lives; others may change it by C's functions meanwhile, if they reuse a
/// released group only after this has returned.
#[inline(always)]
unsafe fn entry(lpm: *const rte_lpm, address: u32) -> u32 {
    // SAFETY: the contract is the caller's.
    unsafe { follow(lpm, first(lpm, address), address) }
}

/// # Safety
/// `entry` is one of a table that lives, and is written only atomically.
#[inline(always)]
unsafe fn load(entry: *const u32) -> u32 {
    // SAFETY: the contract is the caller's.
    unsafe { AtomicU32::from_ptr(entry.cast_mut()) }.load(Ordering::Relaxed)
}

/// The entry of the first table, which has one for each 24-bit prefix.
///
/// # Safety
/// As [`entry`].
#[inline(always)]
unsafe fn first(lpm: *const rte_lpm, address: u32) -> u32 {
    // SAFETY: the contract is the caller's; DPDK writes entries atomically.
    unsafe {
        let table = lpm.cast::<u8>().add(layout::LPM_TBL24).cast::<u32>();
        load(table.add((address >> 8) as usize))
    }
}

/// Marks the branch that calls it as unlikely for the compiler.
#[cold]
#[inline]
pub(super) fn rare() {}

/// The entry for the last 8 bits of an address in a group, by the group's number.
///
/// # Safety
/// As [`entry`]; the first table has the number for this address.
#[inline(always)]
pub(super) unsafe fn in_group(lpm: *const rte_lpm, group: u32, address: u32) -> u32 {
    // SAFETY: the contract is the caller's. The second table has an entry for each 8 bits of the groups that
    // entries name; DPDK writes them atomically.
    unsafe {
        let groups = lpm.cast::<u8>().add(layout::LPM_TBL8).cast::<*const u32>().read();
        let start = group as usize * layout::LPM_GROUP_ENTRIES as usize;
        load(groups.add(start + (address & 0xff) as usize))
    }
}

/// The entry itself, or the one in the group that it names.
///
/// # Safety
/// As [`entry`]; the first table has the entry for this address.
#[inline(always)]
unsafe fn follow(lpm: *const rte_lpm, entry: u32, address: u32) -> u32 {
    if entry & layout::LPM_EXTENDED != layout::LPM_EXTENDED {
        return entry;
    }
    rare();
    // SAFETY: the contract is the caller's.
    unsafe { in_group(lpm, entry & VALUE, address) }
}

const _: () = {
    assert!(layout::LPM_TBL24_ENTRIES == 1 << 24 && layout::LPM_GROUP_ENTRIES == 1 << 8);
    // Next hops and flags share an entry; an entry that names a group is also marked as found.
    assert!(layout::LPM_EXTENDED & VALUE == 0 && layout::LPM_FOUND & layout::LPM_EXTENDED != 0);
};

/// Prefetches the first entry for an address.
///
/// # Safety
/// `lpm` is a table that lives.
#[inline(always)]
pub(crate) unsafe fn prefetch(lpm: *const rte_lpm, address: u32) {
    // SAFETY: the first table has an entry for each 24 bits.
    let entry = unsafe {
        let table = lpm.cast::<u8>().add(layout::LPM_TBL24).cast::<u32>();
        table.add((address >> 8) as usize)
    };
    super::prefetch::prefetch(entry.cast());
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

/// One lookup of `rte_lpm_lookup_bulk`: `missed` if there is no route.
///
/// # Safety
/// As [`entry`].
#[inline(always)]
pub(crate) unsafe fn lookup_or(lpm: *const rte_lpm, address: u32, missed: u32) -> u32 {
    // SAFETY: the contract is the caller's.
    next_hop(unsafe { entry(lpm, address) }, missed)
}

#[inline(always)]
pub(super) fn next_hop(entry: u32, missed: u32) -> u32 {
    if entry & layout::LPM_FOUND != 0 { entry & VALUE } else { missed }
}
