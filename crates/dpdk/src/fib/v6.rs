// SPDX-License-Identifier: BSD-3-Clause
//! IPv6 forwarding tables (`rte_fib6`).

use std::ffi::CString;
use std::marker::PhantomData;
use std::net::Ipv6Addr;
use std::ptr::{self, NonNull};

use dpdk_sys::{rte_fib6, rte_fib6_conf, rte_rib6, rte_rib6_node};

use super::groups::Groups;
use super::{
    FibConfig, FibError, FibType, LookupError, NextHopSize, RouteError, check_route, spare,
};
use crate::debug::impl_debug;
use crate::eal::Eal;
use crate::errno::Errno;
use crate::lpm::check_places;

const BITS: u8 = 128;
/// The most addresses in one call of C, which counts them in an `int`.
const AT_ONCE: usize = 1 << 30;

/// An address as in a packet.
type Address = [u8; 16];

/// Addresses as C takes them; C only reads them. Releases before 24.11 take a pointer to non-const
/// bytes, later ones `struct rte_ipv6_addr` of 16 bytes.
#[inline]
fn raw<T>(addresses: &[Address]) -> *mut T {
    addresses.as_ptr().cast_mut().cast()
}

/// A forwarding table of IPv6 routes.
pub struct Fib6<'eal> {
    raw: NonNull<rte_fib6>,
    config: FibConfig,
    /// The largest next hop.
    most: u64,
    len: u32,
    max_groups: u32,
    groups: Groups,
    /// Routes were removed since DPDK began to count groups: its count may be wrong.
    removed: bool,
    /// The number of times that the table was rebuilt: part of the next table's name, which must be
    /// unique.
    remade: u32,
    eal: PhantomData<&'eal Eal>,
}

impl_debug!([] Fib6<'_>, fib => len: fib.len, config: fib.config);

// SAFETY: a table belongs to no thread; those of a process are listed under a lock of DPDK's.
unsafe impl Send for Fib6<'_> {}
// SAFETY: through `&Fib6` it is only read.
unsafe impl Sync for Fib6<'_> {}

impl<'eal> Fib6<'eal> {
    /// An empty table (`rte_fib6_create`).
    ///
    /// # Errors
    /// See [`FibError`].
    pub fn new(_eal: &'eal Eal, config: &FibConfig) -> Result<Self, FibError> {
        let (name, most, max_groups) = config.check()?;
        if matches!(config.kind, FibType::Table { next_hop: NextHopSize::One, .. }) {
            return Err(FibError::EntrySize { name: config.name.clone() });
        }
        Ok(Self {
            raw: create(&name, config)?,
            config: config.clone(),
            most,
            len: 0,
            max_groups,
            groups: Groups::default(),
            removed: false,
            remade: 0,
            eal: PhantomData,
        })
    }

    /// Adds a route for the first `len` bits of `prefix` (the others are ignored), or changes its
    /// next hop (`rte_fib6_add`).
    ///
    /// When routes are removed, DPDK's count of groups becomes wrong, until it reports a table as
    /// full that is not. In that case, and if a route and one inside it both end at the last of all
    /// addresses, all routes are put into a new table, which for a moment needs the memory of two.
    ///
    /// # Errors
    /// See [`RouteError`].
    pub fn add(&mut self, prefix: Ipv6Addr, len: u8, next_hop: u64) -> Result<(), RouteError> {
        check_route(len, BITS, next_hop, self.most)?;
        let prefix = mask(prefix, len);
        let new = self.exact(prefix, len).is_none();
        if new
            && (self.len == self.config.max_routes
                || !self.groups.fits(prefix, len, self.max_groups))
        {
            return Err(RouteError::Full);
        }
        if self.runs_over(prefix, len) {
            self.make_anew(prefix, len, Some(next_hop))?;
        } else if let Err(full) = tell(self.raw, prefix, len, next_hop) {
            if !std::mem::take(&mut self.removed) {
                return Err(full);
            }
            self.make_anew(prefix, len, Some(next_hop))?;
        }
        if new {
            self.groups.add(prefix, len);
            self.len += 1;
        }
        Ok(())
    }

    /// Removes a route (`rte_fib6_delete`).
    ///
    /// # Errors
    /// See [`RouteError`].
    pub fn remove(&mut self, prefix: Ipv6Addr, len: u8) -> Result<(), RouteError> {
        check_route(len, BITS, 0, self.most)?;
        let prefix = mask(prefix, len);
        self.exact(prefix, len).ok_or(RouteError::Absent)?;
        let address = [prefix.to_be_bytes()];
        // SAFETY: the table is ours, exclusively; one address is read.
        let remove = || unsafe { dpdk_sys::rte_fib6_delete(self.raw.as_ptr(), raw(&address), len) };
        if self.runs_over(prefix, len) || remove() < 0 {
            self.make_anew(prefix, len, None)?;
        }
        self.groups.remove(prefix, len);
        self.len -= 1;
        self.removed = true;
        Ok(())
    }

    /// Returns true if DPDK could write the whole table when this route changes: its arithmetic
    /// overflows if a longer route ends, like this one, at the last of all addresses, and begins at
    /// the end of another.
    fn runs_over(&self, prefix: u128, len: u8) -> bool {
        let last = |len| mask(Ipv6Addr::from(u128::MAX), len);
        prefix == last(len) && (len + 1..=BITS).any(|len| self.exact(last(len), len).is_some())
    }

    /// Puts all routes into a new table, this one with another next hop or not at all. The shortest
    /// are added first: no route then has another one inside when it is added, so DPDK counts at
    /// least the groups that are needed.
    fn make_anew(&mut self, prefix: u128, len: u8, hop: Option<u64>) -> Result<(), RouteError> {
        let changed = (Ipv6Addr::from(prefix), len);
        let mut routes: Vec<_> =
            self.routes().filter(|(prefix, len, _)| (*prefix, *len) != changed).collect();
        routes.extend(hop.map(|hop| (changed.0, len, hop)));
        routes.sort_unstable_by_key(|(_, len, _)| *len);
        let remade = self.remade.wrapping_add(1);
        let name = format!("{}~{:x}", self.config.name, remade & 0xff);
        // The name was checked when the table was made: an error can only mean memory.
        let name = CString::new(name).map_err(|_| RouteError::Memory)?;
        let new = create(&name, &self.config).map_err(|_| RouteError::Memory)?;
        let told = routes
            .into_iter()
            .try_for_each(|(prefix, len, hop)| tell(new, u128::from(prefix), len, hop));
        // SAFETY: one of the two tables is not used any more.
        unsafe {
            let unused = if told.is_ok() { std::mem::replace(&mut self.raw, new) } else { new };
            dpdk_sys::rte_fib6_free(unused.as_ptr());
        }
        told?;
        self.remade = remade;
        Ok(())
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

    /// The next hop of exactly this route (`rte_fib6_get_rib`).
    #[must_use]
    pub fn route(&self, prefix: Ipv6Addr, len: u8) -> Option<u64> {
        check_route(len, BITS, 0, self.most).ok()?;
        self.exact(mask(prefix, len), len).map(next_hop)
    }

    /// All routes, in no order: prefix, its length, next hop (`rte_rib6_get_nxt`).
    #[must_use]
    pub fn routes(&self) -> Routes6<'_> {
        Routes6 { rib: self.rib(), last: ptr::null_mut(), table: PhantomData }
    }

    fn rib(&self) -> *mut rte_rib6 {
        // SAFETY: reads a field of the table.
        unsafe { dpdk_sys::rte_fib6_get_rib(self.raw.as_ptr()) }
    }

    fn exact(&self, prefix: u128, len: u8) -> Option<NonNull<rte_rib6_node>> {
        let address = [prefix.to_be_bytes()];
        // SAFETY: the tree is not changed while the table is borrowed; one address is read.
        NonNull::new(unsafe { dpdk_sys::rte_rib6_lookup_exact(self.rib(), raw(&address), len) })
    }

    /// The next hop of the longest matching prefix, or the default one.
    #[inline]
    #[must_use]
    pub fn lookup(&self, address: &Address) -> u64 {
        let mut hop = 0;
        // SAFETY: the table is not changed while it is borrowed; one address is read, one number written.
        unsafe {
            let address = raw(std::slice::from_ref(address));
            dpdk_sys::rte_fib6_lookup_bulk(self.raw.as_ptr(), address, &raw mut hop, 1);
        }
        hop
    }

    /// Looks up several addresses (`rte_fib6_lookup_bulk`): writes their next hops, or the default
    /// one.
    ///
    /// # Errors
    /// [`LookupError`] if `hops` is not as long as `addresses`.
    #[inline]
    pub fn lookup_bulk(&self, addresses: &[Address], hops: &mut [u64]) -> Result<(), LookupError> {
        check_places(addresses.len(), hops.len())?;
        for (addresses, hops) in addresses.chunks(AT_ONCE).zip(hops.chunks_mut(AT_ONCE)) {
            // SAFETY: the table is not changed while it is borrowed; C reads this many addresses,
            // which it does not change, and writes this many numbers.
            unsafe {
                let (n, hops) = (addresses.len() as i32, hops.as_mut_ptr());
                dpdk_sys::rte_fib6_lookup_bulk(self.raw.as_ptr(), raw(addresses), hops, n);
            }
        }
        Ok(())
    }
}

impl Drop for Fib6<'_> {
    fn drop(&mut self) {
        // SAFETY: the table is ours, and nobody looks up any more.
        unsafe { dpdk_sys::rte_fib6_free(self.raw.as_ptr()) };
    }
}

/// Creates a DPDK table from a checked configuration; the caller owns it.
fn create(name: &CString, config: &FibConfig) -> Result<NonNull<rte_fib6>, FibError> {
    // SAFETY: plain numbers, for which all zeroes are valid.
    let mut limits: rte_fib6_conf = unsafe { std::mem::zeroed() };
    limits.default_nh = config.default_next_hop;
    limits.max_routes = config.max_routes as i32; // 2^28 at most
    match config.kind {
        FibType::Dummy => limits.type_ = dpdk_sys::RTE_FIB6_DUMMY,
        FibType::Table { next_hop, groups } => {
            limits.type_ = dpdk_sys::RTE_FIB6_TRIE;
            // SAFETY: the union's only member.
            let table = unsafe { &mut limits.__bindgen_anon_1.trie };
            table.nh_sz = next_hop.code();
            table.num_tbl8 = groups + spare(next_hop);
        }
    }
    let socket = config.socket()?;
    // SAFETY: EAL runs (the caller has an Eal), and the name is a C string, which DPDK copies.
    let made = unsafe { dpdk_sys::rte_fib6_create(name.as_ptr(), socket, &raw mut limits) };
    NonNull::new(made)
        .ok_or_else(|| FibError::Refused { name: config.name.clone(), errno: Errno::last() })
}

fn tell(fib: NonNull<rte_fib6>, prefix: u128, len: u8, next_hop: u64) -> Result<(), RouteError> {
    let address = [prefix.to_be_bytes()];
    // SAFETY: the table is the caller's, exclusively; one address is read.
    let code = unsafe { dpdk_sys::rte_fib6_add(fib.as_ptr(), raw(&address), len, next_hop) };
    if code < 0 { Err(RouteError::Full) } else { Ok(()) }
}

/// Returns the first `len` bits, at least one.
fn mask(prefix: Ipv6Addr, len: u8) -> u128 {
    u128::from(prefix) >> (BITS - len) << (BITS - len)
}

fn next_hop(node: NonNull<rte_rib6_node>) -> u64 {
    let mut hop = 0;
    // SAFETY: a node of a tree that is borrowed.
    unsafe { dpdk_sys::rte_rib6_get_nh(node.as_ptr(), &raw mut hop) };
    hop
}

/// Routes of a [`Fib6`]: prefix, its length, next hop.
pub struct Routes6<'t> {
    rib: *mut rte_rib6,
    last: *mut rte_rib6_node,
    table: PhantomData<&'t rte_rib6>,
}

impl_debug!([] Routes6<'_>);

impl Iterator for Routes6<'_> {
    type Item = (Ipv6Addr, u8, u64);

    fn next(&mut self) -> Option<Self::Item> {
        let (mut prefix, mut len): (Address, u8) = ([0; 16], 0);
        // SAFETY: the tree is not changed while the table is borrowed, and `last` is null or a node of it; an address
        // is read, and one written.
        let node = unsafe {
            let (from, all) = ([[0; 16]], 0); // RTE_RIB6_GET_NXT_ALL
            let node = dpdk_sys::rte_rib6_get_nxt(self.rib, raw(&from), 0, self.last, all);
            let node = NonNull::new(node)?;
            dpdk_sys::rte_rib6_get_ip(node.as_ptr(), (&raw mut prefix).cast());
            dpdk_sys::rte_rib6_get_depth(node.as_ptr(), &raw mut len);
            node
        };
        self.last = node.as_ptr();
        Some((prefix.into(), len, next_hop(node)))
    }
}
