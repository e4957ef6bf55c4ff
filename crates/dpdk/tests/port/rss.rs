// SPDX-License-Identifier: BSD-3-Clause
//! RSS: computed, negotiated, queried, changed.

use std::mem::MaybeUninit;

use dpdk::{Eal, Errno, Lack, Mempool, PortConfig, PortError, Reta, Rss, RssHashTypes, toeplitz};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::devices::queues;
use super::{refusal, take};

pub fn the_hash_is_that_of_dpdk() {
    let words = prop::collection::vec(any::<u32>(), 0..=9);
    TestRunner::new(Config { cases: 500, failure_persistence: None, ..Config::default() })
        .run(&(words, any::<[u8; 40]>()), |(mut words, key)| {
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
            // SAFETY: the count is the number of words, and the key has 40 bytes, four more than
            // nine words.
            let c = unsafe {
                dpdk_sys::lr_softrss(words.as_mut_ptr(), words.len() as u32, key.as_ptr())
            };
            prop_assert_eq!(toeplitz(&key, &bytes), Some(c));
            Ok(())
        })
        .unwrap();
}

pub fn a_driver_without_rss_says_so(eal: &Eal, pool: &Mempool<'_>) {
    let quiet = take(eal, "net_ring0").configure(&queues(pool, 1)).unwrap();
    assert_eq!(quiet.shortfalls(), []);
    let control = quiet.control();
    assert_eq!(refusal(control.rss_key()), Errno::ENOTSUP);
    assert!(control.reta().unwrap().is_empty());
    assert!(matches!(control.set_reta(&[0]), Err(PortError::RetaSize { takes: 0, .. })));
    drop(quiet);
    let rss = Rss { reta: Reta::RoundRobin(vec![0]), ..Rss::default() };
    let port = take(eal, "net_ring0").configure(&PortConfig { rss, ..queues(pool, 1) }).unwrap();
    let said: Vec<String> = port.shortfalls().iter().map(ToString::to_string).collect();
    let [said] = said.as_slice() else { panic!("{said:?}") };
    assert!(said.starts_with(&format!("port {}: RSS over 1 RX queues", port.id())), "{said}");
    // It works anyway.
    let mut port = port.start().unwrap();
    assert_eq!(port.queues().rx.len(), 1);
    assert_eq!(port.shortfalls().len(), 1);
    let port = port.stop().unwrap().unconfigure();
    assert_eq!(port.shortfalls(), []);
}

/// Key and hash types, as DPDK reports them.
fn hash_of(port: u16) -> ([u8; 40], u64) {
    let mut key = [0; 40];
    // SAFETY: plain data, for which all zeros are valid; the key is as long as net_null's.
    unsafe {
        let mut conf: dpdk_sys::rte_eth_rss_conf = MaybeUninit::zeroed().assume_init();
        conf.rss_key = key.as_mut_ptr();
        conf.rss_key_len = 40;
        assert_eq!(dpdk_sys::rte_eth_dev_rss_hash_conf_get(port, &mut conf), 0);
        (key, conf.rss_hf)
    }
}

/// The key in DPDK's configuration, which drivers read when the port starts.
fn configured_key(port: u16) -> Option<[u8; 40]> {
    // SAFETY: plain data that DPDK fills in; a key there has the given length, and lives as long as
    // the configuration.
    unsafe {
        let mut conf: dpdk_sys::rte_eth_conf = MaybeUninit::zeroed().assume_init();
        assert_eq!(dpdk_sys::rte_eth_dev_conf_get(port, &mut conf), 0);
        let rss = &conf.rx_adv_conf.rss_conf;
        (!rss.rss_key.is_null()).then(|| {
            assert_eq!(rss.rss_key_len, 40);
            *rss.rss_key.cast::<[u8; 40]>()
        })
    }
}

/// The table of 128 entries, as DPDK reports it.
fn table_of(port: u16) -> Vec<u16> {
    let mut groups = [dpdk_sys::rte_eth_rss_reta_entry64 { mask: u64::MAX, reta: [0; 64] }; 2];
    // SAFETY: two groups of 64.
    let code = unsafe { dpdk_sys::rte_eth_dev_rss_reta_query(port, groups.as_mut_ptr(), 128) };
    assert_eq!(code, 0);
    groups.iter().flat_map(|group| group.reta).collect()
}

pub fn a_driver_with_rss_does_what_it_is_told(eal: &Eal, pool: &Mempool<'_>) {
    let port = take(eal, "net_null0");
    let info = port.info().unwrap();
    assert_eq!((info.reta_size, info.rss_key_len), (128, 40));
    assert!(info.rss_hash_types.contains(RssHashTypes::IP | RssHashTypes::TCP | RssHashTypes::UDP));
    let types = RssHashTypes::IPV4 | RssHashTypes::IPV4_TCP;
    let rss = Rss {
        key: Some(Rss::MICROSOFT_KEY.to_vec()),
        hash_types: Some(types),
        reta: Reta::RoundRobin(vec![3, 1]),
    };
    let port = port.configure(&PortConfig { rss: rss.clone(), ..queues(pool, 4) }).unwrap();
    assert_eq!(port.shortfalls(), []);
    let port = port.start().unwrap();
    assert_eq!(port.shortfalls(), []);
    let (control, number) = (port.control(), port.id().index());
    assert_eq!(control.rss_hash_types().unwrap(), types);
    assert_eq!(hash_of(number).1, types.bits());
    let expected = rss.reta.entries(128);
    assert_eq!((control.reta().unwrap(), table_of(number)), (expected.clone(), expected));
    assert_eq!(control.rss_key().unwrap(), Rss::MICROSOFT_KEY);
    assert_eq!(hash_of(number).0, Rss::MICROSOFT_KEY);
    assert_eq!(configured_key(number), Some(Rss::MICROSOFT_KEY));

    // While the port is running.
    let table: Vec<u16> = (0..128).map(|entry| entry % 4).collect();
    control.set_reta(&table).unwrap();
    assert_eq!((control.reta().unwrap(), table_of(number)), (table.clone(), table));
    control.set_rss_hash(RssHashTypes::IPV6, Some(&Rss::SYMMETRIC_KEY)).unwrap();
    assert_eq!(control.rss_key().unwrap(), Rss::SYMMETRIC_KEY);
    assert_eq!(hash_of(number), (Rss::SYMMETRIC_KEY, RssHashTypes::IPV6.bits()));
    assert_eq!(control.rss_hash_types().unwrap(), RssHashTypes::IPV6);
    control.set_rss_hash(types, None).unwrap();
    assert_eq!(hash_of(number), (Rss::SYMMETRIC_KEY, types.bits()));

    // Each start restores the requested table.
    let port = port.stop().unwrap().start().unwrap();
    assert_eq!(control.reta().unwrap(), rss.reta.entries(128));

    assert_eq!(control.rss_key().unwrap(), Rss::MICROSOFT_KEY);

    // A new configuration does not inherit it.
    let port = port.stop().unwrap().unconfigure();
    let port = port.configure(&queues(pool, 2)).unwrap();
    assert_eq!(configured_key(number), None);
    assert_eq!(port.shortfalls(), []);
    assert_eq!(control.rss_hash_types().unwrap(), info.rss_hash_types);
    drop(port);

    let long = Rss {
        key: Some(vec![7; 52]),
        hash_types: Some(types | RssHashTypes::L3_SRC_ONLY),
        reta: Reta::Table(vec![1, 0, 0]),
    };
    let port =
        take(eal, "net_null0").configure(&PortConfig { rss: long, ..queues(pool, 2) }).unwrap();
    let lacks: Vec<Lack> = port.shortfalls().iter().map(|shortfall| shortfall.lack).collect();
    let asked = types | RssHashTypes::L3_SRC_ONLY;
    assert_eq!(
        lacks,
        [
            Lack::HashTypes { asked, given: asked & info.rss_hash_types },
            Lack::Key { asked: 52, takes: 40 },
            Lack::RetaSize { asked: 3, has: 128 },
        ]
    );
    let port = port.start().unwrap();
    assert_eq!(control.reta().unwrap()[..6], [1, 0, 0, 1, 0, 0]);
    drop(port);
}

pub fn what_cannot_be_is_refused(eal: &Eal, pool: &Mempool<'_>) {
    let rss = Rss { reta: Reta::Table(vec![0, 2]), ..Rss::default() };
    let error = take(eal, "net_null0").configure(&PortConfig { rss, ..queues(pool, 2) }).err();
    assert!(matches!(error, Some(PortError::RetaQueue { queue: 2, queues: 2, .. })));

    let port = take(eal, "net_null0").configure(&queues(pool, 2)).unwrap().start().unwrap();
    let (control, before) = (port.control(), port.control().reta().unwrap());
    let error = control.set_reta(&[0; 64]).unwrap_err();
    assert!(matches!(error, PortError::RetaSize { given: 64, takes: 128, .. }), "{error}");
    let error = control.set_reta(&[2; 128]).unwrap_err();
    assert!(matches!(error, PortError::RetaQueue { queue: 2, queues: 2, .. }), "{error}");
    assert_eq!(control.reta().unwrap(), before);
    let error = control.set_rss_hash(RssHashTypes::IP, Some(&[1; 39])).unwrap_err();
    assert!(matches!(error, PortError::KeySize { given: 39, takes: 40, .. }), "{error}");
    let missing = RssHashTypes::L3_SRC_ONLY;
    assert!(!port.info().unwrap().rss_hash_types.contains(missing));
    let error = control.set_rss_hash(missing | RssHashTypes::IP, None).unwrap_err();
    assert!(
        matches!(error, PortError::HashTypes { missing: named, .. } if named == missing),
        "{error}"
    );
}
