// SPDX-License-Identifier: BSD-3-Clause
//! Full tables, and keys that all have the same bucket.

use std::ffi::CString;
use std::ptr;

use dpdk::Eal;
use dpdk::hash::{Full, Hash, HashConfig};

pub fn tables_take_what_they_have_room_for(eal: &Eal) {
    for capacity in [8, 9, 100, 1000] {
        let config = HashConfig { capacity, ..HashConfig::named("full") };
        let mut table = Hash::<u32, u32>::new(eal, &config).unwrap();
        for key in 0..capacity {
            assert_eq!(table.insert(&key, !key), Ok(None));
        }
        assert_eq!((table.len(), table.capacity()), (capacity as usize, capacity as usize));
        assert_eq!(table.insert(&capacity, 0), Err(Full));
        assert_eq!(table.insert(&0, 7), Ok(Some(!0)), "what is there can change");
        assert_eq!(table.remove(&1), Some(!1));
        assert_eq!(table.insert(&capacity, 1), Ok(None));
        let mut keys: Vec<u32> = table.into_iter().map(|(key, _)| key).collect();
        keys.sort_unstable();
        assert!(keys.into_iter().eq((0..=capacity).filter(|key| *key != 1)));
        drop(table);

        let config = HashConfig { extendable: false, ..config };
        let mut table = Hash::<u32, u32>::new(eal, &config).unwrap();
        let taken = (0..2 * capacity).filter(|key| table.insert(key, *key).is_ok()).count();
        assert!(table.len() == taken && taken <= capacity as usize);
        assert!(taken > capacity as usize / 2, "{taken} of {capacity}");
    }
}

/// In extension buckets, where C misses all keys of a call with 64.
pub fn many_keys_with_one_hash(eal: &Eal) {
    const HASH: u32 = 0x1234_5678;
    let config = HashConfig { capacity: 128, ..HashConfig::named("one") };
    let mut table = Hash::<u32, u32>::new(eal, &config).unwrap();
    for key in 0..100 {
        assert_eq!(table.insert_hashed(&key, HASH, key + 1000), Ok(None));
    }
    // The first ones occupy the two buckets.
    let keys: Vec<u32> = (100 - 64..100).collect();
    let (mut values, expected): (_, Vec<u32>) =
        ([0; 64], keys.iter().map(|key| key + 1000).collect());
    assert_eq!(table.lookup_bulk_hashed(&keys, &[HASH; 64], &mut values, 0), Ok(64));
    assert_eq!(values[..], expected);
    assert_eq!(
        c_hits(&keys, &mut [HASH; 64]),
        0,
        "C does not count wrongly any more: 64 in one call would do"
    );
    assert_eq!(c_hits(&keys[1..], &mut [HASH; 63]), u64::MAX >> 1);
    for key in 0..100 {
        assert_eq!(table.get_hashed(&key, HASH), Some(key + 1000));
        assert_eq!(table.get(&key), None, "its hash is another");
    }
    table.retain(|_, value| value % 2 == 0);
    assert_eq!(
        table.len(),
        100,
        "keys under other hashes than their own are not found by their own"
    );
    for key in (0..100).rev() {
        assert_eq!(table.remove_hashed(&key, HASH), Some(key + 1000));
    }
    assert!(table.is_empty());
}

/// A bit for each key that C finds in one call.
fn c_hits(keys: &[u32], hashes: &mut [u32]) -> u64 {
    let name = CString::new("one").unwrap();
    let mut keys: Vec<_> = keys.iter().map(|key| ptr::from_ref(key).cast()).collect();
    let (mut hits, mut values) = (0, [ptr::null_mut(); 64]);
    // SAFETY: the table exists; there are equally many keys and hashes, and room for 64 values.
    unsafe {
        let table = dpdk_sys::rte_hash_find_existing(name.as_ptr());
        dpdk_sys::rte_hash_lookup_with_hash_bulk_data(
            table,
            keys.as_mut_ptr(),
            hashes.as_mut_ptr(),
            keys.len() as u32,
            &raw mut hits,
            values.as_mut_ptr(),
        );
    }
    hits
}

pub fn keys_come_with_their_hashes(eal: &Eal) {
    let make = |name, seed| {
        Hash::<[u8; 13], u16>::new(eal, &HashConfig { seed, ..HashConfig::named(name) }).unwrap()
    };
    let (mut first, second, seeded) = (make("first", 0), make("second", 0), make("seeded", 1));
    let key = *b"thirteen byte";
    let hash = first.hash_of(&key);
    assert!(hash == second.hash_of(&key) && hash != seeded.hash_of(&key));
    // CRC-32C without the complements, as the CPU's instruction computes it.
    assert_eq!(hash, crc32c(&key));
    assert_eq!(first.insert_hashed(&key, hash, 5), Ok(None));
    assert_eq!((first.get(&key), first.get_hashed(&key, hash)), (Some(5), Some(5)));
    assert_eq!(first.remove(&key), Some(5));
}

/// Most lengths have a function of their own.
pub fn keys_of_every_length(eal: &Eal) {
    fn check<const N: usize>(eal: &Eal) {
        let table = Hash::<[u8; N], u32>::new(eal, &HashConfig::named("length")).unwrap();
        let key: [u8; N] = std::array::from_fn(|n| 0xa5 ^ n as u8);
        let crc = crc32c(&key);
        assert_eq!(table.hash_of(&key), crc | u32::from(crc >> 16 == 0) << 16, "{N} bytes");
    }
    check::<1>(eal);
    check::<4>(eal);
    check::<7>(eal);
    check::<8>(eal);
    check::<12>(eal);
    check::<16>(eal);
    check::<20>(eal);
    check::<24>(eal);
    check::<28>(eal);
    check::<30>(eal);
    check::<32>(eal);
    check::<36>(eal);
    check::<40>(eal);
    check::<44>(eal);
}

/// The CRC of zeros is 0, with which DPDK marks empty slots: it would insert the key again each
/// time.
pub fn a_key_of_zeros(eal: &Eal) {
    let mut table = Hash::<u64, u32>::new(eal, &HashConfig::named("zeros")).unwrap();
    assert_eq!(crc32c(&[0; 8]), 0);
    // It comes after an empty slot in its bucket.
    for key in 0..64 {
        assert_eq!(table.insert_hashed(&(64 - key), 0, 1), Ok(None));
        assert_eq!(table.insert_hashed(&(1000 + key), 8, 1), Ok(None));
    }
    assert_eq!((table.insert(&0, 1), table.insert_hashed(&0, 0, 2)), (Ok(None), Ok(Some(1))));
    for key in 1..=64 {
        assert_eq!(table.remove_hashed(&key, 0), Some(1));
        assert_eq!(
            table.insert(&0, key as u32),
            Ok(Some(if key == 1 { 2 } else { key as u32 - 1 }))
        );
        assert_eq!(table.insert_hashed(&0, 0, key as u32), Ok(Some(key as u32)));
    }
    assert_eq!((table.len(), table.remove(&0), table.get_hashed(&0, 0)), (65, Some(64), None));
}

fn crc32c(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            crc >> 1 ^ if crc & 1 == 1 { 0x82f6_3b78 } else { 0 }
        })
    })
}
