// SPDX-License-Identifier: BSD-3-Clause
//! Operations on a port that are allowed at any time and from any thread.
//!
//! A control stands for a port's number: after [`Eal::detach`] the number may be another port's.

mod addresses;
pub(super) mod configuration;
mod modes;
pub(super) mod rss;
pub(super) mod vlan;
pub(super) mod xstats;

use std::ffi::{CStr, c_char, c_int};
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::time::Duration;

use super::error::{PortError, check};
use super::id::PortId;
use super::lock::{lock, lock_within};
use crate::debug::impl_debug;
use crate::eal::Eal;

/// Reads and sets properties of a port that DPDK lets any thread access while others poll the
/// queues.
#[derive(Clone, Copy)]
pub struct PortControl<'eal> {
    id: PortId,
    eal: PhantomData<&'eal Eal>,
}

impl_debug!([] PortControl<'_>, control => id: control.id);

/// State of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link {
    /// True if packets can pass.
    pub up: bool,
    /// Mbit/s as the driver reports; `None` if it does not know.
    pub speed_mbps: Option<u32>,
    /// True if it is full duplex.
    pub full_duplex: bool,
}

/// A port's own counters (`rte_eth_stats_get`), since its start or the last reset.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Stats {
    /// Frames received.
    pub ipackets: u64,
    /// Frames sent.
    pub opackets: u64,
    /// Bytes received.
    pub ibytes: u64,
    /// Bytes sent.
    pub obytes: u64,
    /// Frames that the device dropped because the queue was not polled in time.
    pub imissed: u64,
    /// Frames received with errors.
    pub ierrors: u64,
    /// Frames that could not be sent.
    pub oerrors: u64,
    /// Frames lost because the pool was empty.
    pub rx_nombuf: u64,
}

impl PortControl<'_> {
    pub(super) fn new(id: PortId) -> Self {
        Self { id, eal: PhantomData }
    }

    /// The port's number.
    #[must_use]
    pub fn id(&self) -> PortId {
        self.id
    }

    /// The state of the link now; does not wait for it (`rte_eth_link_get_nowait`).
    ///
    /// # Errors
    /// [`PortError::Call`].
    pub fn link(&self) -> Result<Link, PortError> {
        let _alone = lock();
        self.link_alone()
    }

    /// The same, but returns `None` at once if another thread is in an operation on a port. That
    /// may take long: [`Eal::attach`] may wait for the device's peer.
    ///
    /// # Errors
    /// [`PortError::Call`].
    pub fn try_link(&self) -> Result<Option<Link>, PortError> {
        match lock_within(Duration::ZERO) {
            Some(_alone) => self.link_alone().map(Some),
            None => Ok(None),
        }
    }

    /// The state of the link, read by a thread that holds the lock.
    fn link_alone(&self) -> Result<Link, PortError> {
        let (mut speed, mut up, mut full): (u32, c_int, c_int) = (0, 0, 0);
        // SAFETY: plain out-parameters.
        check(self.id, "rte_eth_link_get_nowait", unsafe {
            dpdk_sys::lr_eth_link_get_nowait(self.id.0, &mut speed, &mut up, &mut full)
        })?;
        Ok(Link {
            up: up != 0,
            speed_mbps: (speed != 0 && speed != u32::MAX).then_some(speed),
            full_duplex: full != 0,
        })
    }

    /// The state of the link now as DPDK prints it, such as `Link up at 10 Gbps FDX Fixed`
    /// (`rte_eth_link_to_str`).
    ///
    /// # Errors
    /// [`PortError::Call`].
    pub fn link_text(&self) -> Result<String, PortError> {
        let _alone = lock();
        // More than RTE_ETH_LINK_MAX_STR_LEN, which is 40 in every release.
        let mut text = [0 as c_char; 256];
        // SAFETY: DPDK writes at most as many bytes as the array has.
        check(self.id, "rte_eth_link_get_nowait", unsafe {
            dpdk_sys::lr_eth_link_text_nowait(self.id.0, text.as_mut_ptr(), text.len())
        })?;
        // SAFETY: the array is NUL-terminated: it was zeroed and is longer than the written text.
        Ok(unsafe { CStr::from_ptr(text.as_ptr()) }.to_string_lossy().into_owned())
    }

    /// The port's MAC address (`rte_eth_macaddr_get`).
    ///
    /// # Errors
    /// [`PortError::Call`].
    pub fn mac(&self) -> Result<[u8; 6], PortError> {
        let _alone = lock();
        let mut address = dpdk_sys::rte_ether_addr { addr_bytes: [0; 6] };
        // SAFETY: DPDK fills the address in.
        check(self.id, "rte_eth_macaddr_get", unsafe {
            dpdk_sys::rte_eth_macaddr_get(self.id.0, &mut address)
        })?;
        Ok(address.addr_bytes)
    }

    /// The port's counters (`rte_eth_stats_get`).
    ///
    /// # Errors
    /// [`PortError::NotConfigured`], [`PortError::Call`].
    pub fn stats(&self) -> Result<Stats, PortError> {
        let _alone = lock();
        configuration::check(self.id)?;
        let mut stats = MaybeUninit::<dpdk_sys::rte_eth_stats>::zeroed();
        // SAFETY: DPDK fills the struct in.
        check(self.id, "rte_eth_stats_get", unsafe {
            dpdk_sys::rte_eth_stats_get(self.id.0, stats.as_mut_ptr())
        })?;
        // SAFETY: plain data, zeroed and then filled in.
        let stats = unsafe { stats.assume_init() };
        Ok(Stats {
            ipackets: stats.ipackets,
            opackets: stats.opackets,
            ibytes: stats.ibytes,
            obytes: stats.obytes,
            imissed: stats.imissed,
            ierrors: stats.ierrors,
            oerrors: stats.oerrors,
            rx_nombuf: stats.rx_nombuf,
        })
    }

    /// Zeroes the port's counters (`rte_eth_stats_reset`).
    ///
    /// # Errors
    /// [`PortError::NotConfigured`], [`PortError::Call`] with `ENOTSUP` if the driver does not
    /// support it.
    pub fn reset_stats(&self) -> Result<(), PortError> {
        let _alone = lock();
        configuration::check(self.id)?;
        // SAFETY: control functions take any port number.
        check(self.id, "rte_eth_stats_reset", unsafe { dpdk_sys::rte_eth_stats_reset(self.id.0) })
            .map(drop)
    }
}
