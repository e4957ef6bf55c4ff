// SPDX-License-Identifier: BSD-3-Clause
//! Addresses that a port receives frames for.

use dpdk_sys::rte_ether_addr;

use super::{PortControl, lock};
use crate::port::error::{PortError, check};
use crate::port::info;

/// Without virtual machines all addresses belong to pool 0.
const POOL: u32 = 0;

impl PortControl<'_> {
    /// Sets the port's own MAC address (`rte_eth_dev_default_mac_addr_set`).
    ///
    /// # Errors
    /// [`PortError::Call`]: `EINVAL` for a zero or multicast address, `ENOTSUP` if the driver does
    /// not support it.
    pub fn set_mac(&self, mac: [u8; 6]) -> Result<(), PortError> {
        let _alone = lock();
        let mut address = rte_ether_addr { addr_bytes: mac };
        // SAFETY: DPDK copies the address.
        check(self.id, "rte_eth_dev_default_mac_addr_set", unsafe {
            dpdk_sys::rte_eth_dev_default_mac_addr_set(self.id.0, &mut address)
        })
        .map(drop)
    }

    /// Receives frames for one more address (`rte_eth_dev_mac_addr_add`); does nothing if the
    /// address was added before.
    ///
    /// # Errors
    /// [`PortError::Call`]: `ENOSPC` if there are
    /// [`max_mac_addresses`](crate::PortInfo::max_mac_addresses) already, `EINVAL` for zeros,
    /// `ENOTSUP` if the driver does not support it.
    pub fn add_mac(&self, mac: [u8; 6]) -> Result<(), PortError> {
        let _alone = lock();
        let mut address = rte_ether_addr { addr_bytes: mac };
        // SAFETY: DPDK copies the address.
        check(self.id, "rte_eth_dev_mac_addr_add", unsafe {
            dpdk_sys::rte_eth_dev_mac_addr_add(self.id.0, &mut address, POOL)
        })
        .map(drop)
    }

    /// Removes an address that was added (`rte_eth_dev_mac_addr_remove`). Does nothing for one that
    /// was not added.
    ///
    /// # Errors
    /// [`PortError::Call`]: `EADDRINUSE` for the port's own address, `ENOTSUP` if the driver does
    /// not support it.
    pub fn remove_mac(&self, mac: [u8; 6]) -> Result<(), PortError> {
        let _alone = lock();
        let mut address = rte_ether_addr { addr_bytes: mac };
        // SAFETY: DPDK compares the address.
        check(self.id, "rte_eth_dev_mac_addr_remove", unsafe {
            dpdk_sys::rte_eth_dev_mac_addr_remove(self.id.0, &mut address)
        })
        .map(drop)
    }

    /// All addresses that frames are received for, the port's own first (`rte_eth_macaddrs_get`).
    ///
    /// # Errors
    /// [`PortError::Call`].
    pub fn macs(&self) -> Result<Vec<[u8; 6]>, PortError> {
        let _alone = lock();
        let room = info::query(self.id)?.max_mac_addrs;
        let mut addresses = vec![rte_ether_addr { addr_bytes: [0; 6] }; room as usize];
        // SAFETY: DPDK fills in no more than there is room for.
        let count = check(self.id, "rte_eth_macaddrs_get", unsafe {
            dpdk_sys::rte_eth_macaddrs_get(self.id.0, addresses.as_mut_ptr(), room)
        })?;
        let taken = addresses.iter().take(count as usize).map(|address| address.addr_bytes);
        // Unused places hold zeros.
        Ok(taken.filter(|bytes| *bytes != [0; 6]).collect())
    }

    /// Receives frames for these multicast addresses and no others; an empty list switches the
    /// filter off (`rte_eth_dev_set_mc_addr_list`).
    ///
    /// # Errors
    /// [`PortError::Call`]: `EINVAL` for an address that is not multicast, `ENOSPC` for too many,
    /// `ENOTSUP` if the driver does not support it.
    pub fn set_multicast(&self, macs: &[[u8; 6]]) -> Result<(), PortError> {
        let _alone = lock();
        let mut addresses: Vec<_> =
            macs.iter().map(|mac| rte_ether_addr { addr_bytes: *mac }).collect();
        let first = match addresses.is_empty() {
            true => std::ptr::null_mut(),
            false => addresses.as_mut_ptr(),
        };
        let count = u32::try_from(addresses.len()).unwrap_or(u32::MAX);
        // SAFETY: the array has this many addresses (more than u32 counts fit no address space),
        // which drivers copy.
        check(self.id, "rte_eth_dev_set_mc_addr_list", unsafe {
            dpdk_sys::rte_eth_dev_set_mc_addr_list(self.id.0, first, count)
        })
        .map(drop)
    }
}
