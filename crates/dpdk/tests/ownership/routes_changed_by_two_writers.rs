// SPDX-License-Identifier: BSD-3-Clause
// expect: E0499
//! Two writers of one table.

use std::net::Ipv4Addr;

use dpdk::lpm::{RouteError, SharedLpm};

pub fn two(shared: &mut SharedLpm<'_>) -> Result<(), RouteError> {
    let (mut first, _) = shared.split();
    #[cfg(not(fault))]
    first.remove(Ipv4Addr::LOCALHOST, 32)?;
    let (mut second, _) = shared.split();
    second.remove(Ipv4Addr::LOCALHOST, 32)?;
    #[cfg(fault)]
    first.remove(Ipv4Addr::LOCALHOST, 32)?;
    Ok(())
}
