// SPDX-License-Identifier: BSD-3-Clause
//! Objects that readers have read are freed when the variable allows it, and not earlier.

use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::thread;

use dpdk_sys::layout;

use super::{Memory, times};
use crate::fast::qsbr;

const READERS: u32 = 2;

/// A variable in the state after `rte_rcu_qsbr_init` and `rte_rcu_qsbr_thread_register`.
fn variable() -> Memory {
    let registered = layout::QSBR_COUNTERS + READERS as usize * layout::QSBR_COUNTER_STRIDE;
    let memory = Memory::of(registered + 8);
    memory.write(layout::QSBR_TOKEN, 1u64);
    memory.write(registered, (1u64 << READERS) - 1);
    memory
}

/// A reader: announces in its own way, after each read, that it holds nothing.
type Turn = fn(&Memory, u32, &AtomicPtr<usize>) -> usize;

/// Exchanges a box repeatedly, and frees the old ones, while two threads read it.
fn replaced_while_read(turn: Turn) {
    let (memory, rounds) = (variable(), times(1_000, 12));
    let current = AtomicPtr::new(Box::into_raw(Box::new(0)));
    let started = AtomicUsize::new(0);
    thread::scope(|threads| {
        for reader in 0..READERS {
            let (memory, current, started) = (&memory, &current, &started);
            threads.spawn(move || {
                // SAFETY: the variable lives and was made for this thread.
                unsafe { qsbr::online(memory.at(0), reader) };
                started.fetch_add(1, Ordering::Relaxed);
                let mut last = 0;
                while last < rounds {
                    let seen = turn(memory, reader, current);
                    assert!((last..=rounds).contains(&seen), "{seen} after {last}");
                    last = seen;
                }
                // SAFETY: as above.
                unsafe { qsbr::offline(memory.at(0), reader) };
            });
        }
        while started.load(Ordering::Relaxed) < READERS as usize {
            thread::yield_now();
        }
        for round in 1..=rounds {
            let old = current.swap(Box::into_raw(Box::new(round)), Ordering::AcqRel);
            // SAFETY: the variable lives and was made for so many threads. The box is nobody else's when they
            // have been quiescent.
            unsafe {
                let token = qsbr::start(memory.at(0));
                while !qsbr::check(memory.at(0), READERS, token) {
                    thread::yield_now();
                }
                drop(Box::from_raw(old));
            }
        }
    });
    // SAFETY: the last box, and nobody reads any more.
    drop(unsafe { Box::from_raw(current.into_inner()) });
}

#[test]
fn readers_that_stay_online() {
    replaced_while_read(|memory, reader, current| {
        // SAFETY: the thread is online, and the box lives until it is quiescent.
        unsafe {
            let seen = *current.load(Ordering::Acquire);
            qsbr::quiescent(memory.at(0), reader);
            seen
        }
    });
}

/// A writer may see that a reader is online again without having seen that it was offline: the
/// earlier reads have nevertheless ended.
#[test]
fn readers_that_come_and_go() {
    replaced_while_read(|memory, reader, current| {
        // SAFETY: as above; between the two calls nothing is held.
        unsafe {
            let seen = *current.load(Ordering::Acquire);
            qsbr::offline(memory.at(0), reader);
            qsbr::online(memory.at(0), reader);
            seen
        }
    });
}

/// The same with the one order of steps that shows an error, whatever order of threads is tried:
/// the writer asks while the reader is online, and then sees it online again. Nothing else orders
/// the steps: all other accesses of the test are relaxed, and it allocates nothing meanwhile.
#[test]
fn a_reader_that_is_never_seen_offline() {
    let (memory, value) = (variable(), AtomicPtr::new(Box::into_raw(Box::new(7usize))));
    // SAFETY: the variable lives, and all read and write these atomically.
    let [token, acknowledged] = [layout::QSBR_TOKEN, layout::QSBR_COUNTERS + layout::QSBR_COUNTER]
        .map(|offset| unsafe { AtomicU64::from_ptr(memory.at(offset)) });
    let [has_read, asked, freed] = [0; 3].map(AtomicU64::new);
    let until = |number: &AtomicU64, wanted| {
        while number.load(Ordering::Relaxed) != wanted {
            thread::yield_now();
        }
    };
    thread::scope(|threads| {
        threads.spawn(|| {
            // SAFETY: the variable was made for this thread, which is online while it reads the box.
            unsafe {
                qsbr::online(memory.at(0), 0);
                assert_eq!(*value.load(Ordering::Relaxed), 7);
                has_read.store(1, Ordering::Relaxed);
                // The writer's fence is over. A reader that has seen the new token acknowledges no
                // older one.
                until(&asked, 1);
                until(token, 2);
                qsbr::offline(memory.at(0), 0);
                qsbr::online(memory.at(0), 0);
                until(&freed, 1);
                qsbr::offline(memory.at(0), 0);
            }
        });
        until(&has_read, 1);
        // SAFETY: the variable was made for this many threads. It reports when nobody reads the box
        // any more.
        unsafe {
            assert_eq!(qsbr::start(memory.at(0)), 2);
            asked.store(1, Ordering::Relaxed);
            until(acknowledged, 2);
            assert!(qsbr::check(memory.at(0), READERS, 2));
            drop(Box::from_raw(value.load(Ordering::Relaxed)));
        }
        freed.store(1, Ordering::Relaxed);
    });
}
