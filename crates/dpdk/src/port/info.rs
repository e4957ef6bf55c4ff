// SPDX-License-Identifier: BSD-3-Clause
//! The information that a driver reports about its port.

use std::ffi::CStr;
use std::mem::MaybeUninit;

use dpdk_sys::layout;

use super::driver::Driver;
use super::error::{PortError, check};
use super::id::PortId;
use super::lock::lock;
use super::offloads::{RxOffloads, TxOffloads};
use super::rss::RssHashTypes;

/// The information that a driver reports about its port (`rte_eth_dev_info_get`).
#[derive(Clone, Default, Debug)]
#[non_exhaustive]
pub struct PortInfo {
    /// Name of the driver, such as `net_memif`.
    pub driver: String,
    /// The number of receive queues that it supports. At most 16 for net_af_xdp, because with more
    /// it would write statistics past the end of DPDK's struct.
    pub max_rx_queues: u16,
    /// The number of transmit queues that it supports.
    pub max_tx_queues: u16,
    /// The largest MTU that [`PortConfig::mtu`](super::PortConfig::mtu) may request, in bytes: the
    /// driver's maximum, limited by its longest frame (computed as in `rte_eth_dev_configure`,
    /// which would return EINVAL for more).
    pub max_mtu: u16,
    /// The smallest MTU, in bytes.
    pub min_mtu: u16,
    /// Offloads that it supports on received packets, on all queues or on some.
    pub rx_offloads: RxOffloads,
    /// Offloads that it supports on packets to be sent, on all queues or on some.
    pub tx_offloads: TxOffloads,
    /// The [`rx_offloads`](Self::rx_offloads) that it supports on single queues. A configuration is
    /// for all queues.
    pub rx_queue_offloads: RxOffloads,
    /// The [`tx_offloads`](Self::tx_offloads) that it supports on single queues. A configuration is
    /// for all queues.
    pub tx_queue_offloads: TxOffloads,
    /// The fields that RSS can hash; empty without RSS.
    pub rss_hash_types: RssHashTypes,
    /// Bytes of an RSS key: 40 if the driver does not report it, as DPDK documents.
    pub rss_key_len: u8,
    /// Entries of the RSS redirection table; 0 if it cannot be set.
    pub reta_size: u16,
    /// MAC addresses that frames may be received for, the default one among them.
    pub max_mac_addresses: u32,
    /// True if it reports changes of its link (`RTE_ETH_DEV_INTR_LSC`).
    pub link_events: bool,
    /// Numbers of descriptors that a receive queue may have.
    pub rx_descriptors: Descriptors,
    /// Numbers of descriptors that a transmit queue may have.
    pub tx_descriptors: Descriptors,
    /// DPDK's bits, including those that `RssHashTypes` does not know.
    pub(super) raw_hash_types: u64,
}

/// Lengths that a queue's ring may have (`rte_eth_desc_lim`); other numbers are rounded.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Descriptors {
    /// The smallest.
    pub min: u16,
    /// The largest.
    pub max: u16,
    /// The number must be a multiple of this.
    pub align: u16,
}

impl Descriptors {
    fn of(limits: &dpdk_sys::rte_eth_desc_lim) -> Self {
        Self { min: limits.nb_min, max: limits.nb_max, align: limits.nb_align }
    }
}

/// Bytes of an RSS key where `hash_key_size` is 0.
const KEY_LEN: u8 = 40;

impl PortInfo {
    pub(super) fn of(id: PortId) -> Result<Self, PortError> {
        let _alone = lock();
        // SAFETY: the driver has just filled it in.
        query(id).map(|info| unsafe { Self::from_dpdk(&info) })
    }

    /// # Safety
    /// `info` is as [`query`] gives it, and the lock has been held since.
    pub(super) unsafe fn from_dpdk(info: &dpdk_sys::rte_eth_dev_info) -> Self {
        let driver = if info.driver_name.is_null() {
            String::new()
        } else {
            // SAFETY: drivers name themselves by a static C string.
            unsafe { CStr::from_ptr(info.driver_name) }.to_string_lossy().into_owned()
        };
        let limits = Driver::of_port(&driver);
        Self {
            driver,
            max_rx_queues: info.max_rx_queues.min(limits.max_rx_queues),
            max_tx_queues: info.max_tx_queues.min(limits.max_tx_queues),
            max_mtu: max_mtu(info.max_mtu, info.max_rx_pktlen),
            min_mtu: info.min_mtu,
            rx_offloads: RxOffloads::from_bits(info.rx_offload_capa),
            tx_offloads: TxOffloads::from_bits(info.tx_offload_capa),
            rx_queue_offloads: RxOffloads::from_bits(info.rx_queue_offload_capa),
            tx_queue_offloads: TxOffloads::from_bits(info.tx_queue_offload_capa),
            rss_hash_types: RssHashTypes::from_bits(info.flow_type_rss_offloads),
            rss_key_len: if info.hash_key_size == 0 { KEY_LEN } else { info.hash_key_size },
            reta_size: info.reta_size,
            max_mac_addresses: info.max_mac_addrs,
            // SAFETY: null, or the port's own flags, which live as long as the port; the lock is held.
            link_events: unsafe { info.dev_flags.as_ref() }
                .is_some_and(|flags| flags & layout::ETH_DEV_INTR_LSC != 0),
            rx_descriptors: Descriptors::of(&info.rx_desc_lim),
            tx_descriptors: Descriptors::of(&info.tx_desc_lim),
            raw_hash_types: info.flow_type_rss_offloads,
        }
    }
}

/// Bytes of the Ethernet header and the FCS.
const OVERHEAD: u32 = 18;

/// The MTU for frames of `longest` bytes, and at most `mtu`. If a driver reports both, their
/// difference is the overhead that is not counted in the MTU.
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
    use std::ffi::CStr;
    use std::mem::MaybeUninit;

    use super::PortInfo;

    fn receive_queues_of(driver: &'static CStr, has: u16) -> u16 {
        let mut info = MaybeUninit::<dpdk_sys::rte_eth_dev_info>::zeroed();
        // SAFETY: plain data, zeroed; the name is static, and there is no pointer to flags.
        unsafe {
            (*info.as_mut_ptr()).driver_name = driver.as_ptr();
            (*info.as_mut_ptr()).max_rx_queues = has;
            PortInfo::from_dpdk(&info.assume_init()).max_rx_queues
        }
    }

    #[test]
    fn af_xdp_has_no_more_queues_than_statistics_have_room_for() {
        assert_eq!(receive_queues_of(c"net_af_xdp", 40), 16);
        assert_eq!(receive_queues_of(c"net_af_xdp", 3), 3);
        assert_eq!(receive_queues_of(c"net_ice", 40), 40);
    }

    #[test]
    fn the_mtu_is_what_configuring_takes() {
        // Values of the drivers of DPDK 22.11: net_memif, net_null, net_af_xdp, and one that counts
        // VLAN tags.
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
