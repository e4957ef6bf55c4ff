// SPDX-License-Identifier: BSD-3-Clause
//! The native burst functions run RX and TX callbacks as C's inline functions do. Otherwise a
//! forwarder would seem faster than it is, and would be invisible to dpdk-dumpcap.
#![allow(clippy::unwrap_used, clippy::expect_used)] // A test may.

mod support;

use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use dpdk::{Burst, Mempool, PoolConfig};
use dpdk_sys::rte_mbuf;

#[derive(Default)]
struct Seen {
    rx_calls: AtomicU64,
    rx_packets: AtomicU64,
    tx_calls: AtomicU64,
    tx_packets: AtomicU64,
    /// Number of packets that the TX callback frees, from the end of each burst.
    tx_drop: AtomicU64,
}

unsafe extern "C" fn on_rx(
    _port: u16,
    _queue: u16,
    _packets: *mut *mut rte_mbuf,
    received: u16,
    _max: u16,
    seen: *mut c_void,
) -> u16 {
    // SAFETY: registered with a `Seen` that outlives the callback.
    let seen = unsafe { &*seen.cast::<Seen>() };
    seen.rx_calls.fetch_add(1, SeqCst);
    seen.rx_packets.fetch_add(u64::from(received), SeqCst);
    received
}

unsafe extern "C" fn on_tx(
    _port: u16,
    _queue: u16,
    packets: *mut *mut rte_mbuf,
    offered: u16,
    seen: *mut c_void,
) -> u16 {
    // SAFETY: registered with a `Seen` that outlives the callback.
    let seen = unsafe { &*seen.cast::<Seen>() };
    seen.tx_calls.fetch_add(1, SeqCst);
    seen.tx_packets.fetch_add(u64::from(offered), SeqCst);
    let kept = offered - seen.tx_drop.load(SeqCst) as u16;
    for index in kept..offered {
        // SAFETY: the callback owns the packets that it removes.
        unsafe { dpdk_sys::lr_pktmbuf_free(*packets.add(usize::from(index))) };
    }
    kept
}

#[test]
fn callbacks_run() {
    let eal = support::eal(&["net_ring0"]);
    let pool = Mempool::packet_pool(&eal, &PoolConfig::named("packets")).unwrap();
    let mut port = support::started(&eal, &pool, "net_ring0");
    let id = port.id().index();
    let seen = Seen::default();
    let user = (&raw const seen).cast_mut().cast::<c_void>();
    // SAFETY: the port is configured; `seen` outlives the callbacks, which are removed below.
    let (rx_callback, tx_callback) = unsafe {
        (
            dpdk_sys::rte_eth_add_rx_callback(id, 0, Some(on_rx), user),
            dpdk_sys::rte_eth_add_tx_callback(id, 0, Some(on_tx), user),
        )
    };
    assert!(!rx_callback.is_null() && !tx_callback.is_null());

    let mut queues = port.queues();
    let mut burst = Burst::<32>::new();
    assert_eq!(queues.rx[0].receive(&mut burst), 0);
    assert_eq!(seen.rx_calls.load(SeqCst), 1, "empty polls too");
    pool.fill(&mut burst, 10).unwrap();
    assert_eq!(queues.tx[0].send(&mut burst), 10);
    assert_eq!(queues.rx[0].receive(&mut burst), 10);
    assert_eq!((seen.rx_calls.load(SeqCst), seen.rx_packets.load(SeqCst)), (2, 10));
    assert_eq!((seen.tx_calls.load(SeqCst), seen.tx_packets.load(SeqCst)), (1, 10));

    // Packets dropped by a callback are neither sent nor left over, and not freed twice.
    seen.tx_drop.store(3, SeqCst);
    assert_eq!(queues.tx[0].send(&mut burst), 7);
    assert!(burst.is_empty());
    assert_eq!(pool.in_use(), 7);

    // SAFETY: nothing polls the queues now.
    unsafe {
        assert_eq!(dpdk_sys::rte_eth_remove_rx_callback(id, 0, rx_callback), 0);
        assert_eq!(dpdk_sys::rte_eth_remove_tx_callback(id, 0, tx_callback), 0);
    }
    assert_eq!(queues.rx[0].receive(&mut burst), 7);
    assert_eq!(seen.rx_calls.load(SeqCst), 2, "removed");
    drop(burst);
    assert!(pool.is_full());
}
