// SPDX-License-Identifier: BSD-3-Clause
//! Extended statistics by their identifiers.

use std::ffi::CString;

use dpdk::{Burst, Eal, Mempool, XstatsError};

use super::devices::queues;
use super::take;

pub fn values_are_those_of_dpdk(eal: &Eal, pool: &Mempool<'_>) {
    let mut port = take(eal, "net_null0").configure(&queues(pool, 2)).unwrap().start().unwrap();
    let (control, number) = (port.control(), port.id().index());
    let names = control.xstat_names().unwrap();
    assert!(!names.is_empty() && names.len() == names.iter().count());
    for (place, name) in names.iter().enumerate() {
        let mut id = u64::MAX;
        let text = CString::new(name).unwrap();
        // SAFETY: a C string and a plain out-parameter.
        let code =
            unsafe { dpdk_sys::rte_eth_xstats_get_id_by_name(number, text.as_ptr(), &mut id) };
        assert_eq!((code, id), (0, place as u64), "{name}");
    }
    control.reset_stats().unwrap();
    let chosen = ["rx_good_bytes", "rx_good_packets", "rx_q1_packets"];
    let ids = names.select(&chosen).unwrap();
    assert_eq!((ids.len(), ids.is_empty()), (3, false));
    let mut values = [u64::MAX; 3];
    control.xstats_into(&ids, &mut values).unwrap();
    assert_eq!(values, [0; 3]);
    let mut burst = Burst::<32>::new();
    let mut queues = port.queues();
    for _ in 0..10 {
        burst.clear();
        assert_eq!(queues.rx[1].receive(&mut burst), 32);
    }
    drop(burst);
    control.xstats_into(&ids, &mut values).unwrap();
    assert_eq!(values[1..], [320, 320]);
    let (all, mut every) = (names.all(), vec![0; names.len()]);
    control.xstats_into(&all, &mut every).unwrap();
    assert_eq!(names.iter().zip(&every).find(|(name, _)| *name == chosen[1]).unwrap().1, &320);
    assert_eq!(control.stats().unwrap().ipackets, 320);
    control.reset_xstats().unwrap();
    control.xstats_into(&ids, &mut values).unwrap();
    assert_eq!(values, [0; 3]);
    let error = control.xstats_into(&ids, &mut [0; 2]).unwrap_err();
    assert!(matches!(error, XstatsError::Room { asked: 3, room: 2 }), "{error}");
    let error = names.select(&["rx_good_packets", "rx_good_pockets"]).unwrap_err();
    assert!(error.to_string().contains("\"rx_good_pockets\""), "{error}");
    control.xstats_into(&names.select::<&str>(&[]).unwrap(), &mut []).unwrap();
}

pub fn numbers_are_good_for_one_configuration(eal: &Eal, pool: &Mempool<'_>) {
    let two = take(eal, "net_null0").configure(&queues(pool, 2)).unwrap();
    let control = two.control();
    let before = control.xstat_names().unwrap();
    let ids = before.select(&["rx_q1_packets"]).unwrap();
    control.xstats_into(&ids, &mut [0]).unwrap();
    let other = take(eal, "net_ring0").configure(&queues(pool, 1)).unwrap().control();
    let foreign = other.xstats_into(&ids, &mut [0]).unwrap_err();
    assert!(matches!(foreign, XstatsError::Changed(_)), "{foreign}");
    // After another configuration, or even the same one again, the old identifiers are not valid.
    let mut port = two.unconfigure();
    for count in [1, 2] {
        let configured = port.configure(&queues(pool, count)).unwrap();
        let error = control.xstats_into(&ids, &mut [0]).unwrap_err();
        assert!(matches!(error, XstatsError::Changed(id) if id == control.id()), "{error}");
        let after = control.xstat_names().unwrap();
        assert_eq!(after.select(&["rx_q1_packets"]).is_ok(), count == 2);
        assert_ne!(after, before);
        assert_eq!(after.len() == before.len(), count == 2);
        control.xstats_into(&after.all(), &mut vec![0; after.len()]).unwrap();
        port = configured.unconfigure();
    }
}
