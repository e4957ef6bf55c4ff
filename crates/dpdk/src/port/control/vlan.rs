// SPDX-License-Identifier: BSD-3-Clause
//! VLANs: filtering, and stripping and inserting tags.

use std::ffi::c_int;

use dpdk_sys::layout;

use super::{PortControl, lock};
use crate::port::error::{PortError, check};

/// Handling of VLAN tags by a running port.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct VlanModes {
    /// The outermost tag is removed from received packets.
    pub strip: bool,
    /// Only VLANs that were added are received.
    pub filter: bool,
    /// Filtering and stripping handle two tags (QinQ).
    pub extend: bool,
    /// Both tags are removed.
    pub qinq_strip: bool,
}

impl VlanModes {
    const fn bits(self) -> u64 {
        (if self.strip { layout::VLAN_STRIP_OFFLOAD } else { 0 })
            | (if self.filter { layout::VLAN_FILTER_OFFLOAD } else { 0 })
            | (if self.extend { layout::VLAN_EXTEND_OFFLOAD } else { 0 })
            | (if self.qinq_strip { layout::VLAN_QINQ_STRIP_OFFLOAD } else { 0 })
    }

    fn from_bits(bits: u64) -> Self {
        Self {
            strip: bits & layout::VLAN_STRIP_OFFLOAD != 0,
            filter: bits & layout::VLAN_FILTER_OFFLOAD != 0,
            extend: bits & layout::VLAN_EXTEND_OFFLOAD != 0,
            qinq_strip: bits & layout::VLAN_QINQ_STRIP_OFFLOAD != 0,
        }
    }
}

impl PortControl<'_> {
    /// The port's handling of tags (`rte_eth_dev_get_vlan_offload`): initially as configured, see
    /// [`RxOffloads`](crate::RxOffloads).
    ///
    /// # Errors
    /// [`PortError::Call`].
    pub fn vlan_modes(&self) -> Result<VlanModes, PortError> {
        let _alone = lock();
        // SAFETY: control functions take any port number.
        let bits = check(self.id, "rte_eth_dev_get_vlan_offload", unsafe {
            dpdk_sys::rte_eth_dev_get_vlan_offload(self.id.0)
        })?;
        Ok(VlanModes::from_bits(bits as u64))
    }

    /// Sets the port's handling of tags (`rte_eth_dev_set_vlan_offload`).
    ///
    /// # Errors
    /// [`PortError::Call`]: `ENOTSUP` if the driver cannot change it, `EINVAL` if it does not
    /// support one of the modes.
    pub fn set_vlan_modes(&self, modes: VlanModes) -> Result<(), PortError> {
        let _alone = lock();
        // SAFETY: control functions take any port number; the bits are DPDK's.
        check(self.id, "rte_eth_dev_set_vlan_offload", unsafe {
            dpdk_sys::rte_eth_dev_set_vlan_offload(self.id.0, modes.bits() as c_int)
        })
        .map(drop)
    }

    /// Receives frames of this VLAN, too (`rte_eth_dev_vlan_filter`).
    ///
    /// # Errors
    /// [`PortError::Vlan`], [`PortError::Call`]: `ENOSYS` if filtering is off, `ENOTSUP` if the
    /// driver does not support it.
    pub fn add_vlan(&self, vlan: u16) -> Result<(), PortError> {
        self.filter(vlan, true)
    }

    /// Stops receiving frames of this VLAN (`rte_eth_dev_vlan_filter`).
    ///
    /// # Errors
    /// As for [`add_vlan`](Self::add_vlan).
    pub fn remove_vlan(&self, vlan: u16) -> Result<(), PortError> {
        self.filter(vlan, false)
    }

    /// Switches VLAN stripping of one receive queue on or off
    /// (`rte_eth_dev_set_vlan_strip_on_queue`).
    ///
    /// # Errors
    /// [`PortError::Call`]: `EINVAL` if there is no such queue, `ENOTSUP` if the driver does not
    /// support it.
    pub fn set_vlan_strip_on_queue(&self, queue: u16, on: bool) -> Result<(), PortError> {
        let _alone = lock();
        // SAFETY: control functions take any port number; DPDK looks at the queue's.
        check(self.id, "rte_eth_dev_set_vlan_strip_on_queue", unsafe {
            dpdk_sys::rte_eth_dev_set_vlan_strip_on_queue(self.id.0, queue, on.into())
        })
        .map(drop)
    }

    /// Inserts a tag of this VLAN into each packet that is sent without one; `None` stops that
    /// (`rte_eth_dev_set_vlan_pvid`).
    ///
    /// # Errors
    /// [`PortError::Vlan`], [`PortError::Call`] with `ENOTSUP` if the driver does not support it,
    /// as most do not.
    pub fn set_port_vlan(&self, vlan: Option<u16>) -> Result<(), PortError> {
        let id = self.vlan(vlan.unwrap_or(0))?;
        let _alone = lock();
        // SAFETY: control functions take any port number.
        check(self.id, "rte_eth_dev_set_vlan_pvid", unsafe {
            dpdk_sys::rte_eth_dev_set_vlan_pvid(self.id.0, id, vlan.is_some().into())
        })
        .map(drop)
    }

    fn filter(&self, vlan: u16, on: bool) -> Result<(), PortError> {
        let vlan = self.vlan(vlan)?;
        let _alone = lock();
        // SAFETY: control functions take any port number; the id has 12 bits, as tables of them have room for.
        check(self.id, "rte_eth_dev_vlan_filter", unsafe {
            dpdk_sys::rte_eth_dev_vlan_filter(self.id.0, vlan, on.into())
        })
        .map(drop)
    }

    fn vlan(&self, vlan: u16) -> Result<u16, PortError> {
        match vlan {
            0..4096 => Ok(vlan),
            _ => Err(PortError::Vlan { port: self.id, vlan }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::VlanModes;

    #[test]
    fn modes_are_dpdks_bits() {
        let each = [
            VlanModes { strip: true, ..VlanModes::default() },
            VlanModes { filter: true, ..VlanModes::default() },
            VlanModes { extend: true, ..VlanModes::default() },
            VlanModes { qinq_strip: true, ..VlanModes::default() },
        ];
        assert_eq!(each.map(|modes| modes.bits().count_ones()), [1; 4]);
        let mut all = 0;
        for modes in each {
            assert_eq!(VlanModes::from_bits(modes.bits()), modes);
            all |= modes.bits();
        }
        assert_eq!(VlanModes::from_bits(all).bits(), all);
        assert_eq!(VlanModes::default().bits(), 0);
    }
}
