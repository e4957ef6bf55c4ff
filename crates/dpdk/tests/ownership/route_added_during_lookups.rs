// SPDX-License-Identifier: BSD-3-Clause
// expect: E0502
//! Routes changed while a lookup borrows them, in a table that does not wait for readers.

use std::net::Ipv4Addr;

use dpdk::lpm::{Lpm, RouteError};

pub fn change(lpm: &mut Lpm<'_>) -> Result<Option<u32>, RouteError> {
    let routes = lpm.lookups();
    #[cfg(fault)]
    lpm.add(Ipv4Addr::LOCALHOST, 32, 1)?;
    let hop = routes.lookup(1);
    lpm.add(Ipv4Addr::LOCALHOST, 32, 1)?;
    Ok(hop)
}
