// SPDX-License-Identifier: BSD-3-Clause
//! What a driver says about its port.

use std::ffi::CStr;
use std::mem::MaybeUninit;

use super::control;
use super::error::{PortError, check};
use super::id::PortId;

/// What a driver says about its port (`rte_eth_dev_info_get`).
#[derive(Clone, Debug)]
pub struct PortInfo {
    /// Name of the driver, such as `net_memif`.
    pub driver: String,
    /// Receive queues that it has.
    pub max_rx_queues: u16,
    /// Transmit queues that it has.
    pub max_tx_queues: u16,
    /// Largest frame that it can send, in bytes, without the FCS.
    pub max_mtu: u16,
}

impl PortInfo {
    pub(super) fn of(id: PortId) -> Result<Self, PortError> {
        let _alone = control::lock();
        let info = query(id)?;
        let driver = if info.driver_name.is_null() {
            String::new()
        } else {
            // SAFETY: drivers name themselves by a static C string.
            unsafe { CStr::from_ptr(info.driver_name) }.to_string_lossy().into_owned()
        };
        Ok(Self {
            driver,
            max_rx_queues: info.max_rx_queues,
            max_tx_queues: info.max_tx_queues,
            max_mtu: info.max_mtu,
        })
    }
}

/// The caller holds the lock.
pub(super) fn query(id: PortId) -> Result<dpdk_sys::rte_eth_dev_info, PortError> {
    let mut info = MaybeUninit::<dpdk_sys::rte_eth_dev_info>::zeroed();
    // SAFETY: DPDK fills the struct in.
    check(id, "rte_eth_dev_info_get", unsafe {
        dpdk_sys::rte_eth_dev_info_get(id.0, info.as_mut_ptr())
    })?;
    // SAFETY: plain data, zeroed and then filled in.
    Ok(unsafe { info.assume_init() })
}
