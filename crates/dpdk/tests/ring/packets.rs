// SPDX-License-Identifier: BSD-3-Clause
//! Packets in rings, from bursts and back.

use dpdk::ring::{NoRoom, Ring, RingConfig};
use dpdk::{Burst, Eal, Mbuf, Mempool, PoolConfig, SharedMbuf};

use super::support;

pub fn go_through_rings(eal: &Eal) {
    let pool = Mempool::packet_pool(
        eal,
        &PoolConfig { count: 255, cache: 32, ..PoolConfig::named("ring") },
    )
    .unwrap();
    let mut port = support::started(eal, &pool, "net_ring0");
    {
        let mut queues = port.queues();
        let (rx, tx) = (&mut queues.rx[0], &mut queues.tx[0]);
        let ring =
            Ring::new(eal, &RingConfig { capacity: 6, ..RingConfig::named("packets") }).unwrap();
        let mut burst = Burst::<8>::new();
        pool.fill(&mut burst, 8).unwrap();
        for (n, mbuf) in burst.iter_mut().enumerate() {
            mbuf.append(60).unwrap().fill(n as u8);
        }
        let order =
            |burst: &Burst<'_, 8>| burst.iter().map(|mbuf| mbuf.data()[0]).collect::<Vec<_>>();
        tx.send(&mut burst);
        rx.receive(&mut burst);
        assert_eq!(order(&burst), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(ring.enqueue_bulk(&mut burst), Err(NoRoom(8)));
        assert_eq!(ring.enqueue_burst(&mut burst), 6);
        assert_eq!(order(&burst), [6, 7]);
        assert_eq!(ring.dequeue_burst(&mut burst), 6, "as many as the burst has room for");
        assert_eq!(order(&burst), [6, 7, 0, 1, 2, 3, 4, 5]);
        ring.enqueue_burst(&mut burst);
        burst.clear();
        assert_eq!(pool.in_use(), 6, "those in the ring");
    }
    assert!(pool.is_full(), "a ring frees its packets");
    port.stop().unwrap();

    // Shared packets, and packets with other data in the same item.
    let shared = Ring::<SharedMbuf<'_>>::new(eal, &RingConfig::named("shared")).unwrap();
    let packet = pool.alloc().unwrap().share();
    shared.enqueue(packet.try_clone().unwrap()).ok().unwrap();
    assert!(packet.unshare().is_err());
    assert!(shared.dequeue().unwrap().unshare().is_ok());
    let noted = Ring::<(Mbuf<'_>, u64)>::new(eal, &RingConfig::named("noted")).unwrap();
    noted.enqueue((pool.alloc().unwrap(), 7)).ok().unwrap();
    assert_eq!(noted.dequeue().unwrap().1, 7);
    noted.enqueue((pool.alloc().unwrap(), 8)).ok().unwrap();
    drop(noted);
    assert!(pool.is_full());
}
