// SPDX-License-Identifier: BSD-3-Clause
//! Soundness holes that other Rust libraries for DPDK have, each shown to be closed here.
//! docs/safety.md lists them. Cases that do not compile are in ownership.rs; this file has those
//! that run.
//! One test, because DPDK starts once in a process.
#![allow(clippy::unwrap_used, clippy::expect_used)] // A test may.

mod support;

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use dpdk::{
    Burst, Eal, Mbuf, Mempool, PoolConfig, Port, RxQueue, ShareError, SharedMbuf, Started,
    TxBuffer, TxQueue,
};

#[test]
fn holes_are_closed() {
    let eal = support::eal(&["net_ring0", "net_null0,size=9000"]);
    let config = PoolConfig { count: 2047, cache: 64, ..PoolConfig::named("packets") };
    let pool = Mempool::packet_pool(&eal, &config).unwrap();
    no_double_free_after_tx_burst(&eal, &pool);
    no_queue_is_copy_clone_or_sync();
    no_slice_is_longer_than_its_buffer(&eal, &pool);
    no_mutable_view_of_a_shared_mbuf(&eal, &pool);
    no_leak_of_unsent_packets(&eal, &pool);
    no_count_of_owners_runs_over(&pool);
    no_count_of_owners_is_lost_between_threads(&eal, &pool);
    every_mbuf_is_there_once(&pool);
}

/// The pool is full, and all mbufs are different: one that was freed twice would be returned twice.
fn every_mbuf_is_there_once(pool: &Mempool<'_>) {
    assert!(pool.is_full());
    let all: Vec<Mbuf<'_>> = std::iter::from_fn(|| pool.alloc()).collect();
    // Another lcore's cache keeps its mbufs.
    assert_eq!(all.len(), pool.capacity() - pool.available());
    assert!(all.len() >= 1900);
    let places: BTreeSet<*const u8> = all.iter().map(|mbuf| mbuf.data().as_ptr()).collect();
    assert_eq!(places.len(), all.len());
    drop(all);
    assert!(pool.is_full());
}

/// Packets that the driver accepted belong to it: dropping the burst afterwards must not free them
/// again, whether the driver accepted all, some or none.
fn no_double_free_after_tx_burst(eal: &Eal, pool: &Mempool<'_>) {
    let mut port = support::started(eal, pool, "net_ring0");
    let mut queues = port.queues();
    let mut some = false;
    loop {
        let mut burst = Burst::<100>::new();
        pool.fill(&mut burst, 100).unwrap();
        let held = pool.in_use();
        let sent = queues.tx[0].send(&mut burst);
        assert_eq!(burst.len(), 100 - sent);
        assert_eq!(pool.in_use(), held, "sent packets are in the ring, the others in the burst");
        some |= (1..100).contains(&sent);
        drop(burst);
        assert_eq!(pool.in_use(), held - (100 - sent));
        if sent == 0 {
            break;
        }
    }
    assert!(some, "the ring once took a part");
    support::empty(&mut queues.rx[0]);
    drop(queues);
    every_mbuf_is_there_once(pool);
}

/// `true` if a type implements the trait: an inherent constant takes precedence over a trait's.
macro_rules! has {
    ($type:ty: $($bound:tt)+) => {{
        #[allow(dead_code)] // Where the type has the trait.
        trait Not { const HAS: bool = false; }
        struct Probe<T>(std::marker::PhantomData<T>);
        impl<T> Not for Probe<T> {}
        impl<T: $($bound)+> Probe<T> { #[allow(dead_code)] const HAS: bool = true; }
        Probe::<$type>::HAS
    }};
}

fn no_queue_is_copy_clone_or_sync() {
    assert!(has!(u8: Copy) && has!(u8: Sync), "the probe works");
    assert!(!has!(RxQueue<'static>: Sync) && !has!(TxQueue<'static>: Sync));
    assert!(!has!(RxQueue<'static>: Copy) && !has!(TxQueue<'static>: Copy));
    assert!(!has!(RxQueue<'static>: Clone) && !has!(TxQueue<'static>: Clone));
    assert!(!has!(TxBuffer<'static, 4>: Sync) && !has!(TxBuffer<'static, 4>: Clone));
    assert!(has!(RxQueue<'static>: Send) && has!(TxQueue<'static>: Send));
    assert!(!has!(Mbuf<'static>: Clone) && !has!(Burst<'static, 4>: Clone));
    assert!(!has!(Eal: Clone) && !has!(Eal: Send) && has!(Eal: Sync));
    assert!(has!(Port<'static, Started>: Send) && has!(Port<'static, Started>: Sync));
    assert!(has!(TxBuffer<'static, 4>: Send) && has!(Burst<'static, 4>: Send));
    assert!(has!(SharedMbuf<'static>: Send) && has!(SharedMbuf<'static>: Sync));
    assert!(has!(Mempool<'static>: Send) && has!(Mempool<'static>: Sync));
}

/// net_null claims 9000 bytes in buffers of 2048.
fn no_slice_is_longer_than_its_buffer(eal: &Eal, pool: &Mempool<'_>) {
    const ROOM: usize = 2048;
    let mut port = support::started(eal, pool, "net_null0");
    let mut queues = port.queues();
    let mut burst = Burst::<8>::new();
    assert_eq!(queues.rx[0].receive(&mut burst), 8);
    let mut mbufs = burst.drain();
    let mut next = || mbufs.next().unwrap();
    given_out(next());
    cut(next());
    cut_in_front(next());
    copied(next(), pool);
    chained(next(), next(), pool);
    drop(mbufs);
    assert!(pool.is_full());

    fn given_out(mut mbuf: Mbuf<'_>) {
        assert_eq!((mbuf.packet_len(), mbuf.data().len(), mbuf.tailroom()), (9000, ROOM, 0));
        assert_eq!(mbuf.data_mut().unwrap().len(), ROOM);
        assert_eq!(mbuf.segment_data().next().unwrap().len(), ROOM);
        assert_eq!(mbuf.segment_data_mut().next().unwrap().unwrap().len(), ROOM);
        assert!(mbuf.append(1).is_none() && mbuf.prepend(129).is_none());
        assert_eq!(mbuf.prepend(128).unwrap().len(), 128);
        assert_eq!(mbuf.data().len(), ROOM + 128);
    }

    fn cut(mut mbuf: Mbuf<'_>) {
        assert!(!mbuf.adj(ROOM + 1) && !mbuf.trim(ROOM + 1), "those bytes are not there");
        assert!(mbuf.trim(8));
        assert_eq!(
            (mbuf.data().len(), mbuf.packet_len(), mbuf.tailroom()),
            (ROOM - 8, ROOM - 8, 8)
        );
        assert!(mbuf.adj(ROOM - 8));
        assert!(mbuf.header_mut::<1>().is_none(), "nothing is left of what was claimed");
        assert_eq!((mbuf.data().len(), mbuf.headroom()), (0, ROOM + 120));
        assert!(!mbuf.adj(1) && mbuf.append(9).is_none());
    }

    fn cut_in_front(mut mbuf: Mbuf<'_>) {
        assert!(mbuf.adj(ROOM));
        assert!(mbuf.header_mut::<1>().is_none(), "nothing is left of what was claimed");
        assert_eq!((mbuf.data().len(), mbuf.headroom()), (0, ROOM + 128));
        assert!(!mbuf.adj(1) && mbuf.append(1).is_none());
    }

    fn copied(mbuf: Mbuf<'_>, pool: &Mempool<'_>) {
        assert_eq!(mbuf.copy_into(pool).unwrap().packet_len(), ROOM, "what there is");
    }

    fn chained<'m>(mut mbuf: Mbuf<'m>, tail: Mbuf<'m>, pool: &Mempool<'m>) {
        mbuf.chain(tail).ok().unwrap();
        assert!(!mbuf.linearize());
        assert_eq!(mbuf.segment_data().map(<[u8]>::len).collect::<Vec<_>>(), [ROOM; 2]);
        assert_eq!(mbuf.copy_into(pool).unwrap().packet_len(), 2 * ROOM);
        let tail = mbuf.split(1).unwrap();
        assert_eq!(tail.data().len(), ROOM);
        let clone = tail.share().clone_into(pool).unwrap();
        assert_eq!((clone.packet_len(), clone.data().len()), (9000, ROOM));
    }
}

/// A packet with two owners is never written by one while the other reads it, however it came to
/// have two.
fn no_mutable_view_of_a_shared_mbuf(eal: &Eal, pool: &Mempool<'_>) {
    let mut original = pool.alloc().unwrap();
    original.append(60).unwrap().fill(7);
    let shared = original.share();
    let mut clone = shared.clone_into(pool).unwrap();
    refuses_writing(&mut clone);
    assert!(clone.adj(10) && clone.trim(10), "its fields are its own");
    assert_eq!((clone.data(), shared.data().len()), ([7; 40].as_slice(), 60));

    // Another owner of the same mbuf.
    let reader = shared.try_clone().unwrap();
    let shared = shared.unshare().unwrap_err();
    drop(reader);
    let shared = shared.unshare().unwrap_err();

    // A clone stays a clone when it passes a port.
    let mut port = support::started(eal, pool, "net_ring0");
    let mut queues = port.queues();
    let mut burst = Burst::<1>::new();
    burst.push(clone).ok().unwrap();
    assert_eq!(queues.tx[0].send(&mut burst), 1);
    assert_eq!(queues.rx[0].receive(&mut burst), 1);
    refuses_writing(&mut burst.as_mut_slice()[0]);
    let shared = shared.unshare().unwrap_err();
    burst.clear();
    let mut original = shared.unshare().ok().unwrap();
    original.data_mut().unwrap().fill(8);

    // After a header of its own, only the header can be written.
    let shared = original.share();
    let mut packet = pool.alloc().unwrap();
    packet.append(14).unwrap().fill(1);
    packet.chain(shared.clone_into(pool).unwrap()).ok().unwrap();
    let writable: Vec<bool> = packet.segment_data_mut().map(|bytes| bytes.is_some()).collect();
    assert_eq!((writable, packet.packet_len()), (vec![true, false], 74));
    assert!(packet.append(1).is_none());
    assert!(packet.linearize(), "which copies");
    assert_eq!(packet.data_mut().unwrap().len(), 74);

    // The last owner of shared bytes may be a clone; they stay read-only.
    let mut clone = shared.clone_into(pool).unwrap();
    drop(shared);
    refuses_writing(&mut clone);
    assert_eq!(clone.data(), [8; 60]);
    clone.copy_into(pool).unwrap().data_mut().unwrap().fill(9);
    drop((clone, packet, burst));
    refuses_changes_beside_a_foreign_owner(pool);
    assert!(pool.is_full());
}

fn refuses_writing(mbuf: &mut Mbuf<'_>) {
    assert!(!mbuf.is_unshared());
    assert!(mbuf.data_mut().is_none() && mbuf.resize(1).is_none());
    assert!(mbuf.prepend(1).is_none() && mbuf.append(1).is_none());
    assert!(mbuf.segment_data_mut().all(|bytes| bytes.is_none()));
}

/// Packets that the driver refused are freed with their container, also by unwinding.
fn no_leak_of_unsent_packets(eal: &Eal, pool: &Mempool<'_>) {
    let mut port = support::started(eal, pool, "net_ring0");
    let mut queues = port.queues();
    let mut burst = Burst::<64>::new();
    while burst.is_empty() {
        pool.fill(&mut burst, 64).unwrap();
        queues.tx[0].send(&mut burst);
    }
    burst.clear();
    let in_ring = pool.in_use();
    let mut tx = queues.tx.pop().unwrap();

    pool.fill(&mut burst, 64).unwrap();
    assert_eq!(tx.send(&mut burst), 0, "the ring is full");
    drop(burst);
    assert_eq!(pool.in_use(), in_ring, "dropped with their burst");

    let mut burst = Burst::<64>::new();
    pool.fill(&mut burst, 64).unwrap();
    drop(burst.drain().next());
    assert_eq!((burst.len(), pool.in_use()), (0, in_ring), "dropped with their iterator");

    let mut buffer = TxBuffer::<8>::new(tx);
    for _ in 0..20 {
        buffer.push(pool.alloc().unwrap());
    }
    assert_eq!((buffer.dropped(), buffer.pending()), (16, 4));
    drop(buffer);
    assert_eq!(pool.in_use(), in_ring, "dropped with their buffer");

    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| ()));
    let unwound = catch_unwind(AssertUnwindSafe(|| {
        let mut burst = Burst::<64>::new();
        pool.fill(&mut burst, 64).unwrap();
        let mut chained = pool.alloc().unwrap();
        chained.chain(pool.alloc().unwrap()).ok().unwrap();
        let _shared = chained.share().clone_into(pool).unwrap();
        assert!(burst.is_empty(), "a bug of the program's");
    }));
    std::panic::set_hook(hook);
    assert!(unwound.is_err());
    assert_eq!(pool.in_use(), in_ring, "dropped by unwinding");

    // A failure in the middle leaks nothing.
    let mut long = pool.alloc().unwrap();
    for _ in 0..9 {
        assert!(long.append(2048).is_some());
        long.chain(pool.alloc().unwrap()).ok().unwrap();
    }
    let long = long.share();
    let rest: Vec<_> = std::iter::from_fn(|| pool.alloc()).skip(5).collect();
    let in_use = pool.in_use();
    assert_eq!(long.clone_into(pool).err(), Some(ShareError::Exhausted));
    assert!(long.copy_into(pool).is_err());
    assert_eq!(pool.in_use(), in_use);
    drop((long, rest));

    support::empty(&mut queues.rx[0]);
    assert!(pool.is_full());
}

/// Reference counts have 16 bits. Leaking owners is safe in Rust, so the count must not wrap
/// around.
fn no_count_of_owners_runs_over(pool: &Mempool<'_>) {
    let mut mbuf = pool.alloc().unwrap();
    mbuf.chain(pool.alloc().unwrap()).ok().unwrap();
    let shared = mbuf.share();
    let mut owners = Vec::new();
    let error = loop {
        match shared.try_clone() {
            Ok(owner) => owners.push(owner),
            Err(error) => break error,
        }
    };
    assert_eq!((error, owners.len()), (ShareError::TooManyOwners, 32_766));
    assert_eq!(shared.clone_into(pool).err(), Some(ShareError::TooManyOwners));
    assert_eq!(pool.in_use(), 2);
    drop(owners.pop());
    let clone = shared.clone_into(pool).unwrap();
    assert_eq!(pool.in_use(), 4);
    drop((clone, owners));
    assert!(shared.unshare().is_ok());
    assert!(pool.is_full());
}

/// Lcores that share one packet add and drop owners at the same time. (C's inline function stores 2
/// if it finds 1.) Lcores are used because other threads inherit the main lcore's single CPU.
fn no_count_of_owners_is_lost_between_threads(eal: &Eal, pool: &Mempool<'_>) {
    for _ in 0..20 {
        let mut mbuf = pool.alloc().unwrap();
        mbuf.append(60).unwrap().fill(3);
        let shared = mbuf.share();
        let churn = || {
            for _ in 0..5000 {
                let owner = shared.try_clone().unwrap();
                let clone = owner.clone_into(pool).unwrap();
                drop(owner);
                assert_eq!(clone.data(), [3; 60]);
            }
        };
        eal.scope(|scope| {
            for lcore in eal.workers() {
                scope.launch(lcore, churn).unwrap();
            }
            churn();
        });
        assert!(shared.unshare().is_ok(), "the first owner is the only one again");
        assert!(pool.is_full());
    }
}

/// An owner that only C knows, such as a driver that keeps a received packet.
fn refuses_changes_beside_a_foreign_owner(pool: &Mempool<'_>) {
    let mut mbuf = pool.alloc().unwrap();
    mbuf.append(60).unwrap().fill(5);
    mbuf.chain(pool.alloc().unwrap()).ok().unwrap();
    // SAFETY: `Mbuf` is transparent over its pointer.
    let raw: *mut dpdk_sys::rte_mbuf = unsafe { std::mem::transmute_copy(&mbuf) };
    // SAFETY: a valid mbuf; the reference is given back below.
    unsafe { dpdk_sys::lr_mbuf_refcnt_update(raw, 1) };
    refuses_writing_first(&mut mbuf);
    assert!(!mbuf.adj(1) && !mbuf.trim(0) && !mbuf.linearize() && mbuf.split(1).is_none());
    let mut other = mbuf.chain(pool.alloc().unwrap()).unwrap_err();
    let mut mbuf = other.chain(mbuf).unwrap_err();
    // SAFETY: as above.
    unsafe { dpdk_sys::lr_mbuf_refcnt_update(raw, -1) };
    assert!(mbuf.adj(1) && mbuf.data_mut().is_some() && other.chain(mbuf).is_ok());
}

fn refuses_writing_first(mbuf: &mut Mbuf<'_>) {
    assert!(!mbuf.is_unshared() && mbuf.data_mut().is_none() && mbuf.resize(1).is_none());
    assert!(mbuf.prepend(1).is_none() && mbuf.append(1).is_none());
    assert!(mbuf.segment_data_mut().next().unwrap().is_none());
}
