// SPDX-License-Identifier: BSD-3-Clause
//! A port's extended statistics: names are read once, values by number (ID).
//!
//! The set of statistics may change when a port is configured, because it includes its queues.
//! Numbers are therefore valid for one configuration, and using them in another is an error: read
//! the names again.

use std::ffi::CStr;

use dpdk_sys::rte_eth_xstat_name;

use super::{PortControl, configuration, lock};
use crate::port::error::{PortError, check};
use crate::port::id::PortId;

/// Values read at once: DPDK has an array of them on its stack.
const AT_ONCE: usize = 256;

/// Why there are no values.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum XstatsError {
    /// No statistic has that name.
    #[error("port {port} has no statistic {name:?}; XstatNames::iter gives those that it has")]
    Unknown {
        /// The port.
        port: PortId,
        /// The name.
        name: String,
    },
    /// The port has been configured since the names were read.
    #[error("port {0} was configured since the names of its statistics were read: read them again")]
    Changed(PortId),
    /// The number of places differs from that of statistics.
    #[error("{asked} statistics requested, but room for {room}: give one place for each")]
    Room {
        /// Statistics asked for.
        asked: usize,
        /// Places given.
        room: usize,
    },
    /// DPDK refused.
    #[error(transparent)]
    Port(#[from] PortError),
}

/// The names of a port's extended statistics.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct XstatNames {
    port: PortId,
    configuration: u32,
    names: Vec<String>,
}

impl XstatNames {
    /// Every name, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    /// The number of statistics.
    #[must_use]
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Returns true if there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Returns the numbers of the named statistics, in that order.
    ///
    /// # Errors
    /// [`XstatsError::Unknown`] names the first unknown one.
    pub fn select<N: AsRef<str>>(&self, names: &[N]) -> Result<XstatIds, XstatsError> {
        let id = |name: &N| {
            let name = name.as_ref();
            let place = self.names.iter().position(|it| it == name);
            let place = place.map(|place| place as u64);
            place.ok_or_else(|| XstatsError::Unknown { port: self.port, name: name.to_owned() })
        };
        Ok(self.ids(names.iter().map(id).collect::<Result<_, _>>()?))
    }

    /// The numbers of all statistics.
    #[must_use]
    pub fn all(&self) -> XstatIds {
        self.ids((0..self.names.len() as u64).collect())
    }

    fn ids(&self, ids: Vec<u64>) -> XstatIds {
        XstatIds {
            port: self.port,
            configuration: self.configuration,
            count: self.names.len(),
            ids,
        }
    }
}

/// Numbers of a port's statistics, for [`PortControl::xstats_into`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct XstatIds {
    port: PortId,
    configuration: u32,
    /// Statistics that the port had when the names were read.
    count: usize,
    ids: Vec<u64>,
}

impl XstatIds {
    /// The number of statistics.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Returns true if there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }
}

impl PortControl<'_> {
    /// Reads the names of the port's extended statistics in its current configuration
    /// (`rte_eth_xstats_get_names_by_id`).
    ///
    /// # Errors
    /// [`PortError::NotConfigured`], [`PortError::Call`].
    pub fn xstat_names(&self) -> Result<XstatNames, PortError> {
        let _alone = lock();
        let mut room = count(self.id)?;
        let raw = loop {
            let mut raw = vec![rte_eth_xstat_name { name: [0; 64] }; room];
            // SAFETY: DPDK writes names only when there is room for all.
            let count = check(self.id, "rte_eth_xstats_get_names_by_id", unsafe {
                dpdk_sys::rte_eth_xstats_get_names_by_id(
                    self.id.0,
                    raw.as_mut_ptr(),
                    room as u32,
                    std::ptr::null_mut(),
                )
            })?;
            // If there are now more than before, nothing was written.
            let enough = count as usize <= room;
            room = count as usize;
            if enough {
                raw.truncate(room);
                break raw;
            }
        };
        let names = raw.iter().map(|raw| text(&raw.name)).collect();
        Ok(XstatNames { port: self.id, configuration: configuration::number(self.id), names })
    }

    /// Reads the values of these statistics, in their order (`rte_eth_xstats_get_by_id`). They are
    /// read 256 at a time, so more than 256 are not of the same moment. Allocates nothing itself;
    /// drivers may.
    ///
    /// # Errors
    /// [`XstatsError::Changed`] if the port was configured since the names were read, or if they
    /// are another port's; [`XstatsError::Room`], [`XstatsError::Port`].
    pub fn xstats_into(&self, ids: &XstatIds, values: &mut [u64]) -> Result<(), XstatsError> {
        if ids.len() != values.len() {
            return Err(XstatsError::Room { asked: ids.len(), room: values.len() });
        }
        let _alone = lock();
        if ids.port != self.id
            || ids.configuration != configuration::number(self.id)
            || ids.count != count(self.id)?
        {
            return Err(XstatsError::Changed(self.id));
        }
        for (ids, values) in ids.ids.chunks(AT_ONCE).zip(values.chunks_mut(AT_ONCE)) {
            // SAFETY: there is a number and a place for each value.
            let told = check(self.id, "rte_eth_xstats_get_by_id", unsafe {
                dpdk_sys::rte_eth_xstats_get_by_id(
                    self.id.0,
                    ids.as_ptr(),
                    values.as_mut_ptr(),
                    ids.len() as u32,
                )
            })?;
            if told as usize != ids.len() {
                return Err(XstatsError::Changed(self.id));
            }
        }
        Ok(())
    }

    /// Zeroes the extended statistics, and with some drivers also the basic counters
    /// (`rte_eth_xstats_reset`).
    ///
    /// # Errors
    /// [`PortError::NotConfigured`], [`PortError::Call`] with `ENOTSUP` if the driver does not
    /// support it.
    pub fn reset_xstats(&self) -> Result<(), PortError> {
        let _alone = lock();
        configuration::check(self.id)?;
        // SAFETY: control functions take any port number.
        check(self.id, "rte_eth_xstats_reset", unsafe { dpdk_sys::rte_eth_xstats_reset(self.id.0) })
            .map(drop)
    }
}

/// Returns the number of a port's statistics. The caller holds the lock.
fn count(id: PortId) -> Result<usize, PortError> {
    configuration::check(id)?;
    // SAFETY: without room DPDK counts and writes nothing.
    let count = check(id, "rte_eth_xstats_get_names_by_id", unsafe {
        dpdk_sys::rte_eth_xstats_get_names_by_id(
            id.0,
            std::ptr::null_mut(),
            0,
            std::ptr::null_mut(),
        )
    })?;
    Ok(count as usize)
}

/// A name; the whole array if the driver left no room for the NUL.
fn text(raw: &[std::ffi::c_char]) -> String {
    let bytes: Vec<u8> = raw.iter().map(|byte| *byte as u8).collect();
    match CStr::from_bytes_until_nul(&bytes) {
        Ok(text) => text.to_string_lossy().into_owned(),
        Err(_) => String::from_utf8_lossy(&bytes).into_owned(),
    }
}
