// SPDX-License-Identifier: BSD-3-Clause
//! Each item of a ring has one owner at a time, with any number of threads.

use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use dpdk_sys::{layout, rte_ring};

use super::{Memory, times};
use crate::fast::ring;

/// A ring of boxes, as `rte_ring_create_elem` makes one. Its counters are about to wrap around.
fn of_boxes(slots: u32, capacity: u32) -> Memory {
    let memory = Memory::of(layout::RING_BYTES + slots as usize * size_of::<*mut usize>());
    memory.write(layout::RING_MASK, slots - 1);
    memory.write(layout::RING_CAPACITY, capacity);
    for counter in [
        layout::RING_PROD_HEAD,
        layout::RING_PROD_TAIL,
        layout::RING_CONS_HEAD,
        layout::RING_CONS_TAIL,
    ] {
        memory.write(counter, u32::MAX - 2);
    }
    memory
}

/// Enqueues `n` items, two at a time if there is room.
fn produce<const SINGLE: bool>(ring: *mut rte_ring, n: usize) {
    // Pointers: a box that was given away may not even be moved.
    let boxes: Vec<_> = (1..=n).map(|number| Box::into_raw(Box::new(number))).collect();
    let mut waiting = boxes.as_slice();
    while !waiting.is_empty() {
        let (items, count) = (waiting.as_ptr(), waiting.len().min(2) as u32);
        // SAFETY: a ring of such pointers, of which so many are there.
        let taken = unsafe { ring::enqueue::<_, SINGLE>(ring, items, count, false) };
        waiting = &waiting[taken as usize..];
        if taken == 0 {
            thread::yield_now();
        }
    }
}

/// Dequeues at most two items at a time, until none are `left`; returns their sum.
fn consume<const SINGLE: bool>(ring: *mut rte_ring, left: &AtomicUsize) -> usize {
    let mut sum = 0;
    while left.load(Ordering::Relaxed) > 0 {
        let mut room = [ptr::null_mut::<usize>(); 2];
        // SAFETY: a ring of such pointers, and room for two.
        let given = unsafe { ring::dequeue::<_, SINGLE>(ring, room.as_mut_ptr(), 2, false) };
        for item in &room[..given as usize] {
            // SAFETY: made of a box, and given to this thread.
            sum += *unsafe { Box::from_raw(*item) };
        }
        left.fetch_sub(given as usize, Ordering::Relaxed);
        if given == 0 {
            thread::yield_now();
        }
    }
    sum
}

/// Everything that is enqueued is dequeued once.
fn nothing_is_lost_or_doubled<const ONE_IN: bool, const ONE_OUT: bool>() {
    let (memory, each) = (of_boxes(4, 3), times(1_000, 15));
    let (producers, consumers) = (if ONE_IN { 1 } else { 2 }, if ONE_OUT { 1 } else { 2 });
    let left = AtomicUsize::new(producers * each);
    let sum: usize = thread::scope(|threads| {
        let (memory, left) = (&memory, &left);
        for _ in 0..producers {
            threads.spawn(move || produce::<ONE_IN>(memory.at(0), each));
        }
        let takes = |_| threads.spawn(move || consume::<ONE_OUT>(memory.at(0), left));
        let threads: Vec<_> = (0..consumers).map(takes).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(sum, producers * each * (each + 1) / 2);
    // SAFETY: the ring lives.
    assert_eq!(unsafe { ring::count(memory.at(0)) }, 0);
}

#[test]
fn one_to_one() {
    nothing_is_lost_or_doubled::<true, true>();
}

#[test]
fn many_to_one() {
    nothing_is_lost_or_doubled::<false, true>();
}

#[test]
fn one_to_many() {
    nothing_is_lost_or_doubled::<true, false>();
}

#[test]
fn many_to_many() {
    nothing_is_lost_or_doubled::<false, false>();
}
