// SPDX-License-Identifier: BSD-3-Clause
//! Tables that are replaced while they are read. DPDK need not be running.
#![allow(clippy::unwrap_used, clippy::expect_used)] // A test may.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};

use dpdk::qsbr::{Qsbr, Replaceable};

/// Two numbers that are equal until it is dropped. Miri and the sanitizers detect a read of freed
/// memory; this detects it without them.
struct Pair {
    numbers: [u64; 2],
    alive: Arc<AtomicUsize>,
}

impl Pair {
    fn new(number: u64, alive: &Arc<AtomicUsize>) -> Self {
        alive.fetch_add(1, Ordering::Relaxed);
        Self { numbers: [number; 2], alive: Arc::clone(alive) }
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        self.numbers = [u64::MAX, 0];
        self.alive.fetch_sub(1, Ordering::Relaxed);
    }
}

#[test]
fn readers_meet_whole_tables_while_two_writers_replace_them() {
    const ROUNDS: u64 = 300;
    let alive = Arc::new(AtomicUsize::new(0));
    let qsbr = Qsbr::new(3);
    let table = Replaceable::new(&qsbr, Pair::new(0, &alive));
    let stop = AtomicBool::new(false);
    let reads = [const { AtomicUsize::new(0) }; 3];
    std::thread::scope(|threads| {
        for (index, reads) in reads.iter().enumerate() {
            let (qsbr, table, stop) = (&qsbr, &table, &stop);
            threads.spawn(move || {
                let mut reader = qsbr.register().unwrap();
                loop {
                    let mut online = reader.online();
                    // One of them keeps going offline.
                    for _ in 0..[1, 100, 1000][index] {
                        let first = table.read(&online);
                        let second = table.read(&online);
                        assert!(second.numbers[0] != u64::MAX);
                        assert_eq!(first.numbers[0], first.numbers[1], "still alive");
                        online.quiescent();
                    }
                    reads.fetch_add(1, Ordering::Relaxed);
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                }
            });
        }
        let writers: Vec<_> = (1..3)
            .map(|writer| {
                let (table, alive) = (&table, &alive);
                threads.spawn(move || {
                    for round in 0..ROUNDS {
                        let old = table.replace(Pair::new(writer * ROUNDS + round, alive));
                        match round % 3 {
                            0 => drop(old),
                            1 => assert_eq!(old.wait().numbers.len(), 2),
                            _ => {
                                let mut old = Some(old);
                                while let Some(waiting) = old.take() {
                                    old = waiting.try_take().err();
                                    std::thread::yield_now();
                                }
                            }
                        }
                    }
                })
            })
            .collect();
        let ended: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        stop.store(true, Ordering::Relaxed);
        assert!(ended.iter().all(Result::is_ok));
    });
    assert!(reads.iter().all(|reads| reads.load(Ordering::Relaxed) > 0));
    assert_eq!(alive.load(Ordering::Relaxed), 1);
    drop(table);
    assert_eq!(alive.load(Ordering::Relaxed), 0, "each was dropped once");
}

#[test]
fn what_is_replaced_waits_for_readers_that_are_online() {
    let qsbr = Qsbr::new(2);
    let table = Replaceable::new(&qsbr, 1);
    let (mut first, mut second) = (qsbr.register().unwrap(), qsbr.register().unwrap());
    assert_eq!(table.replace(2).try_take().ok(), Some(1), "nobody is online");
    let (mut first, mut second) = (first.online(), second.online());
    assert_eq!(*table.read(&first), 2);
    let old = table.replace(3);
    assert_eq!(*table.read(&first), 3);
    let old = old.try_take().unwrap_err();
    first.quiescent();
    let old = old.try_take().unwrap_err();
    second.quiescent();
    assert_eq!(old.try_take().ok(), Some(2));

    let token = qsbr.start();
    assert!(!qsbr.check(token));
    drop(second);
    assert!(!qsbr.check(token));
    drop(first);
    assert!(qsbr.check(token), "who is offline is not waited for");
    qsbr.synchronize();
}

#[test]
fn a_reader_that_is_gone_is_not_waited_for() {
    let qsbr = Qsbr::new(1);
    let table = Replaceable::new(&qsbr, 1);
    let mut reader = qsbr.register().unwrap();
    assert_eq!(
        qsbr.register().unwrap_err().to_string(),
        "there are 1 readers already: make the Qsbr for more, or drop a Reader"
    );
    std::mem::forget(reader.online());
    let token = qsbr.start();
    assert!(!qsbr.check(token));
    drop(reader);
    assert!(qsbr.check(token));
    let mut reader = qsbr.register().unwrap();
    let mut online = reader.online();
    assert_eq!(*table.read(&online), 1);
    online.synchronize();
    assert!(Qsbr::new(0).register().is_err());
}

#[test]
fn a_writer_waits_until_the_reader_says_so() {
    let qsbr = Qsbr::new(1);
    let table = Replaceable::new(&qsbr, 1);
    let (read, replaced) = (Barrier::new(2), AtomicBool::new(false));
    std::thread::scope(|threads| {
        threads.spawn(|| {
            let mut reader = qsbr.register().unwrap();
            let online = reader.online();
            let number = table.read(&online);
            read.wait();
            while *table.read(&online) == 1 {
                std::thread::yield_now();
            }
            assert!(!replaced.load(Ordering::Acquire));
            assert_eq!(*number, 1);
            drop(online);
        });
        read.wait();
        assert_eq!(table.replace(2).wait(), 1);
        replaced.store(true, Ordering::Release);
    });
}

#[test]
fn readers_of_another_qsbr_are_told_from_ones_own() {
    let (qsbr, other) = (Qsbr::new(1), Qsbr::new(1));
    let table = Replaceable::new(&qsbr, 1);
    let mut reader = other.register().unwrap();
    let online = reader.online();
    let panic = catch_unwind(AssertUnwindSafe(|| *table.read(&online))).unwrap_err();
    let text = panic.downcast_ref::<&str>().unwrap();
    assert_eq!(*text, "a table is read with a Reader of another Qsbr than its own");
}

#[test]
fn a_snapshot_is_one_value_until_it_is_renewed() {
    let alive = Arc::new(AtomicUsize::new(0));
    let qsbr = Qsbr::new(2);
    let table = Replaceable::new(&qsbr, Pair::new(1, &alive));
    let mut reader = qsbr.register().unwrap();
    let snapshot = table.snapshot(reader.online());
    let read = || snapshot.with(|pair| pair.numbers);
    let first = table.replace(Pair::new(2, &alive));
    let second = table.replace(Pair::new(3, &alive));
    assert_eq!((read(), alive.load(Ordering::Relaxed)), ([1, 1], 3));
    let first = first.try_take().err().unwrap();
    snapshot.renew();
    assert_eq!(read(), [3, 3]);
    drop((first.try_take().ok().unwrap(), second.try_take().ok().unwrap()));
    assert_eq!(alive.load(Ordering::Relaxed), 1);
    // Nobody is quiescent while somebody reads, even if that panics.
    let renewed = catch_unwind(AssertUnwindSafe(|| snapshot.with(|_| snapshot.renew())));
    assert!(renewed.is_err());
    let retired = table.replace(Pair::new(4, &alive));
    let nested = snapshot.with(|outer| (outer.numbers, read()));
    assert_eq!(nested, ([3, 3], [3, 3]));
    let retired = retired.try_take().err().unwrap();
    // Without the snapshot nobody is waited for.
    drop(snapshot);
    drop(retired.try_take().ok().unwrap());
}

#[test]
fn a_snapshot_is_of_its_tables_reader() {
    let (one, other) = (Qsbr::new(1), Qsbr::new(1));
    let table = Replaceable::new(&one, 7);
    let mut reader = other.register().unwrap();
    let made = catch_unwind(AssertUnwindSafe(|| table.snapshot(reader.online()).with(|n| *n)));
    assert!(made.is_err());
}

#[test]
fn snapshots_meet_whole_tables_while_they_are_replaced() {
    let alive = Arc::new(AtomicUsize::new(0));
    let qsbr = Qsbr::new(2);
    let table = Replaceable::new(&qsbr, Pair::new(0, &alive));
    let stop = AtomicBool::new(false);
    std::thread::scope(|threads| {
        for _ in 0..2 {
            threads.spawn(|| {
                let mut reader = qsbr.register().unwrap();
                let snapshot = table.snapshot(reader.online());
                while !stop.load(Ordering::Relaxed) {
                    let before = snapshot.with(|pair| pair.numbers);
                    let after = snapshot.with(|pair| pair.numbers);
                    assert_eq!((before, before[0]), (after, before[1]));
                    snapshot.renew();
                }
            });
        }
        for number in 1..300 {
            drop(table.replace(Pair::new(number, &alive)));
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(alive.load(Ordering::Relaxed), 1);
}
