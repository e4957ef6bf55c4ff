// SPDX-License-Identifier: BSD-3-Clause
//! Packets, bursts and pools: nothing leaks, nothing is freed twice, shared packets are read-only.
//! One test, because DPDK starts once in a process.
#![allow(clippy::unwrap_used, clippy::expect_used)] // A test may.

mod support;

use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};

use dpdk::{Burst, Eal, EalError, Exhausted, Mbuf, Mempool, MempoolError, PoolConfig};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use support::property::for_all;

#[test]
fn packets_are_owned() {
    let eal = support::eal(&[]);
    assert!(matches!(Eal::init(["test"]), Err(EalError::AlreadyInitialised)));

    let pool = Mempool::packet_pool(
        &eal,
        &PoolConfig { count: 1023, cache: 32, ..PoolConfig::named("packets") },
    )
    .unwrap();
    assert!(pool.is_full());
    assert_eq!(pool.capacity(), 1023);
    assert_eq!(format!("{pool:?}"), r#"Mempool { name: "packets", capacity: 1023, .. }"#);
    name_in_use(&eal);
    room(&eal);
    contents(&pool);
    mbufs_lie_side_by_side(&pool);
    headers(&pool);
    append_moves_what_fits(&pool);
    exhaustion(&pool);
    drain_frees_what_is_not_taken(&pool);
    retain_is_that_of_a_vec(&pool);
    a_panic_in_retain_keeps_every_packet(&pool);
    random_operations(&pool);
    other_threads_free_too(&pool);
    assert!(pool.is_full());
}

fn name_in_use(eal: &Eal) {
    let again = Mempool::packet_pool(eal, &PoolConfig::named("packets"));
    assert!(matches!(again, Err(MempoolError::Refused { name, .. }) if name == "packets"));
    let small = PoolConfig { count: 63, cache: 0, ..PoolConfig::named("n".repeat(25)) };
    assert!(Mempool::packet_pool(eal, &small).is_ok(), "the longest name");
    for name in ["", "a\0b", &"n".repeat(26)] {
        let refused = Mempool::packet_pool(eal, &PoolConfig::named(name));
        assert!(matches!(refused, Err(MempoolError::Name { most: 25, .. })), "{name:?}");
    }
}

fn room(eal: &Eal) {
    let small = PoolConfig { count: 63, cache: 0, data_room: 191, ..PoolConfig::named("small") };
    let refused = Mempool::packet_pool(eal, &small);
    assert!(matches!(refused, Err(MempoolError::Room { data_room: 191, .. })));
}

/// If each mbuf began at the start of a page, all would use the same few cache lines.
fn mbufs_lie_side_by_side(pool: &Mempool<'_>) {
    let mut held = Burst::<32>::new();
    assert!(pool.fill(&mut held, 32).is_ok());
    let mut places: Vec<usize> =
        held.iter().map(|mbuf| mbuf.data().as_ptr().addr() % 4096).collect();
    places.sort_unstable();
    places.dedup();
    assert!(places.len() > 8, "{places:?}");
}

fn headers(pool: &Mempool<'_>) {
    let mut mbuf = pool.alloc().unwrap();
    mbuf.resize(12).unwrap().fill(7);
    assert!(mbuf.header_mut::<13>().is_none(), "longer than the packet");
    assert!(mbuf.header::<13>().is_none(), "longer than the packet");
    *mbuf.header_mut().unwrap() = [1, 2, 3];
    mbuf.prefetch();
    assert_eq!(mbuf.header(), Some(&[1, 2, 3]));
    assert_eq!(mbuf.data()[..4], [1, 2, 3, 7]);
    assert_eq!(mbuf.header_mut::<12>().unwrap().len(), 12);
}

fn append_moves_what_fits(pool: &Mempool<'_>) {
    for (inside, more) in [(0, 0), (0, 4), (1, 2), (1, 3), (1, 5), (4, 2), (3, 8)] {
        let mut front = Burst::<4>::new();
        let mut back = Burst::<8>::new();
        assert!(pool.fill(&mut front, inside).is_ok());
        assert!(pool.fill(&mut back, more).is_ok());
        for (number, mbuf) in (0u8..).zip(front.iter_mut().chain(back.iter_mut())) {
            mbuf.resize(1).unwrap()[0] = number;
        }
        front.append(&mut back);
        assert_eq!(front.len(), 4.min(inside + more));
        assert_eq!(front.len() + back.len(), inside + more);
        let order: Vec<u8> = front.iter().chain(back.iter()).map(|mbuf| mbuf.data()[0]).collect();
        assert!(order.iter().copied().eq(0..(inside + more) as u8), "{order:?}");
    }
    assert!(pool.is_full());
}

fn contents(pool: &Mempool<'_>) {
    let mut mbuf = pool.alloc().unwrap();
    assert_eq!((mbuf.packet_len(), mbuf.segments(), mbuf.port()), (0, 1, None));
    assert!(mbuf.resize(2049).is_none(), "2176 bytes of room less 128 of headroom");
    for absurd in [usize::MAX, usize::MAX - 127, 1 << 32, 65_536] {
        assert!(mbuf.resize(absurd).is_none(), "{absurd}");
    }
    mbuf.resize(60).unwrap().fill(7);
    assert_eq!(mbuf.data(), [7; 60]);
    mbuf.data_mut().unwrap()[0] = 1;
    let copy = mbuf.copy_into(pool).unwrap();
    assert_eq!(copy.data(), mbuf.data());
    assert_eq!(copy.segment_data().map(<[u8]>::len).collect::<Vec<_>>(), [60]);
    drop((mbuf, copy));
    assert!(pool.is_full());
}

fn exhaustion(pool: &Mempool<'_>) {
    let mut held = Vec::new();
    while let Some(mbuf) = pool.alloc() {
        held.push(mbuf);
    }
    assert_eq!(held.len(), 1023);
    let mut burst = Burst::<32>::new();
    assert_eq!(pool.fill(&mut burst, 1), Err(Exhausted));
    assert!(burst.is_empty());
    held.truncate(1018);
    assert_eq!(pool.fill(&mut burst, 32), Err(Exhausted), "all or none");
    assert_eq!(pool.fill(&mut burst, 5), Ok(()));
    assert_eq!(burst.len(), 5);
    drop((held, burst));
    assert!(pool.is_full());
}

fn drain_frees_what_is_not_taken(pool: &Mempool<'_>) {
    let mut burst = Burst::<32>::new();
    pool.fill(&mut burst, 64).unwrap();
    assert!(burst.is_full(), "cut to the room there is");
    assert!(burst.push(pool.alloc().unwrap()).is_err());
    let kept: Vec<_> = burst.drain().take(3).collect();
    assert!(burst.is_empty());
    assert_eq!(pool.in_use(), 3);
    drop(kept);
    assert!(pool.is_full());
}

/// The packets' numbers as a list, one per packet.
fn numbered<'m>(pool: &Mempool<'m>, numbers: &[u8]) -> Burst<'m, 32> {
    let mut burst = Burst::new();
    pool.fill(&mut burst, numbers.len()).unwrap();
    for (packet, number) in (&mut burst).into_iter().zip(numbers) {
        packet.resize(1).unwrap()[0] = *number;
    }
    burst
}

fn numbers(burst: &Burst<'_, 32>) -> Vec<u8> {
    burst.into_iter().map(|packet| packet.data()[0]).collect()
}

fn retain_is_that_of_a_vec(pool: &Mempool<'_>) {
    for_all(
        10..=500,
        &(prop::collection::vec(any::<u8>(), 0..=32), any::<u8>(), 0..40usize),
        |case| {
            let (mut model, mask, most) = case;
            let mut burst = numbered(pool, &model);
            let keep = |seen: &mut Vec<u8>, number: &mut u8| {
                seen.push(*number);
                *number = number.wrapping_add(1);
                *number & mask == 0
            };
            let (mut asked, mut expected) = (Vec::new(), Vec::new());
            burst.retain(|packet| keep(&mut asked, &mut packet.data_mut().unwrap()[0]));
            model.retain_mut(|number| keep(&mut expected, number));
            prop_assert_eq!(asked, expected);
            prop_assert_eq!(numbers(&burst), &model[..]);
            prop_assert_eq!(pool.in_use(), model.len());
            burst.truncate(most);
            model.truncate(most);
            prop_assert_eq!(numbers(&burst), &model[..]);
            prop_assert_eq!(pool.in_use(), model.len());
            drop(burst);
            prop_assert!(pool.is_full());
            Ok(())
        },
    );
}

fn a_panic_in_retain_keeps_every_packet(pool: &Mempool<'_>) {
    let all: Vec<u8> = (0..32).collect();
    for last in 0..32 {
        let mut burst = numbered(pool, &all);
        let keep = |packet: &mut Mbuf<'_>| match packet.data()[0] {
            number if number == last => panic_any(last),
            number => number % 3 == 0,
        };
        let panicked = catch_unwind(AssertUnwindSafe(|| burst.retain(keep))).unwrap_err();
        assert_eq!(panicked.downcast_ref(), Some(&last));
        let mut inside = numbers(&burst);
        inside.sort_unstable();
        assert_eq!(inside, all);
        assert_eq!(pool.in_use(), all.len());
        drop(burst);
        assert!(pool.is_full());
    }
}

#[derive(Clone, Debug)]
enum Operation {
    Alloc,
    Fill(usize),
    Push,
    Drop(usize),
    Drain(usize),
    Clear,
    Resize(usize),
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        Just(Operation::Alloc),
        (0..40usize).prop_map(Operation::Fill),
        Just(Operation::Push),
        (0..64usize).prop_map(Operation::Drop),
        (0..40usize).prop_map(Operation::Drain),
        Just(Operation::Clear),
        (0..4096usize).prop_map(Operation::Resize),
    ]
}

/// After any operation, every packet is in exactly one place.
fn random_operations(pool: &Mempool<'_>) {
    TestRunner::new(Config { cases: 200, failure_persistence: None, ..Config::default() })
        .run(&prop::collection::vec(operation(), 0..200), |operations| {
            let mut held = Vec::new();
            let mut burst = Burst::<32>::new();
            for operation in operations {
                match operation {
                    Operation::Alloc => held.extend(pool.alloc()),
                    Operation::Fill(n) => drop(pool.fill(&mut burst, n)),
                    Operation::Push => {
                        if let Some(mbuf) = held.pop() {
                            held.extend(burst.push(mbuf).err());
                        }
                    }
                    Operation::Drop(at) if at < held.len() => drop(held.swap_remove(at)),
                    Operation::Drop(_) => {}
                    Operation::Drain(n) => held.extend(burst.drain().take(n)),
                    Operation::Clear => burst.clear(),
                    Operation::Resize(len) => {
                        if let Some(mbuf) = held.last_mut() {
                            prop_assert_eq!(mbuf.resize(len).is_some(), len <= 2048);
                        }
                    }
                }
                prop_assert_eq!(pool.in_use(), held.len() + burst.len());
            }
            drop((held, burst));
            prop_assert!(pool.is_full());
            Ok(())
        })
        .unwrap();
}

/// Threads that are not lcores bypass the caches.
fn other_threads_free_too(pool: &Mempool<'_>) {
    let mbufs: Vec<_> = std::iter::repeat_with(|| pool.alloc().unwrap()).take(300).collect();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            drop(mbufs);
            let mut burst = Burst::<64>::new();
            pool.fill(&mut burst, 64).unwrap();
            assert_eq!(pool.in_use(), 64);
        });
    });
    assert!(pool.is_full());
}
