// SPDX-License-Identifier: BSD-3-Clause
//! Offloads: their names, their negotiation, and what a port gets.

use std::collections::BTreeSet;
use std::ffi::{CStr, c_char};
use std::mem::MaybeUninit;

use dpdk::{Eal, Lack, Mempool, PortConfig, PortError, Request, RxOffloads, TxOffloads};

use super::devices::queues;
use super::take;

/// # Safety
/// DPDK's, which returns a static C string.
unsafe fn name(of: unsafe extern "C" fn(u64) -> *const c_char, bit: u64) -> &'static str {
    // SAFETY: the contract is the caller's.
    unsafe { CStr::from_ptr(of(bit)) }.to_str().unwrap()
}

fn bits(set: u64) -> impl Iterator<Item = u64> {
    (0..64).map(|bit| 1 << bit).filter(move |bit| set & bit != 0)
}

pub fn names_are_those_of_dpdk() {
    let ours: Vec<_> = RxOffloads::ALL.names().collect();
    let dpdks: BTreeSet<_> = bits(RxOffloads::ALL.bits())
        // SAFETY: such a function.
        .map(|bit| unsafe { name(dpdk_sys::rte_eth_dev_rx_offload_name, bit) })
        .collect();
    assert_eq!(ours.iter().copied().collect::<BTreeSet<_>>(), dpdks);
    for (bit, named) in [(RxOffloads::SCATTER, "SCATTER"), (RxOffloads::RSS_HASH, "RSS_HASH")] {
        // SAFETY: such a function.
        assert_eq!(unsafe { name(dpdk_sys::rte_eth_dev_rx_offload_name, bit.bits()) }, named);
        assert_eq!(bit.to_string(), named);
    }
    let ours: BTreeSet<_> = TxOffloads::ALL.names().collect();
    let dpdks: BTreeSet<_> = bits(TxOffloads::ALL.bits())
        // SAFETY: such a function.
        .map(|bit| unsafe { name(dpdk_sys::rte_eth_dev_tx_offload_name, bit) })
        .collect();
    assert_eq!(ours, dpdks);
    assert!(!ours.contains("MBUF_FAST_FREE"));
}

/// The port's RX and TX offloads in DPDK's configuration.
fn conf_of(port: u16) -> (u64, u64) {
    // SAFETY: plain data that DPDK fills in.
    unsafe {
        let mut conf: dpdk_sys::rte_eth_conf = MaybeUninit::zeroed().assume_init();
        assert_eq!(dpdk_sys::rte_eth_dev_conf_get(port, &mut conf), 0);
        (conf.rxmode.offloads, conf.txmode.offloads)
    }
}

pub fn what_is_given_is_what_dpdk_has(eal: &Eal, pool: &Mempool<'_>) {
    for device in ["net_null0", "net_ring0"] {
        let port = take(eal, device);
        let info = port.info().unwrap();
        let (rx, tx) = (info.rx_offloads, info.tx_offloads);
        assert!(rx.contains(info.rx_queue_offloads) && tx.contains(info.tx_queue_offloads));
        let config = PortConfig {
            rx_offloads: Request::wanted(RxOffloads::ALL),
            tx_offloads: Request { required: tx, wanted: TxOffloads::ALL },
            ..queues(pool, 1)
        };
        let port = port.configure(&config).unwrap();
        assert_eq!((port.rx_offloads(), port.tx_offloads()), (rx - RxOffloads::RSS_HASH, tx));
        let given = (port.rx_offloads().bits(), port.tx_offloads().bits());
        assert_eq!(conf_of(port.id().index()), given, "{device}");
        let lacks: Vec<Lack> = port.shortfalls().iter().map(|shortfall| shortfall.lack).collect();
        let (missing_rx, missing_tx) = (RxOffloads::ALL - port.rx_offloads(), TxOffloads::ALL - tx);
        assert_eq!(
            lacks,
            [
                Lack::RxOffloads { missing: missing_rx, given: port.rx_offloads() },
                Lack::TxOffloads { missing: missing_tx, given: tx },
            ]
        );
        let port = port.start().unwrap().stop().unwrap().unconfigure();
        let config =
            PortConfig { tx_offloads: Request::required(TxOffloads::ALL), ..queues(pool, 1) };
        let error = port.configure(&config).unwrap_err();
        let refused =
            matches!(&error, PortError::TxOffloads { missing, .. } if *missing == missing_tx);
        assert!(refused, "{error}");
        let text = error.to_string();
        assert!(missing_tx.names().all(|name| text.contains(name)), "{text}");
        // The port was returned: it can be taken again, and nothing of the request remains.
        let port = take(eal, device).configure(&queues(pool, 1)).unwrap();
        assert_eq!((port.rx_offloads(), port.shortfalls().len()), (RxOffloads::EMPTY, 0));
        assert_eq!(conf_of(port.id().index()), (0, 0));
    }
}
