// SPDX-License-Identifier: BSD-3-Clause
// expect: E0277
//! A device with unchecked arguments, attached as one with checked arguments.

use std::fmt;

pub struct Bond;

impl fmt::Display for Bond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("net_bonding0,slave=net_null0")
    }
}

#[cfg(fault)]
impl dpdk::vdev::Vdev for Bond {}
