// SPDX-License-Identifier: BSD-3-Clause
//! A port's link, receive modes and MTU.

use std::ffi::c_int;
use std::time::{Duration, Instant};

use super::{Link, PortControl, lock};
use crate::port::error::{PortError, check};
use crate::port::promiscuity::Flag;

/// Time between two reads of a link's state.
const LOOK: Duration = Duration::from_millis(2);

impl PortControl<'_> {
    /// Waits until the link is up, at most for `timeout`, and returns its last state: up, or down
    /// after the whole time (`rte_eth_link_get`). It reads the state every two milliseconds and
    /// lets other control calls run in between.
    ///
    /// # Errors
    /// [`PortError::Call`].
    pub fn wait_link(&self, timeout: Duration) -> Result<Link, PortError> {
        let begin = Instant::now();
        loop {
            let link = self.link()?;
            let left = timeout.saturating_sub(begin.elapsed());
            if link.up || left.is_zero() {
                return Ok(link);
            }
            std::thread::sleep(LOOK.min(left));
        }
    }

    /// Takes the link up or down (`rte_eth_dev_set_link_up`, `rte_eth_dev_set_link_down`).
    ///
    /// # Errors
    /// [`PortError::Call`], `ENOTSUP` if the driver does not support it.
    pub fn set_link(&self, up: bool) -> Result<(), PortError> {
        if up {
            self.call("rte_eth_dev_set_link_up", dpdk_sys::rte_eth_dev_set_link_up)
        } else {
            self.call("rte_eth_dev_set_link_down", dpdk_sys::rte_eth_dev_set_link_down)
        }
    }

    /// Switches promiscuous mode on or off: frames for any address are received (`rte_eth_promiscuous_enable` and `rte_eth_promiscuous_disable`).
    /// On kernel interfaces (net_af_packet, net_af_xdp) it ends with the process: the interface's own flag is left as it was.
    ///
    /// # Errors
    /// [`PortError::Call`], `ENOTSUP` if the driver has no such mode.
    pub fn set_promiscuous(&self, on: bool) -> Result<(), PortError> {
        let _alone = lock();
        let flag = Flag::of(self.id);
        let done = if on {
            self.call_alone("rte_eth_promiscuous_enable", dpdk_sys::rte_eth_promiscuous_enable)
        } else {
            self.call_alone("rte_eth_promiscuous_disable", dpdk_sys::rte_eth_promiscuous_disable)
        };
        if let Some(flag) = flag {
            flag.restore();
        }
        done
    }

    /// Returns true if promiscuous mode is on, according to DPDK (`rte_eth_promiscuous_get`).
    ///
    /// # Errors
    /// [`PortError::Call`].
    pub fn promiscuous(&self) -> Result<bool, PortError> {
        self.ask("rte_eth_promiscuous_get", dpdk_sys::rte_eth_promiscuous_get)
    }

    /// Switches reception of all multicast frames on or off (`rte_eth_allmulticast_enable` and `rte_eth_allmulticast_disable`).
    ///
    /// # Errors
    /// [`PortError::Call`], `ENOTSUP` if the driver has no such mode.
    pub fn set_all_multicast(&self, on: bool) -> Result<(), PortError> {
        if on {
            self.call("rte_eth_allmulticast_enable", dpdk_sys::rte_eth_allmulticast_enable)
        } else {
            self.call("rte_eth_allmulticast_disable", dpdk_sys::rte_eth_allmulticast_disable)
        }
    }

    /// Returns true if all multicast frames are received, according to DPDK
    /// (`rte_eth_allmulticast_get`).
    ///
    /// # Errors
    /// [`PortError::Call`].
    pub fn all_multicast(&self) -> Result<bool, PortError> {
        self.ask("rte_eth_allmulticast_get", dpdk_sys::rte_eth_allmulticast_get)
    }

    /// The MTU: bytes of the largest frame's payload, without the 14 bytes of the Ethernet header and the FCS (`rte_eth_dev_get_mtu`).
    ///
    /// # Errors
    /// [`PortError::Call`].
    pub fn mtu(&self) -> Result<u16, PortError> {
        let _alone = lock();
        let mut mtu = 0;
        // SAFETY: a plain out-parameter.
        check(self.id, "rte_eth_dev_get_mtu", unsafe {
            dpdk_sys::rte_eth_dev_get_mtu(self.id.0, &mut mtu)
        })?;
        Ok(mtu)
    }

    /// Sets the MTU (`rte_eth_dev_set_mtu`); see [`PortInfo::max_mtu`](crate::PortInfo::max_mtu).
    /// Many drivers accept it only while the port is stopped. Drivers of kernel interfaces set the
    /// interface's MTU.
    ///
    /// # Errors
    /// [`PortError::Call`]: `ENOTSUP` if the driver does not support it, `EINVAL` for an MTU out of
    /// its range, `EBUSY` while the port is started.
    pub fn set_mtu(&self, mtu: u16) -> Result<(), PortError> {
        let _alone = lock();
        // SAFETY: control functions take any port number.
        check(self.id, "rte_eth_dev_set_mtu", unsafe {
            dpdk_sys::rte_eth_dev_set_mtu(self.id.0, mtu)
        })
        .map(drop)
    }

    fn call(
        &self,
        name: &'static str,
        function: unsafe extern "C" fn(u16) -> c_int,
    ) -> Result<(), PortError> {
        let _alone = lock();
        self.call_alone(name, function)
    }

    /// Calls a control function under the lock of ports.
    fn call_alone(
        &self,
        name: &'static str,
        function: unsafe extern "C" fn(u16) -> c_int,
    ) -> Result<(), PortError> {
        // SAFETY: the control functions passed above, which take any port number.
        check(self.id, name, unsafe { function(self.id.0) }).map(drop)
    }

    fn ask(
        &self,
        name: &'static str,
        function: unsafe extern "C" fn(u16) -> c_int,
    ) -> Result<bool, PortError> {
        let _alone = lock();
        // SAFETY: the query functions passed above, which take any port number.
        check(self.id, name, unsafe { function(self.id.0) }).map(|answer| answer != 0)
    }
}
