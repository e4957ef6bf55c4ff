// SPDX-License-Identifier: BSD-3-Clause
//! RSS of a configured port: its settings, and changes while threads poll the queues.

use std::mem::MaybeUninit;

use dpdk_sys::{rte_eth_rss_conf, rte_eth_rss_reta_entry64};

use super::{PortControl, lock};
use crate::errno::Errno;
use crate::port::error::{PortError, check};
use crate::port::id::PortId;
use crate::port::info::{self, PortInfo};
use crate::port::rss::RssHashTypes;
use crate::port::rss_key::padded;

/// Entries of a table in one of DPDK's groups (`RTE_ETH_RETA_GROUP_SIZE`).
const GROUP: usize = u64::BITS as usize;

impl PortControl<'_> {
    /// The packet fields in the hash; empty while RSS is off (`rte_eth_dev_rss_hash_conf_get`).
    ///
    /// # Errors
    /// [`PortError::Call`], `ENOTSUP` where the driver has no RSS.
    pub fn rss_hash_types(&self) -> Result<RssHashTypes, PortError> {
        let _alone = lock();
        hash(self.id).map(|(types, _)| RssHashTypes::from_bits(types))
    }

    /// The key of the hash (`rte_eth_dev_rss_hash_conf_get`).
    ///
    /// # Errors
    /// [`PortError::Call`], `ENOTSUP` where the driver has no RSS.
    pub fn rss_key(&self) -> Result<Vec<u8>, PortError> {
        let _alone = lock();
        hash(self.id).map(|(_, key)| key)
    }

    /// Sets the packet fields in the hash, and its key (`rte_eth_dev_rss_hash_update`); `None`
    /// keeps the current key.
    ///
    /// # Errors
    /// [`PortError::HashTypes`], [`PortError::KeySize`], [`PortError::Call`] with `ENOTSUP` if the
    /// driver does not support it or the port is configured without RSS.
    pub fn set_rss_hash(&self, types: RssHashTypes, key: Option<&[u8]>) -> Result<(), PortError> {
        let _alone = lock();
        let has = known(self.id)?;
        let missing = types - has.rss_hash_types;
        if !missing.is_empty() {
            let has = has.rss_hash_types;
            return Err(PortError::HashTypes { port: self.id, missing, has });
        }
        let takes = has.rss_key_len;
        if let Some(key) = key.filter(|key| key.len() != usize::from(takes)) {
            return Err(PortError::KeySize { port: self.id, given: key.len(), takes });
        }
        update_hash(self.id, types.bits(), key).map_err(|errno| PortError::Call {
            port: self.id,
            call: "rte_eth_dev_rss_hash_update",
            errno,
        })
    }

    /// The redirection table: the queue of a hash `h` is in entry `h % len`
    /// (`rte_eth_dev_rss_reta_query`). Empty if the device has none.
    ///
    /// # Errors
    /// [`PortError::Call`], `ENOTSUP` if the driver cannot report it.
    pub fn reta(&self) -> Result<Vec<u16>, PortError> {
        let _alone = lock();
        let size = known(self.id)?.reta_size;
        if size == 0 {
            return Ok(Vec::new());
        }
        let mut groups = groups(&vec![0; size.into()]);
        // SAFETY: there are as many groups as the table has, and the masks ask for what it has.
        check(self.id, "rte_eth_dev_rss_reta_query", unsafe {
            dpdk_sys::rte_eth_dev_rss_reta_query(self.id.0, groups.as_mut_ptr(), size)
        })?;
        Ok(groups.iter().flat_map(|group| group.reta).take(size.into()).collect())
    }

    /// Sets the redirection table, even while frames arrive (`rte_eth_dev_rss_reta_update`);
    /// [`Reta::entries`](crate::Reta::entries) makes one. A table is replaced in parts: in the
    /// meantime frames may be spread by both. It holds until the port is started again, which
    /// restores the request in [`PortConfig::rss`](crate::PortConfig::rss).
    ///
    /// # Errors
    /// [`PortError::RetaSize`], [`PortError::RetaQueue`] for a queue that the port does not have,
    /// [`PortError::Call`] with `ENOTSUP` if the driver does not support it or the port is
    /// configured without RSS.
    pub fn set_reta(&self, table: &[u16]) -> Result<(), PortError> {
        let _alone = lock();
        let raw = info::query(self.id)?;
        if table.len() != usize::from(raw.reta_size) || table.is_empty() {
            let (given, takes) = (table.len(), raw.reta_size);
            return Err(PortError::RetaSize { port: self.id, given, takes });
        }
        let queues = raw.nb_rx_queues;
        if let Some(queue) = table.iter().find(|queue| **queue >= queues) {
            return Err(PortError::RetaQueue { port: self.id, queue: *queue, queues });
        }
        update_reta(self.id, table).map_err(|errno| PortError::Call {
            port: self.id,
            call: "rte_eth_dev_rss_reta_update",
            errno,
        })
    }
}

/// Sets hash types, and a key of the device's length; without a key keeps the current one. The
/// caller holds the lock.
fn update_hash(id: PortId, types: u64, key: Option<&[u8]>) -> Result<(), Errno> {
    let mut bytes = key.map(padded);
    // SAFETY: plain data for which all zeros means: nothing special.
    let mut conf: rte_eth_rss_conf = unsafe { MaybeUninit::zeroed().assume_init() };
    conf.rss_hf = types;
    if let (Some(key), Some(bytes)) = (key, &mut bytes) {
        conf.rss_key = bytes.as_mut_ptr();
        conf.rss_key_len = key.len() as u8;
    }
    // SAFETY: `conf` and the key in it, which is as long as any, are there during the call.
    Errno::check(unsafe { dpdk_sys::rte_eth_dev_rss_hash_update(id.0, &mut conf) }).map(drop)
}

/// Ensures that a started port hashes with the key of its configuration: some drivers silently
/// ignore it there. A driver that was `given` the key and does not report it is trusted. The caller
/// holds the lock.
pub(in crate::port) fn ensure_key(
    id: PortId,
    types: u64,
    key: &[u8],
    given: bool,
) -> Result<(), Errno> {
    let has = match hash(id) {
        Ok((_, now)) => now == key,
        Err(_) => given,
    };
    if has { Ok(()) } else { update_hash(id, types, Some(key)) }
}

/// Sets a table that is as long as the device's. The caller holds the lock.
pub(in crate::port) fn update_reta(id: PortId, table: &[u16]) -> Result<(), Errno> {
    let mut groups = groups(table);
    // SAFETY: there are as many groups as the table has; DPDK looks at the queues' numbers.
    Errno::check(unsafe {
        dpdk_sys::rte_eth_dev_rss_reta_update(id.0, groups.as_mut_ptr(), table.len() as u16)
    })
    .map(drop)
}

/// The table in DPDK's form, all of its entries marked.
fn groups(table: &[u16]) -> Vec<rte_eth_rss_reta_entry64> {
    table
        .chunks(GROUP)
        .map(|part| {
            let mut group = rte_eth_rss_reta_entry64 { mask: 0, reta: [0; GROUP] };
            group.reta[..part.len()].copy_from_slice(part);
            group.mask = u64::MAX >> (GROUP - part.len());
            group
        })
        .collect()
}

/// Hash types and key. The caller holds the lock.
fn hash(id: PortId) -> Result<(u64, Vec<u8>), PortError> {
    /// No driver's key is so long.
    const UNTOUCHED: u8 = u8::MAX;
    let len = known(id)?.rss_key_len;
    // Drivers write as many bytes as their keys have, even if less room is declared.
    let mut bytes = padded(&[]);
    // SAFETY: plain data for which all zeros means: nothing special.
    let mut conf: rte_eth_rss_conf = unsafe { MaybeUninit::zeroed().assume_init() };
    conf.rss_key = bytes.as_mut_ptr();
    conf.rss_key_len = UNTOUCHED;
    // SAFETY: there is room for a key of any length, which is one byte.
    check(id, "rte_eth_dev_rss_hash_conf_get", unsafe {
        dpdk_sys::rte_eth_dev_rss_hash_conf_get(id.0, &mut conf)
    })?;
    let len = if conf.rss_key_len == UNTOUCHED { len } else { conf.rss_key_len };
    Ok((conf.rss_hf, bytes[..len.into()].to_vec()))
}

fn known(id: PortId) -> Result<PortInfo, PortError> {
    // SAFETY: the driver has just filled it in.
    info::query(id).map(|info| unsafe { PortInfo::from_dpdk(&info) })
}

#[cfg(test)]
mod tests {
    use super::groups;

    #[test]
    fn tables_become_groups() {
        let table: Vec<u16> = (0..70).collect();
        let groups = groups(&table);
        assert_eq!(groups.iter().map(|group| group.mask).collect::<Vec<_>>(), [u64::MAX, 0x3f]);
        assert_eq!((groups[0].reta[63], groups[1].reta[5], groups[1].reta[6]), (63, 69, 0));
    }
}
