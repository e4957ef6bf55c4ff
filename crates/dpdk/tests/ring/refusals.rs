// SPDX-License-Identifier: BSD-3-Clause
//! Arguments that DPDK would misinterpret are refused.

use dpdk::ring::{Ring, RingConfig, RingError};
use dpdk::{Eal, Errno};

pub fn bad_configurations(eal: &Eal) {
    let config = || RingConfig::named("refused");
    for name in ["", "a\0b", "a name of 29 bytes, one more "] {
        let refused = Ring::<u64>::new(eal, &RingConfig::named(name)).err();
        assert!(matches!(refused, Some(RingError::Name { most: 28, .. })), "{refused:?}");
    }
    let refused = Ring::<u64>::new(eal, &RingConfig::named("ETH_RXTX15_net_ring0")).err();
    assert!(matches!(refused, Some(RingError::Reserved(_))), "{refused:?}");
    let longest = RingConfig::named("a name of 28 bytes, the most");
    drop(Ring::<u64>::new(eal, &longest).unwrap());
    fn limit<T>(eal: &Eal, capacity: u32, most: u32) {
        let refused =
            Ring::<T>::new(eal, &RingConfig { capacity, ..RingConfig::named("refused") }).err();
        assert!(
            matches!(refused, Some(RingError::Capacity { most: is, .. }) if is == most),
            "{refused:?}"
        );
    }
    for capacity in [0, 1 << 28, u32::MAX] {
        limit::<u64>(eal, capacity, (1 << 28) - 1);
    }
    limit::<u32>(eal, 1 << 29, (1 << 29) - 1);
    // The slots would take 2^32 bytes, which DPDK computes as 0.
    limit::<[u32; 3]>(eal, 1 << 27, (1 << 27) - 1);
    limit::<[u64; 128]>(eal, 1 << 21, (1 << 21) - 1);
    let refused = Ring::<u64>::new(eal, &RingConfig { capacity: (1 << 28) - 1, ..config() }).err();
    assert!(
        matches!(refused, Some(RingError::Refused { errno: Errno::ENOMEM, .. })),
        "{refused:?}"
    );
    let held = Ring::<u64>::new(eal, &config()).unwrap();
    let refused = Ring::<u64>::new(eal, &config()).err();
    assert!(
        matches!(refused, Some(RingError::Refused { errno: Errno::EEXIST, .. })),
        "{refused:?}"
    );
    drop(held);
    drop(Ring::<u64>::new(eal, &config()).unwrap()); // The name is free again.
}
