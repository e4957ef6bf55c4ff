// SPDX-License-Identifier: BSD-3-Clause
//! The configuration that was requested, and the part of it that a driver supports.

use super::config::PortConfig;
use super::control;
use super::error::PortError;
use super::id::PortId;
use super::info::{self, PortInfo};
use super::offloads::{RxOffloads, TxOffloads};
use super::rss::{Reta, Rss, RssHashTypes};
use super::shortfall::{Lack, Shortfall};

/// The configuration that a port and its driver agreed on.
#[derive(Clone, Default, Debug)]
pub(super) struct Agreement {
    /// Receive queues.
    pub rx: u16,
    /// Transmit queues.
    pub tx: u16,
    pub rx_offloads: RxOffloads,
    pub tx_offloads: TxOffloads,
    /// Whether the driver reports changes of its link.
    pub link_events: bool,
    /// DPDK's hash types, which may be more than this crate knows; 0 for no RSS.
    pub hash_types: u64,
    /// A key of the length that the driver takes.
    pub key: Option<Vec<u8>>,
    /// DPDK refused to configure the port with the key; it is to be set after the start.
    pub key_left_out: bool,
    /// The requested table.
    asked_reta: Reta,
    /// To be set after each start, because drivers fill theirs at the start. Empty for the driver's
    /// own.
    pub reta: Vec<u16>,
    pub shortfalls: Vec<Shortfall>,
}

impl Agreement {
    /// # Errors
    /// [`PortError::TooManyQueues`], [`PortError::RxOffloads`], [`PortError::TxOffloads`], [`PortError::RetaQueue`].
    pub fn of(id: PortId, config: &PortConfig<'_>, info: &PortInfo) -> Result<Self, PortError> {
        let mut agreement = Self {
            rx: count(id, "RX", config.rx.len(), info.max_rx_queues)?,
            tx: count(id, "TX", config.tx.len(), info.max_tx_queues)?,
            ..Self::default()
        };
        agreement.link_events = config.link_events && info.link_events;
        if config.link_events && !info.link_events {
            agreement.lack(id, Lack::LinkEvents);
        }
        agreement.rss(id, &config.rss, info)?;
        agreement.offloads(id, config, info)?;
        Ok(agreement)
    }

    /// Sets what drivers accept only after the start, or reset at the start. The caller holds the
    /// lock.
    pub fn started(&mut self, id: PortId) {
        let at_start =
            |lack: &Lack| matches!(lack, Lack::RetaRefused { .. } | Lack::KeyRefused { .. });
        self.shortfalls.retain(|shortfall| !at_start(&shortfall.lack));
        if let Some(key) = &self.key {
            if let Err(errno) =
                control::rss::ensure_key(id, self.hash_types, key, !self.key_left_out)
            {
                self.lack(id, Lack::KeyRefused { errno });
            }
        }
        // Some drivers create their table only now, with as many entries as they have queues.
        if let Ok(info) = info::query(id) {
            self.reta(id, info.reta_size);
        }
        if !self.reta.is_empty() {
            if let Err(errno) = control::rss::update_reta(id, &self.reta) {
                self.lack(id, Lack::RetaRefused { errno });
            }
        }
    }

    fn lack(&mut self, port: PortId, lack: Lack) {
        self.shortfalls.push(Shortfall { port, lack });
    }

    fn rss(&mut self, id: PortId, asked: &Rss, info: &PortInfo) -> Result<(), PortError> {
        let outside = asked.reta.queues().iter().find(|queue| **queue >= self.rx);
        if let Some(queue) = outside {
            return Err(PortError::RetaQueue { port: id, queue: *queue, queues: self.rx });
        }
        // One queue needs no RSS, unless it was requested: packets may then carry the hash.
        if self.rx == 0 || self.rx == 1 && *asked == Rss::default() {
            return Ok(());
        }
        if info.raw_hash_types == 0 {
            if *asked != Rss::default() {
                self.lack(id, Lack::Rss { queues: self.rx });
            }
            return Ok(());
        }
        self.hash_types = info.raw_hash_types;
        if let Some(asked) = asked.hash_types {
            self.hash_types &= asked.bits();
            let given = RssHashTypes::from_bits(self.hash_types);
            if given != asked {
                self.lack(id, Lack::HashTypes { asked, given });
            }
        }
        if self.hash_types == 0 {
            return Ok(());
        }
        match &asked.key {
            Some(key) if key.len() == usize::from(info.rss_key_len) => {
                self.key = Some(key.clone());
            }
            Some(key) => {
                self.lack(id, Lack::Key { asked: key.len(), takes: info.rss_key_len });
            }
            None => {}
        }
        self.asked_reta = asked.reta.clone();
        self.reta(id, info.reta_size);
        Ok(())
    }

    /// Computes the requested table for a number of entries, and records what is missing.
    fn reta(&mut self, id: PortId, size: u16) {
        let of_size = |lack: &Lack| matches!(lack, Lack::Reta | Lack::RetaSize { .. });
        self.shortfalls.retain(|shortfall| !of_size(&shortfall.lack));
        self.reta = self.asked_reta.entries(size);
        match &self.asked_reta {
            asked if asked.queues().is_empty() => {}
            _ if size == 0 => self.lack(id, Lack::Reta),
            Reta::Table(table) if table.len() != usize::from(size) => {
                let asked = table.len();
                self.lack(id, Lack::RetaSize { asked, has: size });
            }
            _ => {}
        }
    }

    /// Called after [`rss`](Self::rss), because packets carry a hash only with RSS.
    fn offloads(
        &mut self,
        id: PortId,
        config: &PortConfig<'_>,
        info: &PortInfo,
    ) -> Result<(), PortError> {
        let mut can = info.rx_offloads;
        if self.hash_types == 0 {
            can = can - RxOffloads::RSS_HASH;
        }
        let missing = config.rx_offloads.required - can;
        if !missing.is_empty() {
            return Err(PortError::RxOffloads { port: id, missing, has: can });
        }
        let missing = config.tx_offloads.required - info.tx_offloads;
        if !missing.is_empty() {
            return Err(PortError::TxOffloads { port: id, missing, has: info.tx_offloads });
        }
        let given = config.rx_offloads.required | (config.rx_offloads.wanted & can);
        let given = given - excluded(given, config.rx_offloads.required);
        let missing = config.rx_offloads.wanted - given;
        self.rx_offloads = given;
        if !missing.is_empty() {
            self.lack(id, Lack::RxOffloads { missing, given });
        }
        let given = config.tx_offloads.required | (config.tx_offloads.wanted & info.tx_offloads);
        let missing = config.tx_offloads.wanted - given;
        self.tx_offloads = given;
        if !missing.is_empty() {
            self.lack(id, Lack::TxOffloads { missing, given });
        }
        Ok(())
    }
}

/// Returns the offloads of `given` to leave out: drivers that can merge TCP segments and keep the
/// FCS refuse to start with both. If neither is required, merging is kept.
fn excluded(given: RxOffloads, required: RxOffloads) -> RxOffloads {
    let both = RxOffloads::TCP_LRO | RxOffloads::KEEP_CRC;
    if !given.contains(both) || required.contains(both) {
        return RxOffloads::EMPTY;
    }
    if required.contains(RxOffloads::KEEP_CRC) { RxOffloads::TCP_LRO } else { RxOffloads::KEEP_CRC }
}

fn count(port: PortId, direction: &'static str, asked: usize, max: u16) -> Result<u16, PortError> {
    match u16::try_from(asked) {
        Ok(n) if n <= max => Ok(n),
        _ => Err(PortError::TooManyQueues { port, direction, asked, max }),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // A test may.

    use super::*;
    use crate::Request;

    fn info() -> PortInfo {
        PortInfo {
            max_rx_queues: 4,
            max_tx_queues: 4,
            rx_offloads: RxOffloads::VLAN_STRIP | RxOffloads::RSS_HASH,
            tx_offloads: TxOffloads::MULTI_SEGS,
            raw_hash_types: RssHashTypes::IPV4.bits() | RssHashTypes::IPV4_TCP.bits() | 1 << 49,
            rss_key_len: 40,
            reta_size: 8,
            ..PortInfo::default()
        }
    }

    /// The rules without queues, whose configurations hold pools.
    fn agree(rx: u16, rss: &Rss, info: &PortInfo) -> Result<Agreement, PortError> {
        let mut agreement = Agreement { rx, ..Agreement::default() };
        agreement.rss(PortId(3), rss, info)?;
        Ok(agreement)
    }

    fn lacks(agreement: &Agreement) -> Vec<Lack> {
        agreement.shortfalls.iter().map(|shortfall| shortfall.lack).collect()
    }

    #[test]
    fn a_default_asks_for_nothing_and_takes_what_there_is() {
        let agreement = agree(2, &Rss::default(), &info()).unwrap();
        assert_eq!(agreement.hash_types, info().raw_hash_types);
        assert!(agreement.reta.is_empty() && agreement.key.is_none());
        assert_eq!(lacks(&agreement), []);
        assert_eq!(agree(1, &Rss::default(), &info()).unwrap().hash_types, 0);
        let none = PortInfo { raw_hash_types: 0, ..info() };
        assert_eq!(lacks(&agree(2, &Rss::default(), &none).unwrap()), []);
    }

    #[test]
    fn what_a_driver_lacks_is_said() {
        let asked = Rss {
            key: Some(vec![1; 52]),
            hash_types: Some(RssHashTypes::IPV4 | RssHashTypes::IPV6),
            reta: Reta::Table(vec![1, 0]),
        };
        let agreement = agree(2, &asked, &info()).unwrap();
        assert_eq!(
            lacks(&agreement),
            [
                Lack::HashTypes {
                    asked: RssHashTypes::IPV4 | RssHashTypes::IPV6,
                    given: RssHashTypes::IPV4
                },
                Lack::Key { asked: 52, takes: 40 },
                Lack::RetaSize { asked: 2, has: 8 },
            ]
        );
        assert_eq!(agreement.reta, [1, 0, 1, 0, 1, 0, 1, 0]);
        assert_eq!(
            agreement.shortfalls[0].to_string(),
            "port 3: RSS by ipv4 ipv6 was requested, but the driver hashes by ipv4"
        );
        let none = PortInfo { raw_hash_types: 0, ..info() };
        let agreement = agree(2, &asked, &none).unwrap();
        assert_eq!(lacks(&agreement), [Lack::Rss { queues: 2 }]);
        assert!(agreement.reta.is_empty() && agreement.key.is_none());
        let fixed = PortInfo { reta_size: 0, ..info() };
        assert!(lacks(&agree(2, &asked, &fixed).unwrap()).contains(&Lack::Reta));
        let other = Rss { hash_types: Some(RssHashTypes::MPLS), ..asked };
        let agreement = agree(2, &other, &info()).unwrap();
        assert_eq!((agreement.hash_types, agreement.reta.len()), (0, 0));
        assert_eq!(lacks(&agreement).len(), 1);
    }

    #[test]
    fn a_table_that_is_made_at_the_start_is_filled_then() {
        let asked = Rss { reta: Reta::Table(vec![1, 0]), ..Rss::default() };
        let mut agreement = agree(2, &asked, &PortInfo { reta_size: 0, ..info() }).unwrap();
        assert_eq!((&agreement.reta[..], &lacks(&agreement)[..]), (&[][..], &[Lack::Reta][..]));
        agreement.reta(PortId(3), 2);
        assert_eq!((&agreement.reta[..], &lacks(&agreement)[..]), (&[1, 0][..], &[][..]));
        agreement.reta(PortId(3), 3);
        assert_eq!(agreement.reta, [1, 0, 1]);
        assert_eq!(lacks(&agreement), [Lack::RetaSize { asked: 2, has: 3 }]);
        let mut of_the_driver = agree(2, &Rss::default(), &info()).unwrap();
        of_the_driver.reta(PortId(3), 0);
        assert_eq!((of_the_driver.reta.len(), lacks(&of_the_driver).len()), (0, 0));
    }

    #[test]
    fn of_wanted_offloads_that_exclude_each_other_one_is_left_out() {
        let (lro, crc) = (RxOffloads::TCP_LRO, RxOffloads::KEEP_CRC);
        let info = PortInfo { rx_offloads: lro | crc, ..info() };
        for (required, wanted, given) in [
            (RxOffloads::EMPTY, lro | crc, Some(lro)),
            (crc, lro, Some(crc)),
            (lro, crc, Some(lro)),
            (lro | crc, RxOffloads::EMPTY, None),
            (RxOffloads::EMPTY, crc, None),
        ] {
            let config =
                PortConfig { rx_offloads: Request { required, wanted }, ..PortConfig::default() };
            let agreement = Agreement::of(PortId(3), &config, &info).unwrap();
            let all = required | wanted;
            assert_eq!(agreement.rx_offloads, given.unwrap_or(all));
            let lack = given.map(|given| Lack::RxOffloads { missing: all - given, given });
            assert_eq!(lacks(&agreement), lack.into_iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_table_of_queues_that_are_not_there_is_an_error() {
        let asked = Rss { reta: Reta::RoundRobin(vec![0, 2]), ..Rss::default() };
        assert!(agree(3, &asked, &info()).is_ok());
        let error = agree(2, &asked, &info()).unwrap_err();
        assert!(matches!(error, PortError::RetaQueue { queue: 2, queues: 2, .. }), "{error}");
    }

    #[test]
    fn required_is_an_error_and_wanted_a_shortfall() {
        let config = PortConfig {
            rx_offloads: Request {
                required: RxOffloads::VLAN_STRIP,
                wanted: RxOffloads::RSS_HASH | RxOffloads::SCATTER,
            },
            tx_offloads: Request::wanted(TxOffloads::MULTI_SEGS | TxOffloads::TCP_TSO),
            ..PortConfig::default()
        };
        let agreement = Agreement::of(PortId(3), &config, &info()).unwrap();
        // Without RSS there is no hash to carry.
        let missing = RxOffloads::RSS_HASH | RxOffloads::SCATTER;
        assert_eq!(agreement.rx_offloads, RxOffloads::VLAN_STRIP);
        assert_eq!(agreement.tx_offloads, TxOffloads::MULTI_SEGS);
        assert_eq!(
            lacks(&agreement),
            [
                Lack::RxOffloads { missing, given: RxOffloads::VLAN_STRIP },
                Lack::TxOffloads { missing: TxOffloads::TCP_TSO, given: TxOffloads::MULTI_SEGS },
            ]
        );
        let config = PortConfig {
            rx_offloads: Request::required(RxOffloads::SCATTER | RxOffloads::VLAN_STRIP),
            ..PortConfig::default()
        };
        let error = Agreement::of(PortId(3), &config, &info()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "port 3: required RX offloads not supported by the driver: SCATTER; supported: VLAN_STRIP"
        );
        let config = PortConfig {
            tx_offloads: Request::required(TxOffloads::TCP_TSO),
            ..PortConfig::default()
        };
        let error = Agreement::of(PortId(3), &config, &info()).unwrap_err();
        assert!(matches!(error, PortError::TxOffloads { .. }), "{error}");
    }
}
