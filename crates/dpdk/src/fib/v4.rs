// SPDX-License-Identifier: BSD-3-Clause
//! IPv4 forwarding tables (`rte_fib`).

use std::marker::PhantomData;
use std::net::Ipv4Addr;
use std::ptr::{self, NonNull};

use dpdk_sys::{rte_fib, rte_fib_conf, rte_rib, rte_rib_node};

use super::groups::Groups;
use super::{FibConfig, FibError, FibType, LookupError, RouteError, check_route, spare};
use crate::debug::impl_debug;
use crate::eal::Eal;
use crate::errno::Errno;
use crate::lpm::check_places;

const BITS: u8 = 32;
/// The most addresses in one call of C, which counts them in an `int`.
const AT_ONCE: usize = 1 << 30;

/// A forwarding table of IPv4 routes.
pub struct Fib<'eal> {
    raw: NonNull<rte_fib>,
    /// The largest next hop.
    most: u64,
    max_routes: u32,
    len: u32,
    max_groups: u32,
    groups: Groups,
    eal: PhantomData<&'eal Eal>,
}

impl_debug!([] Fib<'_>, fib => len: fib.len, max_routes: fib.max_routes);

// SAFETY: a table belongs to no thread; those of a process are listed under a lock of DPDK's.
unsafe impl Send for Fib<'_> {}
// SAFETY: through `&Fib` it is only read.
unsafe impl Sync for Fib<'_> {}

impl<'eal> Fib<'eal> {
    /// An empty table (`rte_fib_create`).
    ///
    /// # Errors
    /// See [`FibError`].
    pub fn new(_eal: &'eal Eal, config: &FibConfig) -> Result<Self, FibError> {
        let (name, most, max_groups) = config.check()?;
        // SAFETY: plain numbers, for which all zeroes are valid.
        let mut limits: rte_fib_conf = unsafe { std::mem::zeroed() };
        limits.default_nh = config.default_next_hop;
        limits.max_routes = config.max_routes as i32; // 2^28 at most
        match config.kind {
            FibType::Dummy => limits.type_ = dpdk_sys::RTE_FIB_DUMMY,
            FibType::Table { next_hop, groups } => {
                limits.type_ = dpdk_sys::RTE_FIB_DIR24_8;
                // SAFETY: the union's only member.
                let table = unsafe { &mut limits.__bindgen_anon_1.dir24_8 };
                table.nh_sz = next_hop.code();
                table.num_tbl8 = groups + spare(next_hop);
            }
        }
        let socket = config.socket()?;
        // SAFETY: EAL runs (there is an Eal), and the name is a C string, which DPDK copies.
        let made = unsafe { dpdk_sys::rte_fib_create(name.as_ptr(), socket, &raw mut limits) };
        match NonNull::new(made) {
            Some(raw) => Ok(Self {
                raw,
                most,
                max_routes: config.max_routes,
                len: 0,
                max_groups,
                groups: Groups::default(),
                eal: PhantomData,
            }),
            None => Err(FibError::Refused { name: config.name.clone(), errno: Errno::last() }),
        }
    }

    /// Adds a route for the first `len` bits of `prefix` (the others are ignored), or changes its
    /// next hop (`rte_fib_add`).
    ///
    /// # Errors
    /// See [`RouteError`].
    pub fn add(&mut self, prefix: Ipv4Addr, len: u8, next_hop: u64) -> Result<(), RouteError> {
        check_route(len, BITS, next_hop, self.most)?;
        let prefix = mask(prefix, len);
        let wide = u128::from(prefix) << 96;
        let new = self.exact(prefix, len).is_none();
        if new && (self.len == self.max_routes || !self.groups.fits(wide, len, self.max_groups)) {
            return Err(RouteError::Full);
        }
        self.alone_at_the_end(prefix, len, |fib| fib.put(prefix, len, next_hop))?;
        if new {
            self.groups.add(wide, len);
            self.len += 1;
        }
        Ok(())
    }

    /// Removes a route (`rte_fib_delete`).
    ///
    /// # Errors
    /// See [`RouteError`].
    pub fn remove(&mut self, prefix: Ipv4Addr, len: u8) -> Result<(), RouteError> {
        check_route(len, BITS, 0, self.most)?;
        let prefix = mask(prefix, len);
        self.exact(prefix, len).ok_or(RouteError::Absent)?;
        self.alone_at_the_end(prefix, len, |fib| fib.take(prefix, len))?;
        self.groups.remove(u128::from(prefix) << 96, len);
        self.len -= 1;
        Ok(())
    }

    /// Changes a route. Longer routes that also end at the last of all addresses are removed
    /// meanwhile and added again afterwards: if one of them begins at the end of another, DPDK's
    /// arithmetic overflows, and it writes the whole table.
    fn alone_at_the_end(
        &mut self,
        prefix: u32,
        len: u8,
        change: impl FnOnce(&mut Self) -> Result<(), RouteError>,
    ) -> Result<(), RouteError> {
        let last = |len| mask(Ipv4Addr::BROADCAST, len);
        if prefix != last(len) {
            return change(self);
        }
        let longer = (len + 1..=BITS)
            .filter_map(|len| Some((len, next_hop(self.exact(last(len), len)?))))
            .collect::<Vec<_>>();
        for (len, _) in longer.iter().rev() {
            self.take(last(*len), *len)?;
        }
        let changed = change(self);
        for (len, next_hop) in longer {
            self.put(last(len), len, next_hop)?;
        }
        changed
    }

    fn put(&mut self, prefix: u32, len: u8, next_hop: u64) -> Result<(), RouteError> {
        if len > 24
            && self.exact(prefix, len).is_none()
            && self.around(prefix, len) == Some(next_hop)
        {
            // DPDK does not count the group of a route that changes nothing, but would give it back.
            self.tell(prefix, len, next_hop ^ 1)?;
        }
        self.tell(prefix, len, next_hop)
    }

    fn tell(&mut self, prefix: u32, len: u8, next_hop: u64) -> Result<(), RouteError> {
        // SAFETY: the table is ours, exclusively.
        let code = unsafe { dpdk_sys::rte_fib_add(self.raw.as_ptr(), prefix, len, next_hop) };
        if code < 0 { Err(RouteError::Full) } else { Ok(()) }
    }

    fn take(&mut self, prefix: u32, len: u8) -> Result<(), RouteError> {
        // SAFETY: the table is ours, exclusively.
        let code = unsafe { dpdk_sys::rte_fib_delete(self.raw.as_ptr(), prefix, len) };
        if code < 0 { Err(RouteError::Full) } else { Ok(()) }
    }

    /// The number of routes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Returns true if it is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The next hop of exactly this route (`rte_fib_get_rib`).
    #[must_use]
    pub fn route(&self, prefix: Ipv4Addr, len: u8) -> Option<u64> {
        check_route(len, BITS, 0, self.most).ok()?;
        self.exact(mask(prefix, len), len).map(next_hop)
    }

    /// All routes, in no order: prefix, its length, next hop (`rte_rib_get_nxt`).
    #[must_use]
    pub fn routes(&self) -> Routes<'_> {
        Routes { rib: self.rib(), last: ptr::null_mut(), table: PhantomData }
    }

    fn rib(&self) -> *mut rte_rib {
        // SAFETY: reads a field of the table.
        unsafe { dpdk_sys::rte_fib_get_rib(self.raw.as_ptr()) }
    }

    fn exact(&self, prefix: u32, len: u8) -> Option<NonNull<rte_rib_node>> {
        // SAFETY: the tree is not changed while the table is borrowed.
        NonNull::new(unsafe { dpdk_sys::rte_rib_lookup_exact(self.rib(), prefix, len) })
    }

    /// Returns the next hop of the longest route that contains a prefix without a route.
    fn around(&self, prefix: u32, len: u8) -> Option<u64> {
        (1..len).rev().find_map(|len| self.exact(mask(prefix.into(), len), len)).map(next_hop)
    }

    /// The next hop of the longest matching prefix, or the default one.
    #[inline]
    #[must_use]
    pub fn lookup(&self, address: u32) -> u64 {
        let mut hop = 0;
        // SAFETY: the table is not changed while it is borrowed; one address is read, one number written.
        unsafe {
            let address = (&raw const address).cast_mut();
            dpdk_sys::rte_fib_lookup_bulk(self.raw.as_ptr(), address, &raw mut hop, 1);
        }
        hop
    }

    /// Looks up several addresses (`rte_fib_lookup_bulk`): writes their next hops, or the default
    /// one.
    ///
    /// # Errors
    /// [`LookupError`] if `hops` is not as long as `addresses`.
    #[inline]
    pub fn lookup_bulk(&self, addresses: &[u32], hops: &mut [u64]) -> Result<(), LookupError> {
        check_places(addresses.len(), hops.len())?;
        for (addresses, hops) in addresses.chunks(AT_ONCE).zip(hops.chunks_mut(AT_ONCE)) {
            // SAFETY: the table is not changed while it is borrowed; C reads this many addresses,
            // which it does not change, and writes this many numbers.
            unsafe {
                let (n, from) = (addresses.len() as i32, addresses.as_ptr().cast_mut());
                dpdk_sys::rte_fib_lookup_bulk(self.raw.as_ptr(), from, hops.as_mut_ptr(), n);
            }
        }
        Ok(())
    }
}

impl Drop for Fib<'_> {
    fn drop(&mut self) {
        // SAFETY: the table is ours, and nobody looks up any more.
        unsafe { dpdk_sys::rte_fib_free(self.raw.as_ptr()) };
    }
}

/// Returns the first `len` bits, at least one.
fn mask(prefix: Ipv4Addr, len: u8) -> u32 {
    u32::from(prefix) >> (BITS - len) << (BITS - len)
}

fn next_hop(node: NonNull<rte_rib_node>) -> u64 {
    let mut hop = 0;
    // SAFETY: a node of a tree that is borrowed.
    unsafe { dpdk_sys::rte_rib_get_nh(node.as_ptr(), &raw mut hop) };
    hop
}

/// Routes of a [`Fib`]: prefix, its length, next hop.
pub struct Routes<'t> {
    rib: *mut rte_rib,
    last: *mut rte_rib_node,
    table: PhantomData<&'t rte_rib>,
}

impl_debug!([] Routes<'_>);

impl Iterator for Routes<'_> {
    type Item = (Ipv4Addr, u8, u64);

    fn next(&mut self) -> Option<Self::Item> {
        let (mut prefix, mut len) = (0_u32, 0);
        // SAFETY: the tree is not changed while the table is borrowed, and `last` is null or a node of it.
        let node = unsafe {
            let all = 0; // RTE_RIB_GET_NXT_ALL
            let node = NonNull::new(dpdk_sys::rte_rib_get_nxt(self.rib, 0, 0, self.last, all))?;
            dpdk_sys::rte_rib_get_ip(node.as_ptr(), &raw mut prefix);
            dpdk_sys::rte_rib_get_depth(node.as_ptr(), &raw mut len);
            node
        };
        self.last = node.as_ptr();
        Some((prefix.into(), len, next_hop(node)))
    }
}
