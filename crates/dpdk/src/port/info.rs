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
    /// The largest MTU that [`PortConfig::mtu`](super::PortConfig::mtu) may ask for, in bytes: the driver's
    /// largest, and no more than its longest frame has room for (as `rte_eth_dev_configure` counts, which
    /// would answer EINVAL).
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
            max_mtu: max_mtu(info.max_mtu, info.max_rx_pktlen),
        })
    }
}

/// Bytes of an Ethernet header and FCS.
const OVERHEAD: u32 = 18;

/// The MTU of frames of `longest` bytes, and at most `mtu`. What a driver that says both does not count
/// among the MTU is the difference.
fn max_mtu(mtu: u16, longest: u32) -> u16 {
    let overhead = match longest.checked_sub(mtu.into()) {
        Some(overhead) if mtu != u16::MAX && overhead > 0 => overhead,
        _ => OVERHEAD,
    };
    u16::try_from(longest.saturating_sub(overhead)).unwrap_or(u16::MAX).min(mtu)
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

#[cfg(test)]
mod tests {
    #[test]
    fn the_mtu_is_what_configuring_takes() {
        // As the drivers of DPDK 22.11 say: net_memif, net_null, net_af_xdp, and one that counts VLAN tags.
        for (mtu, longest, wanted) in [
            (u16::MAX, 1518, 1500),
            (u16::MAX, u32::MAX, u16::MAX),
            (3520, 3538, 3520),
            (1500, 1526, 1500),
        ] {
            assert_eq!(super::max_mtu(mtu, longest), wanted);
        }
        assert_eq!(super::max_mtu(9000, 1518), 1500);
    }
}
