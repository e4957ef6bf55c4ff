// SPDX-License-Identifier: BSD-3-Clause
//! Threads that enqueue and dequeue at the same time: no item is lost or duplicated, and each
//! producer's items come out in order.

use std::sync::atomic::{AtomicU64, Ordering};

use dpdk::ring::{Ring, RingConfig};
use dpdk::{Burst, Eal, Mbuf, Mempool, PoolConfig};

/// Items per producer.
const EACH: u64 = 200_000;

/// A number that identifies its producer.
type Item = Box<(u64, u64)>;

fn ring(eal: &Eal) -> Ring<'_, Item> {
    Ring::new(eal, &RingConfig { capacity: 50, ..RingConfig::named("threads") }).unwrap()
}

/// What a consumer has received from each producer, in order; ends when all items are dequeued.
struct Seen<'s> {
    last: [Option<u64>; 2],
    left: &'s AtomicU64,
}

impl<'s> Seen<'s> {
    fn new(left: &'s AtomicU64) -> Self {
        Self { last: [None; 2], left }
    }

    fn see(&mut self, items: &mut Vec<Item>) -> bool {
        for item in items.drain(..) {
            let (producer, number) = *item;
            let last = &mut self.last[producer as usize];
            assert!(last.is_none_or(|last| last < number), "{number} comes after {last:?}");
            *last = Some(number);
            self.left.fetch_sub(1, Ordering::Relaxed);
        }
        std::hint::spin_loop();
        self.left.load(Ordering::Relaxed) > 0
    }
}

/// Enqueues all numbers, in bursts of varying size.
fn produce(producer: u64, mut enqueue: impl FnMut(&mut Vec<Item>)) {
    let mut items = Vec::with_capacity(8);
    let mut next = 0;
    while next < EACH || !items.is_empty() {
        let want = 1 + next as usize % 7;
        while items.len() < want && next < EACH {
            items.push(Box::new((producer, next)));
            next += 1;
        }
        let before = items.len();
        enqueue(&mut items);
        if items.len() == before {
            std::thread::yield_now(); // It is full.
        }
    }
}

pub fn nothing_is_lost_doubled_or_overtaken(eal: &Eal) {
    let room = || Vec::with_capacity(5);
    let mut ring = ring(eal);
    let left = AtomicU64::new(2 * EACH);
    std::thread::scope(|threads| {
        for producer in 0..2 {
            let ring = &ring;
            threads.spawn(move || produce(producer, |items| _ = ring.enqueue_burst(items)));
        }
        for _ in 0..2 {
            threads.spawn(|| {
                let (mut seen, mut items) = (Seen::new(&left), room());
                while seen.see(&mut items) {
                    if ring.dequeue_burst(&mut items) == 0 {
                        std::thread::yield_now();
                    }
                }
            });
        }
    });
    assert!(ring.is_empty());

    left.store(EACH, Ordering::Relaxed);
    let (mut producer, mut consumer) = ring.split();
    std::thread::scope(|threads| {
        threads.spawn(move || produce(0, |items| _ = producer.enqueue_burst(items)));
        threads.spawn(|| {
            let (mut seen, mut items) = (Seen::new(&left), room());
            while seen.see(&mut items) {
                if consumer.dequeue_burst(&mut items) == 0 {
                    std::thread::yield_now();
                }
            }
            assert_eq!(seen.last[0], Some(EACH - 1));
        });
    });

    left.store(2 * EACH, Ordering::Relaxed);
    let (producers, mut consumer) = ring.split_many_to_one();
    std::thread::scope(|threads| {
        for number in 0..2 {
            let producer = producers.clone();
            threads.spawn(move || produce(number, |items| _ = producer.enqueue_burst(items)));
        }
        threads.spawn(|| {
            let (mut seen, mut items) = (Seen::new(&left), room());
            while seen.see(&mut items) {
                if consumer.dequeue_burst(&mut items) == 0 {
                    std::thread::yield_now();
                }
            }
            assert_eq!(seen.last, [Some(EACH - 1); 2]);
        });
    });

    left.store(EACH, Ordering::Relaxed);
    let (mut producer, consumers) = ring.split_one_to_many();
    std::thread::scope(|threads| {
        threads.spawn(move || produce(0, |items| _ = producer.enqueue_burst(items)));
        for _ in 0..2 {
            let (consumer, left) = (consumers.clone(), &left);
            threads.spawn(move || {
                let (mut seen, mut items) = (Seen::new(left), room());
                while seen.see(&mut items) {
                    if consumer.dequeue_burst(&mut items) == 0 {
                        std::thread::yield_now();
                    }
                }
            });
        }
    });
    assert_eq!(left.load(Ordering::Relaxed), 0, "as many came out as went in");
    assert!(ring.is_empty());
}

/// One lcore takes packets from a pool, the other frees them.
pub fn lcores_hand_packets_over(eal: &Eal) {
    const PACKETS: usize = 100_000;
    let config = PoolConfig { count: 511, cache: 32, ..PoolConfig::named("over") };
    let pool = Mempool::packet_pool(eal, &config).unwrap();
    let mut ring = Ring::<Mbuf<'_>>::new(eal, &RingConfig::named("over")).unwrap();
    let (mut producer, mut consumer) = ring.split();
    let worker = eal.workers()[0];
    eal.scope(|scope| {
        scope
            .launch(worker, || {
                let (mut burst, mut received) = (Burst::<32>::new(), 0);
                while received < PACKETS {
                    received += consumer.dequeue_burst(&mut burst);
                    for mbuf in burst.iter() {
                        assert_eq!(mbuf.packet_len(), 60);
                    }
                    burst.clear();
                }
            })
            .unwrap();
        let (mut burst, mut sent) = (Burst::<32>::new(), 0);
        while sent < PACKETS {
            let want = (PACKETS - sent).min(32);
            if burst.is_empty() && pool.fill(&mut burst, want).is_ok() {
                for mbuf in burst.iter_mut() {
                    mbuf.append(60).unwrap();
                }
            }
            sent += producer.enqueue_burst(&mut burst);
        }
    });
    assert!(ring.is_empty() && pool.is_full());
}
