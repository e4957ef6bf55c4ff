// SPDX-License-Identifier: BSD-3-Clause
//! Two rings of the same shape, one used through Rust and one through C's inline functions, return
//! the same results and have the same counters after each step; and one side takes out what the
//! other has put into a ring.

use std::ffi::CString;
use std::fmt::Debug;

use dpdk::Eal;
use dpdk::ring::{Ring, RingConfig};
use dpdk_sys::{layout, rte_ring};
use proptest::prelude::*;

use super::raw;
use super::support::property::for_all_unshrunk;

/// Not a power of two minus one, so that it is smaller than the number of slots.
const CAPACITY: u32 = 21;

#[derive(Clone, Copy, Debug)]
struct Step {
    enqueue: bool,
    n: usize,
    bulk: bool,
    single: bool,
    /// For the ring that both use: true for C.
    by_c: bool,
}

fn step() -> impl Strategy<Value = Step> {
    let n = prop_oneof![3 => 0..9usize, 1 => 0..30usize];
    (any::<bool>(), n, any::<bool>(), any::<bool>(), any::<bool>())
        .prop_map(|(enqueue, n, bulk, single, by_c)| Step { enqueue, n, bulk, single, by_c })
}

pub fn agree(eal: &Eal) {
    of_items(eal, u64::from);
    of_items(eal, |n| n);
    of_items(eal, |n| [n, !n, n ^ 0x5555]);
    of_items(eal, |n| [u64::from(n), 1, 2, 3]);
}

fn of_items<T: Copy + Debug + PartialEq + Send>(eal: &Eal, item: impl Fn(u32) -> T) {
    let make = |name: &str| {
        let config = RingConfig { capacity: CAPACITY, ..RingConfig::named(name) };
        let ring = Ring::<T>::new(eal, &config).unwrap();
        let name = CString::new(name).unwrap();
        // SAFETY: looks a ring up by its name.
        let raw = unsafe { dpdk_sys::rte_ring_lookup(name.as_ptr()) };
        assert!(!raw.is_null());
        (std::cell::RefCell::new(ring), raw)
    };
    let (native, both) = (make("native"), make("both"));
    let (_c, c) = make("c");
    let next = std::cell::Cell::new(0);
    for_all_unshrunk(10..=300, &prop::collection::vec(step(), 1..200), |steps| {
        let (native_ring, both_ring) = (&mut *native.0.borrow_mut(), &mut *both.0.borrow_mut());
        for step in steps {
            if step.enqueue {
                let items: Vec<T> = (0..step.n as u32).map(|n| item(next.get() + n)).collect();
                next.set(next.get() + step.n as u32);
                let taken = c_enqueue(c, &items, step);
                prop_assert_eq!(enqueue(native_ring, items.clone(), step), taken);
                let taken_there = match step.by_c {
                    true => c_enqueue(both.1, &items, step),
                    false => enqueue(both_ring, items, step),
                };
                prop_assert_eq!(taken_there, taken);
            } else {
                let given = c_dequeue::<T>(c, &item(0), step);
                prop_assert_eq!(&dequeue(native_ring, step), &given);
                let given_there = match step.by_c {
                    true => c_dequeue(both.1, &item(0), step),
                    false => dequeue(both_ring, step),
                };
                prop_assert_eq!(given_there, given);
            }
            prop_assert_eq!(counters(native.1), counters(c));
            prop_assert_eq!(counters(both.1), counters(c));
            // SAFETY: the ring lives.
            let (count, capacity) =
                unsafe { (dpdk_sys::lr_ring_count(c), dpdk_sys::lr_ring_get_capacity(c)) };
            prop_assert_eq!(native_ring.len(), count as usize);
            prop_assert_eq!(native_ring.capacity(), capacity as usize);
            prop_assert_eq!(native_ring.spare(), (capacity - count) as usize);
        }
        Ok(())
    });
}

fn counters(ring: *mut rte_ring) -> [u32; 4] {
    let at = |offset| raw::field::<u32>(ring.cast(), offset);
    [
        at(layout::RING_PROD_HEAD),
        at(layout::RING_PROD_TAIL),
        at(layout::RING_CONS_HEAD),
        at(layout::RING_CONS_TAIL),
    ]
}

/// Returns how many were enqueued.
fn enqueue<T: Copy>(ring: &mut Ring<'_, T>, mut items: Vec<T>, step: Step) -> usize {
    let n = items.len();
    let in_bulk = |all: bool| if all { n } else { 0 };
    match (step.single, step.bulk, n) {
        (true, true, 1) => in_bulk(ring.split().0.enqueue(items[0]).is_ok()),
        (true, true, _) => in_bulk(ring.split().0.enqueue_bulk(&mut items).is_ok()),
        (true, false, _) => ring.split().0.enqueue_burst(&mut items),
        (false, true, 3) => in_bulk(ring.enqueue_array([items[0], items[1], items[2]]).is_ok()),
        (false, true, _) => in_bulk(ring.enqueue_bulk(&mut items).is_ok()),
        (false, false, _) => ring.enqueue_burst(&mut items),
    }
}

fn dequeue<T>(ring: &mut Ring<'_, T>, step: Step) -> Vec<T> {
    let mut items = Vec::with_capacity(step.n);
    // A vector may have more capacity than requested; a burst uses all of it.
    assert_eq!(items.capacity(), step.n);
    match (step.single, step.bulk, step.n) {
        (true, true, 1) => return ring.split().1.dequeue().into_iter().collect(),
        (true, true, n) => _ = ring.split().1.dequeue_bulk(&mut items, n),
        (true, false, _) => _ = ring.split().1.dequeue_burst(&mut items),
        (false, true, 3) => return ring.dequeue_array::<3>().into_iter().flatten().collect(),
        (false, true, n) => _ = ring.dequeue_bulk(&mut items, n),
        (false, false, _) => _ = ring.dequeue_burst(&mut items),
    }
    items
}

fn c_enqueue<T>(ring: *mut rte_ring, items: &[T], step: Step) -> usize {
    let (size, n) = (size_of::<T>() as u32, items.len() as u32);
    // SAFETY: the ring lives, has items of this size, and reads as many as there are.
    let taken = unsafe {
        let first = items.as_ptr().cast();
        dpdk_sys::lr_ring_enqueue(ring, first, size, n, step.bulk, step.single)
    };
    taken as usize
}

fn c_dequeue<T: Copy>(ring: *mut rte_ring, any: &T, step: Step) -> Vec<T> {
    let mut items = vec![*any; step.n];
    let (size, n) = (size_of::<T>() as u32, step.n as u32);
    // SAFETY: as above; there is room for as many.
    let given = unsafe {
        let first = items.as_mut_ptr().cast();
        dpdk_sys::lr_ring_dequeue(ring, first, size, n, step.bulk, step.single)
    };
    items.truncate(given as usize);
    items
}
