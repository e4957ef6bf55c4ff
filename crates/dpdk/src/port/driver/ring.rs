// SPDX-License-Identifier: BSD-3-Clause
//! net_ring: packets sent on a queue are received on it.

use super::Driver;
use crate::port::arguments::{Arguments, vdev};

/// Its arguments are `internal`, a pointer, and `nodeaction`, which attaches to rings of other devices.
pub(super) const DRIVER: Driver = Driver {
    name: "net_ring",
    check_arguments: |arguments| match arguments {
        [] => Ok(()),
        _ => Err("this driver takes no arguments here: they are pointers or other rings"),
    },
    ring_prefix: Some("ETH_RXTX"),
    ..Driver::PLAIN
};

/// A device that returns sent packets, with at most 1023 packets waiting in each of its queues. It
/// accepts no arguments here: they are pointers, or attach to rings of other devices.
///
/// DPDK keeps the rings and the waiting packets when the device is removed: another device with
/// that name uses them again.
///
/// ```
/// assert_eq!(dpdk::vdev::Ring::new("net_ring0").to_string(), "net_ring0");
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ring(Arguments);

vdev!(Ring);

impl Ring {
    /// A device with that name, which begins with `net_ring`.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self(Arguments::new(name))
    }
}
