// SPDX-License-Identifier: BSD-3-Clause
// expect: E0277
//! A device whose arguments nobody has looked at, attached as one that somebody has.

use std::fmt;

pub struct Bond;

impl fmt::Display for Bond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("net_bonding0,slave=net_null0")
    }
}

#[cfg(fault)]
impl dpdk::vdev::Vdev for Bond {}
