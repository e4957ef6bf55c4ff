// SPDX-License-Identifier: BSD-3-Clause
//! Arguments that DPDK would misinterpret are refused.

use dpdk::hash::{Hash, HashConfig, HashError, HashFunction, LookupError, SharedHash};
use dpdk::qsbr::Qsbr;
use dpdk::{Eal, Errno};

pub fn bad_configurations(eal: &Eal) {
    let config = || HashConfig::named("refused");
    let make = |config: HashConfig| Hash::<u32, u32>::new(eal, &config).err();
    for name in ["", "a\0b", "a name of 22 bytes....", "a name that is much too long for a ring's"]
    {
        let refused = make(HashConfig::named(name));
        assert!(matches!(refused, Some(HashError::Name { most: 21, .. })), "{refused:?}");
    }
    assert!(make(HashConfig::named("a name of 21 bytes...")).is_none());
    let refused = make(HashConfig::named("memif-sh"));
    assert!(matches!(refused, Some(HashError::Reserved(_))), "{refused:?}");
    let qsbr = Qsbr::new(1);
    let refused =
        SharedHash::<u32, u32>::new(eal, &HashConfig::named("a name of 20 bytes.."), &qsbr).err();
    assert!(matches!(refused, Some(HashError::Name { most: 19, .. })), "{refused:?}");
    for capacity in [0, 7, 1 << 28, u32::MAX] {
        let refused = make(HashConfig { capacity, ..config() });
        assert!(
            matches!(refused, Some(HashError::Capacity { most: 0x0fff_ffff, .. })),
            "{refused:?}"
        );
    }
    // Entries of 4112 bytes: one fewer than these would fit into 2^32 bytes.
    let refused =
        Hash::<[u8; 4096], u32>::new(eal, &HashConfig { capacity: 1_044_495, ..config() }).err();
    assert!(matches!(refused, Some(HashError::Capacity { most: 1_044_494, .. })), "{refused:?}");
    let refused = make(HashConfig { capacity: 1 << 27, ..config() });
    assert!(
        matches!(refused, Some(HashError::Refused { errno: Errno::ENOMEM, .. })),
        "{refused:?}"
    );
    let jhash = HashConfig { function: HashFunction::Jhash, ..config() };
    let refused = Hash::<[u8; 13], u32>::new(eal, &jhash).err();
    assert!(matches!(refused, Some(HashError::KeyLength { given: 13, .. })), "{refused:?}");
    let held = Hash::<u32, u32>::new(eal, &config()).unwrap();
    let refused = make(config());
    assert!(
        matches!(refused, Some(HashError::Refused { errno: Errno::EEXIST, .. })),
        "{refused:?}"
    );
    drop(held);
    assert!(make(config()).is_none(), "the name is free again");
}

pub fn lookups_without_places(eal: &Eal) {
    let table = Hash::<u32, u32>::new(eal, &HashConfig::named("places")).unwrap();
    let lengths = |what, others| Err(LookupError::Lengths { keys: 3, what, others });
    assert_eq!(table.lookup_bulk(&[0; 3], &mut [0; 2], 0), lengths("places for values", 2));
    assert_eq!(table.lookup_bulk_hashed(&[0; 3], &[0; 4], &mut [0; 3], 0), lengths("hashes", 4));
    assert_eq!(table.lookup_mask(&[0; 65], &mut [0; 65]), Err(LookupError::TooMany(65)));
    assert_eq!(table.lookup_bulk(&[], &mut [], 0), Ok(0));
    assert_eq!(table.lookup_mask(&[], &mut []), Ok(0));
}
