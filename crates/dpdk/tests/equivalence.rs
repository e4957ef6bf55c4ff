// SPDX-License-Identifier: BSD-3-Clause
//! The native functions against C's inline functions, on the same random requests: two pools and two
//! ring ports of the same shape, one driven through Rust, one through the C shim. After each step both
//! sides must be in the same state.
#![allow(clippy::unwrap_used, clippy::expect_used)] // A test may.

mod support;

use std::cell::RefCell;
use std::ptr::null_mut;

use dpdk::{Burst, Eal, Mempool, PoolConfig, Port, PortConfig, RxConfig, Started, TxConfig};
use dpdk_sys::{layout, rte_mbuf, rte_mempool};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

/// Less than the pool's caches and rings hold together, so that every path is taken.
const MBUFS: u32 = 700;
const CACHE: u32 = 64;
const BURST: usize = 96;

#[test]
fn native_functions_do_what_c_does() {
    let eal = support::eal(&["net_ring0", "net_ring1"]);
    let native_pool = pool(&eal, "native");
    let c_pool = pool(&eal, "c");
    let mut native_port = port(&eal, 0, &native_pool);
    let c_port = port(&eal, 1, &c_pool);
    let c_id = c_port.id().index();
    // proptest wants a closure that could be called from anywhere.
    let queues = RefCell::new(native_port.queues());

    let step = prop_oneof![
        (1..=BURST).prop_map(Step::Alloc),
        (1..=BURST).prop_map(Step::Free),
        (1..=BURST).prop_map(Step::Send),
        (1..=BURST).prop_map(Step::Receive),
    ];
    let config = Config { cases: 100, failure_persistence: None, ..Config::default() };
    TestRunner::new(config)
        .run(&prop::collection::vec(step, 1..300), |steps| {
            let queues = &mut *queues.borrow_mut();
            let mut native: Vec<dpdk::Mbuf<'_>> = Vec::new();
            let mut c: Vec<*mut rte_mbuf> = Vec::new();
            for step in steps {
                match step {
                    Step::Alloc(n) => {
                        let mut burst = Burst::<BURST>::new();
                        let native_ok = native_pool.fill(&mut burst, n).is_ok();
                        let mut raw = vec![null_mut(); n];
                        let c_ok = c_alloc(&c_pool, &mut raw);
                        prop_assert_eq!(native_ok, c_ok);
                        native.extend(burst.drain());
                        if c_ok {
                            compare_fresh(&native[native.len() - n..], &raw)?;
                            c.extend(raw);
                        }
                    }
                    Step::Free(n) => {
                        let n = n.min(native.len());
                        native.truncate(native.len() - n);
                        for mbuf in c.drain(c.len() - n..).rev().collect::<Vec<_>>() {
                            // SAFETY: taken from the C side's pool and given up here.
                            unsafe { dpdk_sys::lr_pktmbuf_free(mbuf) };
                        }
                    }
                    Step::Send(n) => {
                        let n = n.min(native.len());
                        let mut burst = Burst::<BURST>::new();
                        for mbuf in native.drain(native.len() - n..) {
                            prop_assert!(burst.push(mbuf).is_ok());
                        }
                        let native_sent = queues.tx[0].send(&mut burst);
                        native.extend(burst.drain());
                        let mut raw = c.split_off(c.len() - n);
                        // SAFETY: the C port is started and used by this thread only.
                        let c_sent = unsafe {
                            dpdk_sys::lr_eth_tx_burst(c_id, 0, raw.as_mut_ptr(), n as u16)
                        };
                        c.extend(raw.drain(usize::from(c_sent)..));
                        prop_assert_eq!(native_sent, usize::from(c_sent));
                    }
                    Step::Receive(n) => {
                        let mut burst = Burst::<BURST>::new();
                        // Leaves room for n only.
                        let _ = native_pool.fill(&mut burst, BURST - n);
                        let fillers = burst.len();
                        let mut filler_raw = vec![null_mut(); BURST - n];
                        let c_fillers = n < BURST && c_alloc(&c_pool, &mut filler_raw);
                        prop_assert_eq!(fillers > 0, c_fillers);
                        let room = if fillers > 0 { n } else { BURST };
                        let received = queues.rx[0].receive(&mut burst);
                        let mut raw = vec![null_mut(); room];
                        // SAFETY: as above; there is room for that many.
                        let c_received = unsafe {
                            dpdk_sys::lr_eth_rx_burst(c_id, 0, raw.as_mut_ptr(), room as u16)
                        };
                        prop_assert_eq!(received, usize::from(c_received));
                        native.extend(burst.drain());
                        if c_fillers {
                            c.extend(filler_raw);
                        }
                        c.extend(&raw[..received]);
                    }
                }
                prop_assert_eq!(native.len(), c.len());
                prop_assert_eq!(native_pool.in_use(), c_pool.in_use());
                prop_assert_eq!(cache_len(&eal, "native"), cache_len(&eal, "c"));
            }
            native.clear();
            for mbuf in c {
                // SAFETY: taken from the C side's pool and given up here.
                unsafe { dpdk_sys::lr_pktmbuf_free(mbuf) };
            }
            empty_rings(queues, c_id);
            prop_assert!(native_pool.is_full() && c_pool.is_full());
            Ok(())
        })
        .unwrap();
    drop(c_port);
}

#[derive(Clone, Debug)]
enum Step {
    Alloc(usize),
    Free(usize),
    Send(usize),
    Receive(usize),
}

fn pool<'eal>(eal: &'eal Eal, name: &str) -> Mempool<'eal> {
    let config = PoolConfig { count: MBUFS, cache: CACHE, ..PoolConfig::named(name) };
    Mempool::packet_pool(eal, &config).unwrap()
}

fn port<'eal>(eal: &'eal Eal, index: usize, pool: &Mempool<'eal>) -> Port<'eal, Started> {
    eal.take_port(eal.ports()[index])
        .unwrap()
        .configure(&PortConfig {
            rx: vec![RxConfig::new(pool)],
            tx: vec![TxConfig::default()],
            ..PortConfig::default()
        })
        .unwrap()
        .start()
        .unwrap()
}

fn raw_pool(name: &str) -> *mut rte_mempool {
    let name = std::ffi::CString::new(name).unwrap();
    // SAFETY: looks a pool up by its name.
    let pool = unsafe { dpdk_sys::rte_mempool_lookup(name.as_ptr()) };
    assert!(!pool.is_null());
    pool
}

fn c_alloc(pool: &Mempool<'_>, raw: &mut [*mut rte_mbuf]) -> bool {
    assert!(pool.capacity() > 0);
    // SAFETY: there is room for that many.
    unsafe {
        dpdk_sys::lr_pktmbuf_alloc_bulk(raw_pool("c"), raw.as_mut_ptr(), raw.len() as u32) == 0
    }
}

/// Fresh packets are alike in every field but those that name the packet itself.
fn compare_fresh(native: &[dpdk::Mbuf<'_>], c: &[*mut rte_mbuf]) -> Result<(), TestCaseError> {
    for (native, c) in native.iter().zip(c) {
        // SAFETY: both are valid; `Mbuf` is transparent over its pointer.
        let (native, c) = unsafe {
            (
                std::slice::from_raw_parts(
                    std::mem::transmute_copy::<_, *const u8>(native),
                    layout::MBUF_SIZE,
                ),
                std::slice::from_raw_parts(c.cast::<u8>(), layout::MBUF_SIZE),
            )
        };
        // Everything between the addresses at the start and the pool, then what follows the pool.
        let fields = [layout::MBUF_DATA_OFF..layout::MBUF_POOL, layout::MBUF_POOL + 8..88];
        for range in fields {
            prop_assert_eq!(&native[range.clone()], &c[range]);
        }
    }
    Ok(())
}

/// What the main lcore's cache of a pool holds.
fn cache_len(eal: &Eal, name: &str) -> u32 {
    let lcore = eal.main_lcore().id() as usize;
    // SAFETY: the pool has a cache for each lcore.
    unsafe {
        let caches =
            *raw_pool(name).cast::<u8>().add(layout::MEMPOOL_LOCAL_CACHE).cast::<*mut u8>();
        *caches.add(lcore * layout::CACHE_STRIDE + layout::CACHE_LEN).cast::<u32>()
    }
}

fn empty_rings(queues: &mut dpdk::Queues<'_>, c_id: u16) {
    let mut burst = Burst::<BURST>::new();
    while queues.rx[0].receive(&mut burst) > 0 {
        burst.clear();
    }
    let mut raw = [null_mut(); BURST];
    loop {
        // SAFETY: the C port is started and used by this thread only.
        let n = unsafe { dpdk_sys::lr_eth_rx_burst(c_id, 0, raw.as_mut_ptr(), BURST as u16) };
        if n == 0 {
            return;
        }
        for mbuf in &raw[..usize::from(n)] {
            // SAFETY: received and given up here.
            unsafe { dpdk_sys::lr_pktmbuf_free(*mbuf) };
        }
    }
}
