// SPDX-License-Identifier: BSD-3-Clause
//! The number of a port.

use std::ffi::{CStr, c_char};
use std::fmt;

use dpdk_sys::layout;

use super::lock::lock;

/// `RTE_ETH_DEV_NO_OWNER`.
const NO_OWNER: u64 = 0;

/// The number of a port. It is only a number: the port may not exist any more.
/// [`Eal::ports`](crate::Eal::ports) and [`Eal::port_named`](crate::Eal::port_named) return port
/// numbers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct PortId(pub(crate) u16);

impl PortId {
    /// The number that DPDK gives the port.
    #[must_use]
    pub fn index(self) -> u16 {
        self.0
    }

    /// The name of its device, such as `net_memif0` or a PCI address
    /// (`rte_eth_dev_get_name_by_port`); `None` if there is no such port.
    #[must_use]
    pub fn name(self) -> Option<String> {
        let _alone = lock();
        self.name_locked()
    }

    /// Its name; the caller holds the lock.
    pub(crate) fn name_locked(self) -> Option<String> {
        // More than RTE_ETH_NAME_MAX_LEN, which is 64 in every release.
        let mut name = [0 as c_char; 256];
        // SAFETY: the buffer is longer than any device name.
        let code = unsafe { dpdk_sys::rte_eth_dev_get_name_by_port(self.0, name.as_mut_ptr()) };
        // SAFETY: the buffer is NUL-terminated: it was zeroed and is longer than the written text.
        (code == 0).then(|| unsafe { CStr::from_ptr(name.as_ptr()) }.to_string_lossy().into_owned())
    }

    /// The NUMA node of its device (`rte_eth_dev_socket_id`); `None` if it is unknown or there is
    /// no such port.
    #[must_use]
    pub fn socket(self) -> Option<u32> {
        let _alone = lock();
        // SAFETY: looks a number up in DPDK's table.
        u32::try_from(unsafe { dpdk_sys::rte_eth_dev_socket_id(self.0) }).ok()
    }
}

impl PortId {
    /// Returns true if there is such a port, with any owner; the caller holds the lock.
    pub(super) fn exists(self) -> bool {
        // SAFETY: looks a number up in DPDK's table.
        unsafe { dpdk_sys::rte_eth_dev_is_valid_port(self.0) != 0 }
    }

    /// Returns true if the port has no owner, neither another port nor a C plugin. The caller holds
    /// the lock.
    pub(super) fn is_free(self) -> bool {
        // SAFETY: looks through DPDK's table of ports.
        let next = unsafe { dpdk_sys::rte_eth_find_next_owned_by(self.0, NO_OWNER) };
        next == u64::from(self.0)
    }
}

impl fmt::Display for PortId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The ports that exist now and belong to no other port or program (`RTE_ETH_FOREACH_DEV`). The caller
/// holds the lock.
pub(crate) fn valid_ports() -> Vec<PortId> {
    let mut ports = Vec::new();
    let mut next = 0;
    loop {
        // SAFETY: looks through DPDK's table of ports; needs an initialised EAL, which the callers have.
        let id = unsafe { dpdk_sys::rte_eth_find_next_owned_by(next, NO_OWNER) };
        match u16::try_from(id) {
            Ok(id) if usize::from(id) < layout::MAX_ETHPORTS => {
                ports.push(PortId(id));
                next = id + 1;
            }
            _ => return ports,
        }
    }
}
