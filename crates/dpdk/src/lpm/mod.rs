// SPDX-License-Identifier: BSD-3-Clause
//! Longest-prefix match: routes from address prefixes to next hops (`librte_lpm`).
//!
//! # Lifecycle
//! [`Lpm`] holds IPv4 routes, [`Lpm6`] IPv6 routes. Both have limits that are set when they are
//! made, and free their memory and name when they are dropped.
//!
//! # Threads
//! Any number of threads look up at once. Routes are changed through `&mut`, so not meanwhile,
//! except in an IPv4 table that was [shared](Lpm::share): one [`LpmWriter`] changes it while
//! [`LpmReader`]s look up. [`Replaceable`](crate::qsbr::Replaceable) exchanges any table as a whole
//! while it is read.
//!
//! # Byte order
//! IPv4 addresses to look up are numbers in host byte order (`u32::from_be_bytes` of the bytes in a
//! packet, `u32::from` of an `Ipv4Addr`); IPv6 addresses are bytes as in a packet.
//!
//! # Next hops
//! Numbers of 24 bits for IPv4, 21 bits for IPv6. Lookups of several addresses write a number that
//! the caller chooses if there is no route: choose one that is no next hop, such as `u32::MAX`.
//!
//! ```standalone_crate
//! use std::net::Ipv4Addr;
//! use dpdk::lpm::{Lpm, LpmConfig};
//!
//! # fn run(eal: &dpdk::Eal) -> Result<(), Box<dyn std::error::Error>> {
//! let mut routes = Lpm::new(eal, &LpmConfig::named("routes"))?;
//! routes.add(Ipv4Addr::new(10, 0, 0, 0), 8, 1)?;
//! routes.add(Ipv4Addr::new(10, 1, 0, 0), 16, 2)?;
//! assert_eq!(routes.lookup(Ipv4Addr::new(10, 1, 2, 3).into()), Some(2));
//! let mut hops = [0; 2];
//! routes.lookup_bulk(&[0x0a02_0304, 0x0b00_0001], &mut hops, u32::MAX)?;
//! assert_eq!(hops, [1, u32::MAX]);
//! # Ok(())
//! # }
//! # let (eal, _) = dpdk::Eal::init("doc --no-huge --no-pci --no-shconf --no-telemetry -m 256".split(' '))?;
//! # run(&eal)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod error;
mod shared;
mod v4;
mod v6;

use std::ffi::CString;

use crate::names::{c_name, unique};
use crate::numa::socket_id;

pub use error::{LookupError, LpmError, RouteError};
pub use shared::{LpmReader, LpmWriter, SharedLpm};
pub use v4::{Lookups, Lpm};
pub use v6::Lpm6;

/// Parameters of a table.
#[derive(Clone, Debug)]
pub struct LpmConfig {
    /// Unique in the process among tables for IPv4, or for IPv6; at most 31 bytes.
    pub name: String,
    /// The most routes; 2^28 at most.
    pub max_routes: u32,
    /// Groups of 256 entries that all routes together may need: for IPv4 one for each 24-bit prefix
    /// that contains longer routes, for IPv6 one for each further 8 bits of a prefix after the
    /// first 24 that are not shared with another. Less than 2^22 for IPv4, at most 2^21 for IPv6.
    pub groups: u32,
    /// NUMA node; `None` for any.
    pub socket: Option<u32>,
}

impl LpmConfig {
    /// 1024 routes and 256 groups on any NUMA node, as in DPDK's `l3fwd`.
    #[must_use]
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: name.into(), max_routes: 1024, groups: 256, socket: None }
    }

    /// [`named`](Self::named), with a number behind the name: an old and a new table live side by side.
    #[must_use]
    pub fn unique(name: impl Into<String>) -> Self {
        Self::named(unique(name))
    }

    /// The name for C and the socket's number, if all is within the limits. DPDK's own arithmetic
    /// overflows for larger tables.
    fn check(&self, most_groups: u32) -> Result<(CString, i32), LpmError> {
        const NAME: usize = 31; // RTE_LPM_NAMESIZE, RTE_LPM6_NAMESIZE
        const ROUTES: u32 = 1 << 28;
        let name = c_name(&self.name, NAME, |name, most| LpmError::Name { name, most })?;
        let limit = |what, given, most| {
            if (1..=most).contains(&given) {
                return Ok(());
            }
            Err(LpmError::Limit { name: self.name.clone(), what, given, most })
        };
        limit("routes", self.max_routes, ROUTES)?;
        limit("groups", self.groups, most_groups)?;
        let socket = socket_id(self.socket)
            .map_err(|node| LpmError::Node { name: self.name.clone(), node })?;
        Ok((name, socket))
    }
}

/// Converts a prefix and a next hop for C, if they are valid.
fn check_route(len: u8, bits: u8, next_hop: u32, most: u32) -> Result<(), RouteError> {
    if !(1..=bits).contains(&len) {
        return Err(RouteError::Length { given: len, bits });
    }
    if next_hop > most {
        return Err(RouteError::NextHop { given: next_hop, most });
    }
    Ok(())
}

/// Checks that `hops` is as long as `addresses`.
pub(crate) fn check_places(addresses: usize, hops: usize) -> Result<(), LookupError> {
    if addresses == hops { Ok(()) } else { Err(LookupError { addresses, hops }) }
}
