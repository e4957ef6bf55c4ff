// SPDX-License-Identifier: BSD-3-Clause
//! `rte_lpm_lookup_bulk` and `rte_lpm_lookupx4`.

use dpdk_sys::rte_lpm;

use super::lpm::lookup_or;

/// Addresses in a row: as many groups of four as the compiler unrolls.
const ROW: usize = 16;

/// `rte_lpm_lookup_bulk`: a next hop for each address, `missed` if there is no route.
///
/// # Safety
/// As [`super::lpm::lookup`].
#[inline(always)]
pub(crate) unsafe fn lookup_bulk(
    lpm: *const rte_lpm,
    addresses: &[u32],
    hops: &mut [u32],
    missed: u32,
) {
    let (mut rows, mut of) = (hops.chunks_exact_mut(ROW), addresses.chunks_exact(ROW));
    for (hops, addresses) in rows.by_ref().zip(of.by_ref()) {
        let (Ok(hops), Ok(addresses)) = (hops.try_into(), addresses.try_into()) else { continue };
        // SAFETY: the contract is the caller's.
        unsafe { lookup_row::<ROW>(lpm, addresses, hops, missed) };
    }
    // SAFETY: the contract is the caller's.
    unsafe { one_by_one(lpm, of.remainder(), rows.into_remainder(), missed) };
}

/// Looks up all addresses, a multiple of four (`rte_lpm_lookupx4`).
///
/// # Safety
/// As [`super::lpm::lookup`].
#[inline(always)]
pub(crate) unsafe fn lookup_row<const N: usize>(
    lpm: *const rte_lpm,
    addresses: &[u32; N],
    hops: &mut [u32; N],
    missed: u32,
) {
    // SAFETY: the contract is the caller's.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        super::lpm_x86::lookup_row(lpm, addresses, hops, missed);
    }
    // SAFETY: the contract is the caller's.
    #[cfg(not(target_arch = "x86_64"))]
    unsafe {
        one_by_one(lpm, addresses, hops, missed);
    }
}

/// # Safety
/// As [`super::lpm::lookup`].
#[inline(always)]
unsafe fn one_by_one(lpm: *const rte_lpm, addresses: &[u32], hops: &mut [u32], missed: u32) {
    for (hop, address) in hops.iter_mut().zip(addresses) {
        // SAFETY: the contract is the caller's.
        *hop = unsafe { lookup_or(lpm, *address, missed) };
    }
}
