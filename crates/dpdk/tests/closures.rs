// SPDX-License-Identifier: BSD-3-Clause
//! Callbacks that are closures. One test, because DPDK starts once in a process.
#![allow(clippy::unwrap_used, clippy::expect_used)] // A test may.

mod support;

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

use dpdk::{Burst, Eal, Mbuf, Mempool, PoolConfig, Port, Started};
use dpdk_sys::rte_mbuf;

#[test]
fn closures_on_queues() {
    let eal = support::eal(&["net_ring0", "net_ring1"]);
    let pool = Mempool::packet_pool(&eal, &PoolConfig::named("packets")).unwrap();
    {
        let mut port = support::started(&eal, &pool, "net_ring0");
        received_packets_are_changed_dropped_and_reordered(&mut port, &pool);
        received_packets_are_kept_and_added(&mut port, &pool);
        packets_to_be_sent_are_dropped_and_reordered(&mut port, &pool);
        they_run_in_order_and_come_off_one_by_one(&mut port);
        they_end_with_their_queue(&mut port, &pool);
        those_of_a_forgotten_queue_never_run_again(&mut port, &pool);
        a_panic_in_a_drop_leaves_none_on_the_list(&mut port);
        those_of_others_stay(&mut port, &pool);
        they_go_where_their_queue_goes(&eal, &mut port);
    }
    those_of_a_forgotten_queue_do_not_outlive_a_stop(&eal, &pool);
    one_may_own_another_queue(&eal, &pool);
    assert!(pool.is_full(), "{} mbufs are missing", pool.in_use());
}

/// A burst of 60-byte packets that begin with their number.
fn numbered<'m>(pool: &Mempool<'m>, count: u8) -> Burst<'m, 32> {
    let mut burst = Burst::new();
    for number in 0..count {
        assert!(burst.push(packet(pool, number)).is_ok());
    }
    burst
}

fn packet<'m>(pool: &Mempool<'m>, number: u8) -> Mbuf<'m> {
    let mut mbuf = pool.alloc().unwrap();
    mbuf.resize(60).unwrap().fill(number);
    mbuf
}

fn number(packet: &Mbuf<'_>) -> u8 {
    packet.data()[0]
}

fn numbers(burst: &Burst<'_, 32>) -> Vec<u8> {
    burst.iter().map(number).collect()
}

/// Sets a flag when it is dropped.
struct Sets(Arc<AtomicBool>);

impl Drop for Sets {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

fn received_packets_are_changed_dropped_and_reordered(
    port: &mut Port<'_, Started>,
    pool: &Mempool<'_>,
) {
    let polls = AtomicU64::new(0);
    let mut queues = port.queues();
    let id = queues.rx[0]
        .add_callback(|packets| {
            polls.fetch_add(1, SeqCst);
            packets.retain(|packet| number(packet) % 3 != 0);
            packets.as_mut_slice().reverse();
            for packet in packets.iter_mut() {
                packet.data_mut().unwrap()[0] += 100;
            }
        })
        .unwrap();
    let mut burst = Burst::new();
    assert_eq!(queues.rx[0].receive(&mut burst), 0);
    assert_eq!(polls.load(SeqCst), 1, "a poll that finds nothing");
    queues.tx[0].send(&mut numbered(pool, 8));
    assert_eq!(queues.rx[0].receive(&mut burst), 5);
    assert_eq!(numbers(&burst), [107, 105, 104, 102, 101]);
    burst.clear();
    // After the packets already in the burst, which the callback does not see.
    assert!(burst.push(packet(pool, 50)).is_ok());
    queues.tx[0].send(&mut numbered(pool, 3));
    assert_eq!(queues.rx[0].receive(&mut burst), 2);
    assert_eq!(numbers(&burst), [50, 102, 101]);
    burst.clear();
    assert!(queues.rx[0].remove_callback(id));
    assert!(!queues.rx[0].remove_callback(id), "it is gone");
    queues.tx[0].send(&mut numbered(pool, 3));
    queues.rx[0].receive(&mut burst);
    assert_eq!(numbers(&burst), [0, 1, 2]);
    assert_eq!(polls.load(SeqCst), 3);
}

/// Every second packet waits for the next poll.
fn received_packets_are_kept_and_added(port: &mut Port<'_, Started>, pool: &Mempool<'_>) {
    let room = Mutex::new(Vec::new());
    let room = &room;
    let mut queues = port.queues();
    let mut kept = Vec::new();
    queues.rx[0]
        .add_callback(move |packets| {
            room.lock().unwrap().push((packets.len(), packets.spare()));
            let mut late: Vec<Mbuf<'_>> = std::mem::take(&mut kept);
            for index in (0..packets.len()).rev().step_by(2) {
                kept.extend(packets.remove(index));
            }
            assert!(packets.remove(packets.len()).is_none());
            while let Some(packet) = late.pop() {
                if let Err(packet) = packets.push(packet) {
                    kept.push(packet);
                }
            }
        })
        .unwrap();
    queues.tx[0].send(&mut numbered(pool, 5));
    let mut burst = Burst::<32>::new();
    assert_eq!(queues.rx[0].receive(&mut burst), 2);
    assert_eq!(numbers(&burst), [1, 3]);
    assert_eq!(queues.rx[0].receive(&mut burst), 3);
    assert_eq!(numbers(&burst), [1, 3, 0, 2, 4]);
    assert_eq!(*room.lock().unwrap(), [(5, 27), (0, 30)]);
    burst.clear();
    // At most as many as the poll has room for.
    queues.tx[0].send(&mut numbered(pool, 5));
    let mut small = Burst::<1>::new();
    assert_eq!(queues.rx[0].receive(&mut small), 0, "it waits");
    assert_eq!(queues.rx[0].receive(&mut small), 1);
    small.clear();
    support::empty(&mut queues.rx[0]);
    // Packets that the closure has kept are dropped with it.
    queues.tx[0].send(&mut numbered(pool, 1));
    assert_eq!(queues.rx[0].receive(&mut small), 0);
    assert_eq!(pool.in_use(), 1);
    drop(queues);
    assert_eq!(pool.in_use(), 0);
}

fn packets_to_be_sent_are_dropped_and_reordered(port: &mut Port<'_, Started>, pool: &Mempool<'_>) {
    let mut queues = port.queues();
    let id = queues.tx[0]
        .add_callback(|packets| {
            assert_eq!(packets.spare(), 0);
            let first = packets.remove(0).unwrap();
            packets.retain(|packet| number(packet) != 2);
            packets.push(first).ok().unwrap();
            packets.truncate(4);
        })
        .unwrap();
    let mut burst = numbered(pool, 6);
    assert_eq!(queues.tx[0].send(&mut burst), 4, "what it dropped is not counted");
    assert!(burst.is_empty());
    assert_eq!(pool.in_use(), 4, "and was freed");
    queues.rx[0].receive(&mut burst);
    assert_eq!(numbers(&burst), [1, 3, 4, 5]);
    burst.clear();
    assert!(queues.tx[0].remove_callback(id));
    queues.tx[0].send(&mut numbered(pool, 6));
    queues.rx[0].receive(&mut burst);
    assert_eq!(burst.len(), 6);
    burst.clear();
    // No packet is left, so none is offered.
    queues.tx[0].add_callback(|packets| packets.clear()).unwrap();
    burst = numbered(pool, 6);
    assert_eq!(queues.tx[0].send(&mut burst), 0);
    assert!(burst.is_empty() && pool.is_full());
}

fn they_run_in_order_and_come_off_one_by_one(port: &mut Port<'_, Started>) {
    let log = Mutex::new(Vec::new());
    let log = &log;
    let mut queues = port.queues();
    let ids: Vec<_> = (0..4)
        .map(|n| queues.rx[0].add_callback(move |_| log.lock().unwrap().push(n)).unwrap())
        .collect();
    let sent = queues.tx[0].add_callback(|_| {}).unwrap();
    let mut burst = Burst::<4>::new();
    queues.rx[0].receive(&mut burst);
    assert_eq!(*log.lock().unwrap(), [0, 1, 2, 3]);
    assert!(!queues.rx[0].remove_callback(sent), "another queue's");
    assert!(!queues.tx[0].remove_callback(ids[1]));
    assert!(queues.rx[0].remove_callback(ids[1]));
    assert!(queues.rx[0].remove_callback(ids[3]));
    queues.rx[0].receive(&mut burst);
    assert_eq!(log.lock().unwrap()[4..], [0, 2]);
    assert!(queues.tx[0].remove_callback(sent));
}

fn they_end_with_their_queue(port: &mut Port<'_, Started>, pool: &Mempool<'_>) {
    let (rx_gone, tx_gone) = (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default());
    let mut queues = port.queues();
    let (one, other) = (Sets(rx_gone.clone()), Sets(tx_gone.clone()));
    queues.rx[0]
        .add_callback(move |packets| {
            packets.clear();
            assert!(!one.0.load(SeqCst));
        })
        .unwrap();
    queues.tx[0].add_callback(move |_| assert!(!other.0.load(SeqCst))).unwrap();
    queues.tx[0].send(&mut numbered(pool, 4));
    assert_eq!(queues.rx[0].receive(&mut Burst::<32>::new()), 0);
    queues.rx.clear();
    assert_eq!((rx_gone.load(SeqCst), tx_gone.load(SeqCst)), (true, false));
    queues.tx.clear();
    assert!(tx_gone.load(SeqCst));
    drop(queues);
    let mut queues = port.queues();
    queues.tx[0].send(&mut numbered(pool, 4));
    let mut burst = Burst::<32>::new();
    assert_eq!(queues.rx[0].receive(&mut burst), 4, "the next owner has none of them");
}

/// Panics when it is dropped.
struct Panics;

impl Drop for Panics {
    fn drop(&mut self) {
        panic!("a closure's own panic, which the test catches");
    }
}

fn a_panic_in_a_drop_leaves_none_on_the_list(port: &mut Port<'_, Started>) {
    let gone: [Arc<AtomicBool>; 2] = Default::default();
    {
        // Dropped at the end of this block, after those that borrow it.
        let calls = AtomicU64::new(0);
        let calls = &calls;
        let mut queues = port.queues();
        // On both sides, because they are removed one after the other.
        let [first, last] = [Sets(gone[0].clone()), Sets(gone[1].clone())];
        let count = |sets: &Sets| {
            calls.fetch_add(1 + u64::from(sets.0.load(SeqCst)), SeqCst);
        };
        queues.rx[0].add_callback(move |_| count(&first)).unwrap();
        let panics = Panics;
        queues.rx[0].add_callback(move |_| assert_eq!(size_of_val(&panics), 0)).unwrap();
        queues.rx[0].add_callback(move |_| count(&last)).unwrap();
        queues.rx[0].receive(&mut Burst::<32>::new());
        assert_eq!(calls.load(SeqCst), 2);
        let queue = queues.rx.remove(0);
        assert!(catch_unwind(AssertUnwindSafe(|| drop(queue))).is_err());
        assert!(gone.iter().all(|gone| gone.load(SeqCst)), "the others are dropped all the same");
        drop(queues);
        // This would call a callback that should have been removed.
        let mut queues = port.queues();
        queues.rx[0].receive(&mut Burst::<32>::new());
        assert_eq!(calls.load(SeqCst), 2);
    }
}

fn those_of_a_forgotten_queue_never_run_again(port: &mut Port<'_, Started>, pool: &Mempool<'_>) {
    let gone = Arc::<AtomicBool>::default();
    {
        // Dropped at the end of this block, whatever happens to the closures that borrow it.
        let calls = AtomicU64::new(0);
        let calls = &calls;
        let mut queues = port.queues();
        let sets = Sets(gone.clone());
        queues.rx[0]
            .add_callback(move |packets| {
                packets.clear();
                calls.fetch_add(u64::from(!sets.0.load(SeqCst)), SeqCst);
            })
            .unwrap();
        queues.tx[0]
            .add_callback(move |packets| {
                packets.clear();
                calls.fetch_add(1, SeqCst);
            })
            .unwrap();
        queues.rx[0].receive(&mut Burst::<32>::new());
        assert_eq!(calls.load(SeqCst), 1);
        queues.rx.drain(..).for_each(std::mem::forget);
        queues.tx.drain(..).for_each(std::mem::forget);
    }
    let mut queues = port.queues();
    queues.tx[0].send(&mut numbered(pool, 4));
    let mut burst = Burst::<32>::new();
    assert_eq!(queues.rx[0].receive(&mut burst), 4);
    assert!(!gone.load(SeqCst), "leaked: what it borrows may be gone");
}

static FOREIGN: AtomicU64 = AtomicU64::new(0);

/// Notes how many packets it sees.
unsafe extern "C" fn foreign(
    _port: u16,
    _queue: u16,
    _packets: *mut *mut rte_mbuf,
    received: u16,
    _room: u16,
    _user: *mut c_void,
) -> u16 {
    FOREIGN.store(received.into(), SeqCst);
    received
}

/// C callbacks keep their position between closures, and stay when closures are removed.
fn those_of_others_stay(port: &mut Port<'_, Started>, pool: &Mempool<'_>) {
    let id = port.id().index();
    let mut queues = port.queues();
    let first = queues.rx[0].add_callback(|packets| packets.truncate(5)).unwrap();
    // SAFETY: the port is configured, and the function is static.
    let record =
        unsafe { dpdk_sys::rte_eth_add_rx_callback(id, 0, Some(foreign), std::ptr::null_mut()) };
    assert!(!record.is_null());
    queues.rx[0].add_callback(|packets| packets.truncate(2)).unwrap();
    let seen = |queues: &mut dpdk::Queues<'_>| {
        let mut burst = Burst::<32>::new();
        queues.tx[0].send(&mut numbered(pool, 8));
        let received = queues.rx[0].receive(&mut burst);
        (FOREIGN.swap(0, SeqCst), received)
    };
    assert_eq!(seen(&mut queues), (5, 2));
    assert!(queues.rx[0].remove_callback(first));
    assert_eq!(seen(&mut queues), (8, 2));
    drop(queues);
    assert_eq!(seen(&mut port.queues()), (8, 8));
    // SAFETY: nothing polls; the record is ours.
    unsafe {
        assert_eq!(dpdk_sys::rte_eth_remove_rx_callback(id, 0, record), 0);
        dpdk_sys::rte_free(record.cast_mut().cast());
    }
    assert_eq!(seen(&mut port.queues()), (0, 8));
}

fn they_go_where_their_queue_goes(eal: &Eal, port: &mut Port<'_, Started>) {
    let last = AtomicU64::new(0);
    let told = &last;
    let mut polls = 0_u64;
    let mut rx = port.queues().rx.remove(0);
    rx.add_callback(move |_| {
        polls += 1;
        told.store(polls, SeqCst);
    })
    .unwrap();
    let poll = move || {
        let mut burst = Burst::<32>::new();
        (0..1000).for_each(|_| assert_eq!(rx.receive(&mut burst), 0));
    };
    eal.scope(|scope| scope.launch(eal.workers()[0], poll)).unwrap();
    assert_eq!(last.load(SeqCst), 1000);
}

/// The port is stopped, started again and given to another owner; DPDK keeps its lists meanwhile.
fn those_of_a_forgotten_queue_do_not_outlive_a_stop(eal: &Eal, pool: &Mempool<'_>) {
    let lists = || {
        // SAFETY: the port exists; C's bursts run the callbacks in its lists. Nothing else polls
        // it.
        let received = unsafe {
            let mut packets = [std::ptr::null_mut(); 32];
            dpdk_sys::lr_eth_rx_burst(0, 0, packets.as_mut_ptr(), 32)
        };
        assert_eq!(received, 0);
    };
    let calls = Arc::<AtomicU64>::default();
    let forget = |port: &mut Port<'_, Started>| {
        assert_eq!(port.id().index(), 0);
        let mut rx = port.queues().rx.remove(0);
        let calls = calls.clone();
        rx.add_callback(move |_| {
            calls.fetch_add(1, SeqCst);
        })
        .unwrap();
        std::mem::forget(rx);
    };
    let mut port = support::started(eal, pool, "net_ring0");
    forget(&mut port);
    lists();
    assert_eq!(calls.load(SeqCst), 1, "forgotten and called, were somebody to poll");
    let mut port = port.stop().unwrap().start().unwrap();
    lists();
    assert_eq!(calls.load(SeqCst), 1);
    forget(&mut port);
    drop(port);
    let port = support::started(eal, pool, "net_ring0");
    lists();
    assert_eq!(calls.load(SeqCst), 1);
    drop(port);
}

/// A callback of one port sends received packets on another port's queue; dropping one queue drops
/// the other.
fn one_may_own_another_queue(eal: &Eal, pool: &Mempool<'_>) {
    let mut one = support::started(eal, pool, "net_ring0");
    let mut other = support::started(eal, pool, "net_ring1");
    let mut to = other.queues();
    let mut from = one.queues();
    let gone = Arc::<AtomicBool>::default();
    let sets = Sets(gone.clone());
    let mut tx = to.tx.remove(0);
    tx.add_callback(move |_| assert!(!sets.0.load(SeqCst))).unwrap();
    from.rx[0]
        .add_callback(move |packets| {
            let mut burst = Burst::<32>::new();
            while let Some(packet) = packets.pop() {
                burst.push(packet).ok().unwrap();
            }
            tx.send(&mut burst);
        })
        .unwrap();
    from.tx[0].send(&mut numbered(pool, 3));
    let mut burst = Burst::new();
    assert_eq!(from.rx[0].receive(&mut burst), 0);
    assert_eq!(to.rx[0].receive(&mut burst), 3);
    assert_eq!(numbers(&burst), [2, 1, 0]);
    drop(from);
    assert!(gone.load(SeqCst));
}
