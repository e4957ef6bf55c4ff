// SPDX-License-Identifier: BSD-3-Clause
//! The hash function of tables.

use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::{BuildHasher, Hasher};

use zerocopy::{Immutable, IntoBytes};

/// The secret that a table's hash function depends on. Whoever does not know it cannot send flows that all fall into the same
/// buckets.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Seed([u64; 2]);

/// Does not show the secret.
impl fmt::Debug for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seed").finish_non_exhaustive()
    }
}

impl Seed {
    /// A seed from the operating system's random numbers.
    #[must_use]
    pub fn random() -> Self {
        let random = || RandomState::new().build_hasher().finish();
        Self([random(), random()])
    }

    /// The seed of a number, for tests and measurements that are to be repeated.
    #[must_use]
    pub const fn fixed(number: u64) -> Self {
        // SplitMix64, so that near numbers give seeds that are not.
        const fn mixed(state: u64) -> u64 {
            let z = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ z >> 31
        }
        let first = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
        Self([mixed(first), mixed(first.wrapping_add(0x9e37_79b9_7f4a_7c15))])
    }

    /// The hash of a key: products of 64 bits, whose halves are combined, as in wyhash. Its bits are equally good.
    #[inline(always)]
    pub(crate) fn hash<K: IntoBytes + Immutable>(self, key: &K) -> u64 {
        let bytes = key.as_bytes();
        let [first, second] = self.0;
        // The length is a constant for each type of keys, so that this is a few instructions.
        let mut state = second;
        let mut chunks = bytes.chunks_exact(16);
        for chunk in chunks.by_ref() {
            state = folded(word(&chunk[..8]) ^ first, word(&chunk[8..]) ^ state);
        }
        let rest = chunks.remainder();
        if !rest.is_empty() {
            let (low, high) = rest.split_at(rest.len().min(8));
            state = folded(word(low) ^ first, word(high) ^ state);
        }
        folded(state ^ first, 0x9e37_79b9_7f4a_7c15)
    }
}

/// Up to eight bytes as a number.
#[inline(always)]
fn word(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_ne_bytes(word)
}

/// The halves of a product of 128 bits, combined.
#[inline(always)]
fn folded(one: u64, other: u64) -> u64 {
    let product = u128::from(one) * u128::from(other);
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The largest number of `keys` in one of `places`, by the hash's lowest bits and by its highest.
    fn fullest<K: IntoBytes + Immutable>(keys: impl Iterator<Item = K>, places: usize) -> usize {
        let seed = Seed::fixed(7);
        let (mut low, mut high) = (vec![0; places], vec![0; places]);
        for key in keys {
            let hash = seed.hash(&key);
            low[hash as usize % places] += 1;
            high[(hash >> 32) as usize % places] += 1;
        }
        *low.iter().chain(&high).max().unwrap()
    }

    #[test]
    fn keys_that_differ_a_little_are_spread() {
        // 16 keys a place on average; random ones have some 35 in the fullest of 2 * 4096 places.
        let addresses = (0..1u32 << 16).map(|n| [0x0a00_0000 + n, 0xc633_640a, 1024 << 16 | 80, 6]);
        assert!(fullest(addresses, 4096) < 50);
        let ports = (0..1u32 << 16).map(|n| [0x0a00_0001, 0xc633_640a, n << 16 | 80, 6]);
        assert!(fullest(ports, 4096) < 50);
        let v6 = (0..1u32 << 16).map(|n| [1, 2, 3, n, 5, 6, 7, 8, n << 16, 17]);
        assert!(fullest(v6, 4096) < 50);
        let short = (0..1u32 << 16).map(|n| n << 8);
        assert!(fullest(short, 4096) < 50);
    }

    #[test]
    fn every_byte_counts() {
        let seed = Seed::fixed(1);
        let key = [7u8; 37];
        for at in 0..key.len() {
            let mut other = key;
            other[at] ^= 1;
            assert_ne!(seed.hash(&other), seed.hash(&key), "byte {at}");
            assert_ne!(Seed::fixed(2).hash(&other), seed.hash(&other));
        }
    }

    #[test]
    fn seeds_differ_and_are_not_shown() {
        assert_ne!(Seed::random(), Seed::random());
        assert_eq!(format!("{:?}", Seed::fixed(3)), "Seed { .. }");
    }
}
