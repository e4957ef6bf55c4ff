// SPDX-License-Identifier: BSD-3-Clause
// expect: E0505
//! A port's shortfalls, read after the port has changed its state.

use dpdk::{Configured, Port, PortError, Started};

pub fn start<'eal>(port: Port<'eal, Configured>) -> Result<Port<'eal, Started>, PortError> {
    let shortfalls = port.shortfalls();
    #[cfg(not(fault))]
    let shortfalls = shortfalls.to_vec();
    let started = port.start()?;
    println!("{}", shortfalls.len());
    Ok(started)
}
