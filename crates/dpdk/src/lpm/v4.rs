// SPDX-License-Identifier: BSD-3-Clause
//! IPv4 routes (`rte_lpm`).

use std::marker::PhantomData;
use std::net::Ipv4Addr;
use std::ptr::NonNull;

use dpdk_sys::{rte_lpm, rte_lpm_config};

use super::{LookupError, LpmConfig, LpmError, RouteError, check_places, check_route};
use crate::debug::impl_debug;
use crate::eal::Eal;
use crate::errno::Errno;
use crate::fast;

/// The largest next hop.
const MOST: u32 = (1 << 24) - 1;
const BITS: u8 = 32;

/// A table of IPv4 routes. A lookup reads one entry, and for prefixes of more than 24 bits a second
/// one.
pub struct Lpm<'eal> {
    raw: NonNull<rte_lpm>,
    name: String,
    eal: PhantomData<&'eal Eal>,
}

impl_debug!([] Lpm<'_>, lpm => name: lpm.name);

// SAFETY: a table belongs to no thread; those of a process are listed under a lock of DPDK's.
unsafe impl Send for Lpm<'_> {}
// SAFETY: through `&Lpm` it is only read.
unsafe impl Sync for Lpm<'_> {}

impl<'eal> Lpm<'eal> {
    /// An empty table (`rte_lpm_create`).
    ///
    /// # Errors
    /// See [`LpmError`].
    pub fn new(_eal: &'eal Eal, config: &LpmConfig) -> Result<Self, LpmError> {
        let (name, socket) = config.check((1 << 22) - 1)?;
        let limits =
            rte_lpm_config { max_rules: config.max_routes, number_tbl8s: config.groups, flags: 0 };
        // SAFETY: EAL runs (there is an Eal), and the name is a C string, which DPDK copies.
        let made = unsafe { dpdk_sys::rte_lpm_create(name.as_ptr(), socket, &raw const limits) };
        let name = config.name.clone();
        match NonNull::new(made) {
            Some(raw) => Ok(Self { raw, name, eal: PhantomData }),
            None => Err(LpmError::Refused { name, errno: Errno::last() }),
        }
    }

    /// Adds a route for the first `len` bits of `prefix` (the others are ignored), or changes its
    /// next hop (`rte_lpm_add`).
    ///
    /// # Errors
    /// See [`RouteError`].
    pub fn add(&mut self, prefix: Ipv4Addr, len: u8, next_hop: u32) -> Result<(), RouteError> {
        check_route(len, BITS, next_hop, MOST)?;
        // SAFETY: the table is ours, exclusively or as its one writer.
        let code = unsafe { dpdk_sys::rte_lpm_add(self.as_ptr(), prefix.into(), len, next_hop) };
        if code < 0 { Err(RouteError::Full) } else { Ok(()) }
    }

    /// Removes a route (`rte_lpm_delete`).
    ///
    /// # Errors
    /// See [`RouteError`].
    pub fn remove(&mut self, prefix: Ipv4Addr, len: u8) -> Result<(), RouteError> {
        check_route(len, BITS, 0, MOST)?;
        self.route(prefix, len).ok_or(RouteError::Absent)?;
        // SAFETY: as above.
        let code = unsafe { dpdk_sys::rte_lpm_delete(self.as_ptr(), prefix.into(), len) };
        if code < 0 { Err(RouteError::Full) } else { Ok(()) }
    }

    /// Removes all routes (`rte_lpm_delete_all`).
    pub fn clear(&mut self) {
        // SAFETY: the table is ours, exclusively: a writer of a shared one cannot reach this.
        unsafe { dpdk_sys::rte_lpm_delete_all(self.as_ptr()) };
    }

    /// The next hop of exactly this route (`rte_lpm_is_rule_present`).
    #[must_use]
    pub fn route(&self, prefix: Ipv4Addr, len: u8) -> Option<u32> {
        check_route(len, BITS, 0, MOST).ok()?;
        let mut next_hop = 0;
        // SAFETY: reads the list of routes, which only changes through `&mut`.
        let found = unsafe {
            dpdk_sys::rte_lpm_is_rule_present(self.as_ptr(), prefix.into(), len, &raw mut next_hop)
        };
        (found == 1).then_some(next_hop)
    }

    /// Returns the part that lookups need.
    #[inline]
    #[must_use]
    pub fn lookups(&self) -> Lookups<'_> {
        // SAFETY: the table lives and is not changed while it is borrowed.
        unsafe { Lookups::new(self.raw) }
    }

    /// See [`Lookups::lookup`] (`rte_lpm_lookup`).
    #[inline]
    #[must_use]
    pub fn lookup(&self, address: u32) -> Option<u32> {
        self.lookups().lookup(address)
    }

    /// See [`Lookups::lookup_bulk`] (`rte_lpm_lookup_bulk`).
    ///
    /// # Errors
    /// As for [`Lookups::lookup_bulk`].
    #[inline]
    pub fn lookup_bulk(
        &self,
        addresses: &[u32],
        hops: &mut [u32],
        missed: u32,
    ) -> Result<(), LookupError> {
        self.lookups().lookup_bulk(addresses, hops, missed)
    }

    pub(super) fn as_ptr(&self) -> *mut rte_lpm {
        self.raw.as_ptr()
    }

    pub(super) fn raw(&self) -> NonNull<rte_lpm> {
        self.raw
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for Lpm<'_> {
    fn drop(&mut self) {
        // SAFETY: the table is ours, and nobody looks up any more.
        unsafe { dpdk_sys::rte_lpm_free(self.as_ptr()) };
    }
}

/// The lookups of an IPv4 table, which they borrow. Cheap to copy.
#[derive(Clone, Copy)]
pub struct Lookups<'t> {
    raw: NonNull<rte_lpm>,
    table: PhantomData<&'t rte_lpm>,
}

impl_debug!([] Lookups<'_>);

// SAFETY: it only reads data that others write atomically.
unsafe impl Send for Lookups<'_> {}
// SAFETY: as above.
unsafe impl Sync for Lookups<'_> {}

impl Lookups<'_> {
    /// # Safety
    /// For the lifetime the table lives. Either nobody changes it, or one writer does, by functions
    /// that reuse a group only after that time.
    #[inline]
    pub(super) unsafe fn new(raw: NonNull<rte_lpm>) -> Self {
        Self { raw, table: PhantomData }
    }

    /// The next hop of the longest matching prefix (`rte_lpm_lookup`).
    #[inline]
    #[must_use]
    pub fn lookup(&self, address: u32) -> Option<u32> {
        // SAFETY: see `new`.
        unsafe { fast::lpm::lookup(self.raw.as_ptr(), address) }
    }

    /// Prefetches the memory that a lookup of this address reads first. Useful for a table that
    /// does not fit into the cache. Does nothing on processors other than x86_64 and aarch64.
    #[inline(always)]
    pub fn prefetch(&self, address: u32) {
        // SAFETY: see `new`.
        unsafe { fast::lpm::prefetch(self.raw.as_ptr(), address) };
    }

    /// Looks up several addresses (`rte_lpm_lookup_bulk`): writes their next hops, or `missed` if
    /// there is no route.
    ///
    /// # Errors
    /// [`LookupError`] if `hops` is not as long as `addresses`.
    #[inline]
    pub fn lookup_bulk(
        &self,
        addresses: &[u32],
        hops: &mut [u32],
        missed: u32,
    ) -> Result<(), LookupError> {
        check_places(addresses.len(), hops.len())?;
        // SAFETY: see `new`; as many places as addresses.
        unsafe { fast::lpm_bulk::lookup_bulk(self.raw.as_ptr(), addresses, hops, missed) };
        Ok(())
    }

    /// Looks up four addresses (`rte_lpm_lookupx4`): returns their next hops, or `missed` if there
    /// is no route.
    #[inline]
    #[must_use]
    pub fn lookup_x4(&self, addresses: [u32; 4], missed: u32) -> [u32; 4] {
        let mut hops = [0; 4];
        // SAFETY: see `new`.
        unsafe { fast::lpm_bulk::lookup_row(self.raw.as_ptr(), &addresses, &mut hops, missed) };
        hops
    }
}
