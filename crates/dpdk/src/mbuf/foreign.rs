// SPDX-License-Identifier: BSD-3-Clause
//! The right to make packets of memory that is not DPDK's.

use std::ffi::CStr;
use std::marker::PhantomData;
use std::mem::MaybeUninit;

use crate::eal::Eal;
use crate::port;

/// Why packets may not lie in memory that is not DPDK's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ForeignError {
    /// Devices use physical addresses.
    #[error(
        "EAL uses physical addresses for devices, which are not known for memory outside of DPDK: start it with --iova-mode=va, or use HeapBuffer"
    )]
    PhysicalAddresses,
    /// A port's device reads memory itself.
    #[error(
        "{0} reads packets by DMA, and memory outside of DPDK is not mapped for it: use HeapBuffer"
    )]
    Device(String),
}

/// The right to make packets of memory that is not DPDK's, such as a `Vec<u8>` or a mapped file.
///
/// Drivers of virtual devices read packets with the CPU: net_ring, net_null, net_tap, net_pcap,
/// net_af_packet, net_memif (without zero-copy), net_vhost. A device that reads by DMA can not
/// reach such memory: its IOMMU stops it, and the port may need a reset. So [`check`](Self::check)
/// refuses while there is a port of a device on a bus, or when EAL uses physical addresses. Do not
/// send such packets on a port that is attached later on a bus, nor over net_virtio_user, whose
/// peer maps DPDK's memory only; net_af_xdp needs `force_copy=1`.
#[derive(Clone, Copy, Debug)]
pub struct ForeignMemory<'eal> {
    eal: PhantomData<&'eal Eal>,
}

impl<'eal> ForeignMemory<'eal> {
    /// Checks the ports that exist now.
    ///
    /// # Errors
    /// See [`ForeignError`].
    pub fn check(eal: &'eal Eal) -> Result<Self, ForeignError> {
        // SAFETY: reads EAL's configuration.
        if unsafe { dpdk_sys::rte_eal_iova_mode() } != dpdk_sys::RTE_IOVA_VA {
            return Err(ForeignError::PhysicalAddresses);
        }
        match eal.ports().into_iter().find(|id| !is_virtual(id.index())) {
            Some(id) => Err(ForeignError::Device(id.name().unwrap_or_else(|| id.to_string()))),
            None => Ok(Self { eal: PhantomData }),
        }
    }

    /// Skips the checks, for devices that can reach the memory nevertheless.
    ///
    /// # Safety
    /// Devices use virtual addresses, and every device on which such packets are sent can read the bytes there for
    /// as long as it may: they lie in memory that was registered and mapped (`rte_extmem_register` and
    /// `rte_dev_dma_map`), or the device needs no mapping.
    #[must_use]
    pub unsafe fn assume(_eal: &'eal Eal) -> Self {
        Self { eal: PhantomData }
    }
}

/// Returns true if a port's device is on no bus. A device that is being removed does not answer,
/// and sends nothing.
fn is_virtual(port: u16) -> bool {
    let _alone = port::lock();
    let mut info = MaybeUninit::<dpdk_sys::rte_eth_dev_info>::zeroed();
    // SAFETY: DPDK fills the struct in, which is plain data; the names are static C strings of a device that
    // stays while nobody else uses the ports.
    unsafe {
        if dpdk_sys::rte_eth_dev_info_get(port, info.as_mut_ptr()) != 0 {
            return true;
        }
        let device = info.assume_init().device;
        if device.is_null() {
            return false;
        }
        let bus = dpdk_sys::rte_bus_name(dpdk_sys::rte_dev_bus(device));
        !bus.is_null() && CStr::from_ptr(bus) == c"vdev"
    }
}
