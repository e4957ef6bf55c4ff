// SPDX-License-Identifier: BSD-3-Clause
//! Packets classified in place.

use std::num::NonZeroU32;

use dpdk::acl::{InputError, Match, Rule};
use dpdk::{Burst, Eal, Mempool, PoolConfig};

const ONE: NonZeroU32 = NonZeroU32::MIN;

pub fn short_packets_match_nothing(eal: &Eal) {
    let pool = Mempool::packet_pool(
        eal,
        &PoolConfig { count: 63, cache: 0, ..PoolConfig::named("short") },
    )
    .unwrap();
    let mut acl = super::lists::empty(eal, "short");
    acl.add(&Rule::new(ONE, 1, [Match::Any; 5])).unwrap();
    let acl = acl.build().unwrap();
    let mut burst = Burst::<8>::new();
    for len in [38, 37, 0, 14, 13, 64] {
        let mut mbuf = pool.alloc().unwrap();
        mbuf.append(len).unwrap().fill(0);
        assert!(burst.push(mbuf).is_ok());
    }
    // A complete header, but in two segments.
    let (mut head, mut tail) = (pool.alloc().unwrap(), pool.alloc().unwrap());
    head.append(37).unwrap().fill(0);
    tail.append(100).unwrap().fill(0);
    assert!(head.chain(tail).is_ok());
    assert!(burst.push(head).is_ok());

    let mut verdicts = [[Some(NonZeroU32::MAX)]; 8];
    assert_eq!(acl.classify_burst(&burst, 14, &mut verdicts), 5);
    let (yes, no, untouched) = ([Some(ONE)], [None], [Some(NonZeroU32::MAX)]);
    assert_eq!(verdicts, [yes, no, no, no, no, yes, no, untouched]);
    assert_eq!(acl.classify_burst(&burst, usize::MAX, &mut verdicts), 7);
    assert_eq!(verdicts[0], no);
    // The last field ends after the first 64 bytes.
    assert_eq!(acl.classify_burst(&burst, 40, &mut verdicts), 6);
    assert_eq!(verdicts[..7], [no, no, no, no, no, yes, no]);
    assert_eq!(acl.classify_burst(&burst, 41, &mut verdicts), 7);

    let mut inputs = acl.inputs::<1>();
    let packets = burst.as_slice();
    let short = |len| Err(InputError::Short { len, needed: 24 });
    assert_eq!(inputs.push_packet(&packets[1], 14), short(23));
    assert_eq!(inputs.push_packet(&packets[5], 41), short(23));
    assert_eq!(inputs.push_packet(&packets[5], 65), short(0));
    assert_eq!(inputs.push_packet(&packets[5], usize::MAX), short(0));
    inputs.push_packet(&packets[5], 40).unwrap();
    assert_eq!(inputs.push_packet(&packets[5], 40), Err(InputError::Full(1)));
    burst.clear();
    assert_eq!(acl.classify_burst(&burst, 14, &mut verdicts), 0);
    assert!(pool.is_full());
}
