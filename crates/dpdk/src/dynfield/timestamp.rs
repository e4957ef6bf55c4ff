// SPDX-License-Identifier: BSD-3-Clause
//! Times by the port's clock: when a packet arrived, and when it is to be sent.

use std::marker::PhantomData;

use super::{DynError, DynField, DynFlag, DynFlagReader, DynReader};
use crate::eal::Eal;
use crate::errno::Errno;
use crate::mbuf::Mbuf;

/// When packets arrived. Drivers that support it write the time if the port is configured with the
/// offload [`RxOffloads::TIMESTAMP`](crate::RxOffloads::TIMESTAMP); a flag tells packets with a
/// time from others.
///
/// The unit is a tick of the port's own clock: nanoseconds with most devices, which is not
/// guaranteed. `rte_eth_read_clock` reads the same clock: two readings a known time apart give its
/// rate. Clocks of different devices are unrelated.
#[derive(Clone, Copy, Debug)]
pub struct RxTimestamp {
    field: DynReader<u64>,
    flag: DynFlagReader,
}

/// When packets are to be sent. A port that was configured with the offload `SEND_ON_TIMESTAMP`
/// holds a packet back until its clock shows that time (see [`RxTimestamp`] for the unit); other
/// ports send at once.
#[derive(Clone, Copy, Debug)]
pub struct TxTimestamp {
    field: DynField<u64>,
    flag: DynFlag,
}

impl RxTimestamp {
    /// Registers the field and the flag (`rte_mbuf_dyn_rx_timestamp_register`). Call it before
    /// ports are started.
    ///
    /// # Errors
    /// [`DynError::Full`], [`DynError::Refused`].
    pub fn register(_eal: &Eal) -> Result<Self, DynError> {
        let (field, mask) = both("RX timestamp", dpdk_sys::rte_mbuf_dyn_rx_timestamp_register)?;
        Ok(Self { field: field.reader(), flag: DynFlagReader::of(mask) })
    }

    /// When the packet arrived; `None` if the device did not record it.
    #[inline]
    #[must_use]
    pub fn read(&self, mbuf: &Mbuf<'_>) -> Option<u64> {
        self.flag.is_set(mbuf).then(|| self.field.read(mbuf))
    }
}

impl TxTimestamp {
    /// Registers the field, which is the same as that of [`RxTimestamp`], and the flag
    /// (`rte_mbuf_dyn_tx_timestamp_register`). Call it before ports are started.
    ///
    /// # Errors
    /// [`DynError::Full`], [`DynError::Refused`].
    pub fn register(_eal: &Eal) -> Result<Self, DynError> {
        let (field, mask) = both("TX timestamp", dpdk_sys::rte_mbuf_dyn_tx_timestamp_register)?;
        Ok(Self { field, flag: DynFlag::of(mask) })
    }

    /// Sets the earliest time at which the packet is sent; `None` removes it. An [`RxTimestamp`] of
    /// the packet returns this value afterwards.
    #[inline]
    pub fn write(&self, mbuf: &mut Mbuf<'_>, when: Option<u64>) {
        if let Some(when) = when {
            self.field.write(mbuf, when);
        }
        self.flag.set(mbuf, when.is_some());
    }

    /// The time at which it is to be sent; `None` for at once.
    #[inline]
    #[must_use]
    pub fn read(&self, mbuf: &Mbuf<'_>) -> Option<u64> {
        self.flag.is_set(mbuf).then(|| self.field.read(mbuf))
    }
}

/// Registers the field, which both share, and a flag, by DPDK's function. Any time in them is
/// sound: devices only compare it with their clock.
fn both(
    name: &str,
    register: unsafe extern "C" fn(*mut i32, *mut u64) -> i32,
) -> Result<(DynField<u64>, u64), DynError> {
    let (mut offset, mut mask) = (-1, 0);
    // SAFETY: EAL runs (the callers have an Eal), and DPDK writes two numbers.
    let code = unsafe { register(&raw mut offset, &raw mut mask) };
    match usize::try_from(offset) {
        Ok(offset) if code >= 0 => Ok((DynField(DynReader { offset, data: PhantomData }), mask)),
        _ => Err(super::name::full_or(name, Errno::last())),
    }
}
