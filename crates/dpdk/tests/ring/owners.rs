// SPDX-License-Identifier: BSD-3-Clause
//! Each item has one owner: the ring, or the code that holds it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use dpdk::Eal;
use dpdk::ring::{NoRoom, Ring, RingConfig, TooFew};

fn ring<'eal, T>(eal: &'eal Eal, capacity: u32) -> Ring<'eal, T> {
    Ring::new(eal, &RingConfig { capacity, ..RingConfig::named("owners") }).unwrap()
}

pub fn items_are_dropped_once(eal: &Eal) {
    let counted = Arc::new(());
    let mut items: Vec<Arc<()>> = (0..10).map(|_| Arc::clone(&counted)).collect();
    let mut ring = ring(eal, 12);
    assert_eq!(ring.enqueue_burst(&mut items), 10);
    assert!(items.is_empty() && Arc::strong_count(&counted) == 11);
    // At the end of the slots, and across it.
    for _ in 0..30 {
        let item = ring.dequeue().unwrap();
        assert_eq!(Arc::strong_count(&counted), 11);
        ring.enqueue(item).unwrap();
    }
    let [first, second] = ring.dequeue_array().unwrap();
    ring.split().0.enqueue_array([second, first]).unwrap();
    drop(ring.dequeue());
    assert_eq!((ring.len(), Arc::strong_count(&counted)), (9, 10));
    drop(ring);
    assert_eq!(Arc::strong_count(&counted), 1, "what was left inside is dropped with the ring");
}

/// As with a `Vec`: if dropping one item panics, the others and the ring are still dropped.
pub fn a_panic_leaves_nothing_behind(eal: &Eal) {
    struct Item(#[allow(dead_code)] Arc<()>, bool);
    impl Drop for Item {
        fn drop(&mut self) {
            assert!(!self.1, "this one cannot be dropped");
        }
    }
    let counted = Arc::new(());
    for _ in 0..2 {
        let ring = ring(eal, 8);
        for number in 0..5 {
            assert!(ring.enqueue(Item(Arc::clone(&counted), number == 1)).is_ok());
        }
        assert!(catch_unwind(AssertUnwindSafe(|| drop(ring))).is_err());
        assert_eq!(Arc::strong_count(&counted), 1);
    }
}

pub fn what_finds_no_room_stays(eal: &Eal) {
    let mut ring = ring::<Box<u32>>(eal, 5);
    assert_eq!((ring.capacity(), ring.len(), ring.spare()), (5, 0, 5));
    let mut items: Vec<_> = (0..8).map(Box::new).collect();
    assert_eq!(ring.enqueue_bulk(&mut items), Err(NoRoom(8)));
    assert_eq!(items.len(), 8);
    assert_eq!(ring.enqueue_burst(&mut items), 5);
    assert_eq!(items, [5, 6, 7].map(Box::new), "the rest moves to the front");
    assert_eq!(ring.enqueue(Box::new(9)), Err(Box::new(9)));
    assert_eq!(ring.enqueue_array([Box::new(1)]), Err([Box::new(1)]));
    assert_eq!((ring.len(), ring.spare(), ring.is_empty()), (5, 0, false));

    // An item without room is not taken, and nothing is allocated.
    let mut few = Vec::with_capacity(4);
    few.push(Box::new(100));
    let spare = few.capacity() - 1;
    assert_eq!(
        ring.dequeue_bulk(&mut few, spare + 1),
        Err(TooFew::Places { asked: spare + 1, spare })
    );
    let mut many = Vec::with_capacity(10);
    assert_eq!(ring.dequeue_bulk(&mut many, 6), Err(TooFew::Items(6)));
    assert_eq!(ring.dequeue_array::<6>(), None);
    assert_eq!(ring.dequeue_burst(&mut few), 3);
    assert_eq!(few, [100, 0, 1, 2].map(Box::new));
    assert_eq!(ring.split().1.dequeue_bulk(&mut many, 2), Ok(()));
    assert_eq!(many, [3, 4].map(Box::new));
    assert_eq!((ring.dequeue(), ring.dequeue_burst(&mut many)), (None, 0));
    // An empty request is no error.
    assert_eq!(ring.enqueue_bulk(&mut Vec::new()), Ok(()));
    assert_eq!(ring.dequeue_bulk(&mut many, 0), Ok(()));
    assert!(ring.enqueue_array([]).is_ok() && ring.dequeue_array::<0>().is_some());
}
