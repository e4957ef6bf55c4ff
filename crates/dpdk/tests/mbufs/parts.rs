// SPDX-License-Identifier: BSD-3-Clause
//! Parts of packets: of any chain, of clones, of external bytes; shared while they exist, and whole
//! in the end.

use dpdk::{Eal, Mbuf, Mempool, PartError, ShareError, SharedMbuf};

pub fn check(eal: &Eal) {
    let pool = super::pool(eal, "parts", 300);
    let tiny = super::pool(eal, "tiny-parts", 64);
    every_range(&pool, &tiny);
    of_a_part(&pool);
    nothing_is_left_behind(&pool);
    fragments(&pool);
    assert!(pool.is_full() && tiny.is_full());
}

/// A packet of segments of these lengths.
fn chained<'m>(pool: &Mempool<'m>, lengths: &[usize]) -> SharedMbuf<'m> {
    let (all, mut from) = (super::bytes(lengths.iter().sum()), 0);
    let mut packet: Option<Mbuf<'m>> = None;
    for len in lengths {
        let mut mbuf = pool.alloc().unwrap();
        mbuf.append(*len).unwrap().copy_from_slice(&all[from..from + len]);
        from += len;
        match &mut packet {
            Some(packet) => packet.chain(mbuf).unwrap(),
            None => packet = Some(mbuf),
        }
    }
    packet.unwrap().share()
}

fn every_range<'m>(pool: &Mempool<'m>, tiny: &Mempool<'_>) {
    for lengths in [&[20][..], &[0], &[5, 7], &[0, 3, 0, 9, 0], &[1, 1, 1, 1]] {
        let packet = chained(pool, lengths);
        let all = super::content(&packet);
        for start in 0..=all.len() {
            for end in start..=all.len() {
                let part = packet.part_into(pool, start..end).unwrap();
                assert_eq!(super::content(&part), all[start..end]);
                assert_eq!(part.packet_len(), end - start);
                assert_eq!(part.segments(), part.segment_data().count());
                assert!(part.segments() <= lengths.len());
                // Shared with the packet, and not copied.
                if end > start {
                    assert!(!part.is_unshared());
                    let at = part.segment_data().next().unwrap().as_ptr();
                    assert!(packet.segment_data().any(|bytes| bytes.as_ptr_range().contains(&at)));
                }
                let copy = packet.copy_range_into(tiny, start..end).unwrap();
                assert_eq!(super::content(&copy), all[start..end]);
                assert!(copy.is_unshared());
            }
        }
        let expected = PartError::Range { start: 0, end: all.len() + 1, len: all.len() };
        assert_eq!(packet.part_into(pool, ..=all.len()).err(), Some(expected));
        assert_eq!(packet.copy_range_into(pool, ..=all.len()).err(), Some(expected));
        assert!(packet.unshare().is_ok(), "the parts are gone");
    }
}

fn of_a_part(pool: &Mempool<'_>) {
    let packet = chained(pool, &[100, 100, 100]);
    let all = super::content(&packet);
    let part = packet.part_into(pool, 50..250).unwrap().share();
    drop(packet);
    let clone = part.clone_into(pool).unwrap().share();
    drop(part);
    let part = clone.part_into(pool, 20..180).unwrap();
    drop(clone);
    assert_eq!(super::content(&part), all[70..230]);
    // It can be shortened and split without touching its bytes.
    let mut part = part;
    assert!(part.adj(10) && part.trim(10));
    let tail = part.split(1).unwrap();
    assert_eq!(super::content(&part), all[80..100]);
    assert_eq!(super::content(&tail), all[100..220]);
    assert!(part.data_mut().is_none() && part.prepend(1).is_none());
}

fn nothing_is_left_behind(pool: &Mempool<'_>) {
    let packet = chained(pool, &[10; 6]);
    let held: Vec<_> = std::iter::from_fn(|| pool.alloc()).collect();
    let free = 4;
    let held: Vec<_> = held.into_iter().skip(free).collect();
    assert_eq!(pool.available(), free);
    assert!(packet.part_into(pool, 5..45).err() == Some(ShareError::Exhausted.into()));
    assert_eq!(pool.available(), free);
    let part = packet.part_into(pool, 5..35).unwrap();
    assert_eq!(part.segments(), free);
    assert!(packet.part_into(pool, 0..0).err() == Some(ShareError::Exhausted.into()));
    drop((part, held));
    assert!(packet.unshare().is_ok());
}

/// What the documentation shows.
fn fragments(pool: &Mempool<'_>) {
    let packet = chained(pool, &[34, 200, 300]);
    let all = super::content(&packet);
    let mut fragments = Vec::new();
    for start in (34..534).step_by(120) {
        let end = all.len().min(start + 120);
        let mut fragment = packet.copy_range_into(pool, ..34).unwrap();
        fragment.chain(packet.part_into(pool, start..end).unwrap()).unwrap();
        fragment.data_mut().unwrap()[20..22].copy_from_slice(&(start as u16 - 34).to_be_bytes());
        fragments.push(fragment);
    }
    assert_eq!(super::content(&packet), all, "each has a header of its own");
    drop(packet);
    let payload: Vec<u8> =
        fragments.iter().flat_map(|fragment| super::content(fragment)[34..].to_vec()).collect();
    assert_eq!(payload, all[34..]);
    assert!(fragments.iter().all(Mbuf::is_unshared), "the first segment is");
}
