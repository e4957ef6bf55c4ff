// SPDX-License-Identifier: BSD-3-Clause
//! Forwarding tables of routes (`librte_fib`). Compared with [`lpm`](crate::lpm): routes can be
//! listed, next hops have up to 63 bits, lookups use vector instructions, and routes are added and
//! removed faster.
//!
//! # Lifecycle
//! [`Fib`] holds IPv4 routes, [`Fib6`] IPv6 routes. Both have limits that are set when they are
//! made, and free their memory and name when they are dropped.
//!
//! # Threads
//! Any number of threads look up at once. Routes are changed through `&mut`, so not meanwhile;
//! [`Replaceable`](crate::qsbr::Replaceable) exchanges a whole table while it is read.
//!
//! # Byte order
//! IPv4 addresses to look up are numbers in host byte order (`u32::from_be_bytes` of the bytes in a
//! packet, `u32::from` of an `Ipv4Addr`); IPv6 addresses are bytes as in a packet.
//!
//! # Which type
//! A lookup in a [`FibType::Table`] takes one or two memory accesses for IPv4 (DIR-24-8). For IPv6
//! (a trie) it takes one, and one more for each further 8 bits of the longest prefix after the
//! first 24. [`FibType::Dummy`] walks the tree of routes: slow, without the large table, for tests.
//!
//! ```standalone_crate
//! use std::net::Ipv4Addr;
//! use dpdk::fib::{Fib, FibConfig};
//!
//! # fn run(eal: &dpdk::Eal) -> Result<(), Box<dyn std::error::Error>> {
//! let mut fib = Fib::new(eal, &FibConfig { default_next_hop: 99, ..FibConfig::named("routes") })?;
//! fib.add(Ipv4Addr::new(10, 0, 0, 0), 8, 1)?;
//! fib.add(Ipv4Addr::new(10, 1, 0, 0), 16, 2)?;
//! let mut hops = [0; 2];
//! fib.lookup_bulk(&[0x0a01_0304, 0x0b00_0001], &mut hops)?;
//! assert_eq!(hops, [2, 99]);
//! for (prefix, len, next_hop) in fib.routes() {
//!     println!("{prefix}/{len} leads to {next_hop}");
//! }
//! # Ok(())
//! # }
//! # let (eal, _) = dpdk::Eal::init("doc --no-huge --no-pci --no-shconf --no-telemetry -m 256".split(' '))?;
//! # run(&eal)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod error;
mod groups;
mod v4;
mod v6;

use std::ffi::CString;

use crate::names::{c_name, unique};
use crate::numa::socket_id;

pub use crate::lpm::LookupError;
pub use error::{FibError, RouteError};
pub use v4::{Fib, Routes};
pub use v6::{Fib6, Routes6};

/// The size of a table's entries. DPDK uses one bit of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextHopSize {
    /// 1 byte: next hops up to 127, groups up to 126. For IPv4 only.
    One,
    /// 2 bytes: next hops up to 32,767.
    Two,
    /// 4 bytes: next hops up to 2^31 - 1.
    Four,
    /// 8 bytes: next hops up to 2^63 - 1.
    Eight,
}

impl NextHopSize {
    /// The largest next hop.
    #[must_use]
    pub fn most(self) -> u64 {
        (1 << (8 * (1 << self.code()) - 1)) - 1
    }

    /// DPDK's code for it: the logarithm.
    fn code(self) -> u32 {
        match self {
            Self::One => 0,
            Self::Two => 1,
            Self::Four => 2,
            Self::Eight => 3,
        }
    }
}

/// The lookup method of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FibType {
    /// Walks the tree of routes.
    Dummy,
    /// Uses tables: for IPv4 `RTE_FIB_DIR24_8`, for IPv6 `RTE_FIB6_TRIE`.
    Table {
        /// The size of its 2^24 entries.
        next_hop: NextHopSize,
        /// Groups of 256 entries that all routes together may need: for IPv4 one for each 24-bit
        /// prefix that contains longer routes, for IPv6 one for each further 8 bits of a prefix
        /// after the first 24 that are not shared with another. DPDK counts those of IPv6 as if
        /// routes shared none: give it several times as many as needed.
        groups: u32,
    },
}

/// Parameters of a table.
#[derive(Clone, Debug)]
pub struct FibConfig {
    /// Unique in the process among forwarding tables and pools; at most 18 bytes, because DPDK's names for a table's
    /// parts contain it.
    pub name: String,
    /// The most routes; 2^28 at most.
    pub max_routes: u32,
    /// The lookup method.
    pub kind: FibType,
    /// The result of lookups for addresses without a route.
    pub default_next_hop: u64,
    /// NUMA node; `None` for any.
    pub socket: Option<u32>,
}

/// The groups that DPDK itself may need temporarily, besides those of the routes.
const SPARE: u32 = 16;

impl FibConfig {
    /// 1024 routes and 256 groups in a table with 4-byte next hops, on any NUMA node; next hop 0
    /// for addresses without a route.
    #[must_use]
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            max_routes: 1024,
            kind: FibType::Table { next_hop: NextHopSize::Four, groups: 256 },
            default_next_hop: 0,
            socket: None,
        }
    }

    /// [`named`](Self::named), with a number behind the name: an old and a new table live side by side.
    #[must_use]
    pub fn unique(name: impl Into<String>) -> Self {
        Self::named(unique(name))
    }

    /// The name for C, the largest next hop and the number of groups, if all are within the limits.
    fn check(&self) -> Result<(CString, u64, u32), FibError> {
        const NAME: usize = 18; // MP_MP_ before and a number behind it are 31 bytes at most.
        const ROUTES: u64 = 1 << 28;
        let name = c_name(&self.name, NAME, |name, most| FibError::Name { name, most })?;
        let limit = |what, given: u32, most| {
            if (1..=most).contains(&u64::from(given)) {
                return Ok(());
            }
            Err(FibError::Limit { name: self.name.clone(), what, given: given.into(), most })
        };
        limit("routes", self.max_routes, ROUTES)?;
        let (most, groups) = match self.kind {
            FibType::Dummy => (u64::MAX, u32::MAX),
            FibType::Table { next_hop, groups } => {
                // An entry stores a group's number in place of a next hop; DPDK computes the
                // group's position in 32 bits.
                let most = next_hop.most().min(1 << 21) - u64::from(spare(next_hop));
                limit("groups", groups, most)?;
                (next_hop.most(), groups)
            }
        };
        if self.default_next_hop > most {
            let (name, given) = (self.name.clone(), self.default_next_hop);
            return Err(FibError::DefaultNextHop { name, given, most });
        }
        Ok((name, most, groups))
    }

    fn socket(&self) -> Result<i32, FibError> {
        socket_id(self.socket).map_err(|node| FibError::Node { name: self.name.clone(), node })
    }
}

/// Groups for DPDK itself, besides those of the routes: tables with 1-byte entries have few.
fn spare(size: NextHopSize) -> u32 {
    if size == NextHopSize::One { 1 } else { SPARE }
}

/// Checks that C accepts a prefix and a next hop.
fn check_route(len: u8, bits: u8, next_hop: u64, most: u64) -> Result<(), RouteError> {
    if !(1..=bits).contains(&len) {
        return Err(RouteError::Length { given: len, bits });
    }
    if next_hop > most {
        return Err(RouteError::NextHop { given: next_hop, most });
    }
    Ok(())
}
