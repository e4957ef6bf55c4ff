// SPDX-License-Identifier: BSD-3-Clause
//! IPv6 routes (`rte_lpm6`).

use std::marker::PhantomData;
use std::net::Ipv6Addr;
use std::ptr::NonNull;

use dpdk_sys::{rte_lpm6, rte_lpm6_config};

use super::{LookupError, LpmConfig, LpmError, RouteError, check_places, check_route};
use crate::debug::impl_debug;
use crate::eal::Eal;
use crate::errno::Errno;

/// The largest next hop.
const MOST: u32 = (1 << 21) - 1;
const BITS: u8 = 128;

/// An address as in a packet.
type Address = [u8; 16];

/// A table of IPv6 routes. A lookup reads one entry, and one more for each further 8 bits of the
/// longest prefix after the first 24.
///
/// ```standalone_crate
/// use std::net::Ipv6Addr;
/// use dpdk::lpm::{Lpm6, LpmConfig};
///
/// # fn run(eal: &dpdk::Eal) -> Result<(), Box<dyn std::error::Error>> {
/// let mut routes = Lpm6::new(eal, &LpmConfig::named("routes"))?;
/// let prefix: Ipv6Addr = "2001:db8::".parse()?;
/// routes.add(prefix, 32, 7)?;
/// let mut hops = [0; 2];
/// routes.lookup_bulk(&[prefix.octets(), [0; 16]], &mut hops, u32::MAX)?;
/// assert_eq!(hops, [7, u32::MAX]);
/// # Ok(())
/// # }
/// # let (eal, _) = dpdk::Eal::init("doc --no-huge --no-pci --no-shconf --no-telemetry -m 256".split(' '))?;
/// # run(&eal)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Lpm6<'eal> {
    raw: NonNull<rte_lpm6>,
    eal: PhantomData<&'eal Eal>,
}

impl_debug!([] Lpm6<'_>);

// SAFETY: a table belongs to no thread; those of a process are listed under a lock of DPDK's.
unsafe impl Send for Lpm6<'_> {}
// SAFETY: through `&Lpm6` it is only read.
unsafe impl Sync for Lpm6<'_> {}

/// Addresses as C takes them; C only reads them. Releases before 24.11 take a pointer to non-const
/// bytes, later ones `struct rte_ipv6_addr` of 16 bytes.
#[inline]
fn raw<T>(addresses: &[Address]) -> *mut T {
    addresses.as_ptr().cast_mut().cast()
}

impl<'eal> Lpm6<'eal> {
    /// An empty table (`rte_lpm6_create`).
    ///
    /// # Errors
    /// See [`LpmError`].
    pub fn new(_eal: &'eal Eal, config: &LpmConfig) -> Result<Self, LpmError> {
        let (name, socket) = config.check(1 << 21)?;
        let limits =
            rte_lpm6_config { max_rules: config.max_routes, number_tbl8s: config.groups, flags: 0 };
        // SAFETY: EAL runs (there is an Eal), and the name is a C string, which DPDK copies.
        let made = unsafe { dpdk_sys::rte_lpm6_create(name.as_ptr(), socket, &raw const limits) };
        match NonNull::new(made) {
            Some(raw) => Ok(Self { raw, eal: PhantomData }),
            None => Err(LpmError::Refused { name: config.name.clone(), errno: Errno::last() }),
        }
    }

    /// Adds a route for the first `len` bits of `prefix` (the others are ignored), or changes its
    /// next hop (`rte_lpm6_add`).
    ///
    /// # Errors
    /// See [`RouteError`].
    pub fn add(&mut self, prefix: Ipv6Addr, len: u8, next_hop: u32) -> Result<(), RouteError> {
        check_route(len, BITS, next_hop, MOST)?;
        let prefix = [prefix.octets()];
        // SAFETY: the table is ours, exclusively; one address is read.
        let code =
            unsafe { dpdk_sys::rte_lpm6_add(self.raw.as_ptr(), raw(&prefix), len, next_hop) };
        if code < 0 { Err(RouteError::Full) } else { Ok(()) }
    }

    /// Removes a route (`rte_lpm6_delete`).
    ///
    /// # Errors
    /// See [`RouteError`].
    pub fn remove(&mut self, prefix: Ipv6Addr, len: u8) -> Result<(), RouteError> {
        check_route(len, BITS, 0, MOST)?;
        let prefix = [prefix.octets()];
        // SAFETY: as above.
        let code = unsafe { dpdk_sys::rte_lpm6_delete(self.raw.as_ptr(), raw(&prefix), len) };
        if code < 0 { Err(RouteError::Absent) } else { Ok(()) }
    }

    /// Removes all routes (`rte_lpm6_delete_all`).
    pub fn clear(&mut self) {
        // SAFETY: the table is ours, exclusively.
        unsafe { dpdk_sys::rte_lpm6_delete_all(self.raw.as_ptr()) };
    }

    /// The next hop of exactly this route (`rte_lpm6_is_rule_present`).
    #[must_use]
    pub fn route(&self, prefix: Ipv6Addr, len: u8) -> Option<u32> {
        check_route(len, BITS, 0, MOST).ok()?;
        let (prefix, mut next_hop) = ([prefix.octets()], 0);
        // SAFETY: the table is not changed while it is borrowed; one address is read.
        let found = unsafe {
            let table = self.raw.as_ptr();
            dpdk_sys::rte_lpm6_is_rule_present(table, raw(&prefix), len, &raw mut next_hop)
        };
        (found == 1).then_some(next_hop)
    }

    /// The next hop of the longest matching prefix (`rte_lpm6_lookup`).
    #[inline]
    #[must_use]
    pub fn lookup(&self, address: &Address) -> Option<u32> {
        let mut next_hop = 0;
        // SAFETY: the table is not changed while it is borrowed; one address is read.
        let code = unsafe {
            let address = raw(std::slice::from_ref(address));
            dpdk_sys::rte_lpm6_lookup(self.raw.as_ptr(), address, &raw mut next_hop)
        };
        (code == 0).then_some(next_hop)
    }

    /// Looks up several addresses (`rte_lpm6_lookup_bulk_func`): writes their next hops, or
    /// `missed` if there is no route.
    ///
    /// # Errors
    /// [`LookupError`] if `hops` is not as long as `addresses`.
    #[inline]
    pub fn lookup_bulk(
        &self,
        addresses: &[Address],
        hops: &mut [u32],
        missed: u32,
    ) -> Result<(), LookupError> {
        check_places(addresses.len(), hops.len())?;
        let Ok(n) = u32::try_from(addresses.len()) else {
            // More than C can count.
            for (hop, address) in hops.iter_mut().zip(addresses) {
                *hop = self.lookup(address).unwrap_or(missed);
            }
            return Ok(());
        };
        // SAFETY: as above; as many addresses are read, and numbers of 32 bits written, as are counted.
        unsafe {
            let hops = hops.as_mut_ptr().cast();
            dpdk_sys::rte_lpm6_lookup_bulk_func(self.raw.as_ptr(), raw(addresses), hops, n);
        }
        // C writes -1 if there is no route; next hops are smaller.
        for hop in hops {
            *hop = if *hop > MOST { missed } else { *hop };
        }
        Ok(())
    }
}

impl Drop for Lpm6<'_> {
    fn drop(&mut self) {
        // SAFETY: the table is ours.
        unsafe { dpdk_sys::rte_lpm6_free(self.raw.as_ptr()) };
    }
}
