// SPDX-License-Identifier: BSD-3-Clause
//! Several mbufs at once, and a pool's properties.

use dpdk::{Burst, Eal, Mbuf};

pub fn check(eal: &Eal) {
    let pool = super::pool(eal, "several", 200);
    let other = super::pool(eal, "others", 300);
    assert_eq!((pool.name().as_str(), pool.data_room(), pool.cache()), ("several", 328, 16));
    assert_eq!((other.name().as_str(), other.data_room()), ("others", 428));

    let all = pool.alloc_array::<255>().unwrap();
    assert!(all.iter().all(|mbuf| mbuf.packet_len() == 0 && mbuf.is_unshared()));
    assert!(pool.alloc_array::<1>().is_none());
    assert!(pool.alloc_array::<0>().is_some());
    assert_eq!(pool.available(), 0);
    Mbuf::free_array(all);
    assert!(pool.is_full());
    assert!(pool.alloc_array::<256>().is_none());
    assert!(pool.is_full());
    drop(pool.alloc_array::<7>());
    assert!(pool.is_full());

    // Mbufs of two pools, one with several segments, and one that is a clone.
    let shared = super::packet(&pool, 50).share();
    let mut chained = super::packet(&pool, 10);
    chained.chain(super::packet(&other, 20)).unwrap();
    let mixed = [
        pool.alloc().unwrap(),
        other.alloc().unwrap(),
        other.alloc().unwrap(),
        chained,
        shared.clone_into(&other).unwrap(),
        pool.alloc().unwrap(),
    ];
    assert_eq!((pool.in_use(), other.in_use()), (4, 4));
    Mbuf::free_array(mixed);
    assert_eq!((pool.in_use(), other.in_use()), (1, 0));
    drop(shared);
    assert!(pool.is_full() && other.is_full());

    // An array of none always succeeds, also on a thread without a cache and in an empty pool.
    let all = pool.alloc_array::<255>().unwrap();
    std::thread::scope(|threads| {
        let none = threads.spawn(|| {
            assert!(pool.alloc().is_none());
            let mut full = Burst::<0>::new();
            (pool.alloc_array::<0>().is_some(), pool.fill(&mut full, 1).is_ok())
        });
        assert_eq!(none.join().unwrap(), (true, true));
    });
    Mbuf::free_array(all);
}
