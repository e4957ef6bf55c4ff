// SPDX-License-Identifier: BSD-3-Clause
//! Inserts and removes random keys; all results are compared with those of a standard-library map.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fmt::Debug;
use std::hash::Hash as StdHash;
use std::net::Ipv6Addr;

use dpdk::Eal;
use dpdk::hash::{Full, Hash, HashConfig, HashFunction, Plain};
use proptest::prelude::*;

use super::support::property::for_all_unshrunk;

const CAPACITY: u32 = 40;

#[derive(Clone, Debug)]
enum Step {
    Insert(u8, u16),
    Remove(u8),
    /// Removes keys whose value modulo 4 is this.
    Retain(u16),
    Clear,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        60 => (0..64u8, any::<u16>()).prop_map(|(key, value)| Step::Insert(key, value)),
        20 => (0..64u8).prop_map(Step::Remove),
        1 => (0..4u16).prop_map(Step::Retain),
        1 => Just(Step::Clear),
    ]
}

/// Keys of every length for which DPDK has its own comparison, and others.
pub fn random_changes(eal: &Eal) {
    let crc = HashConfig { capacity: CAPACITY, ..HashConfig::named("oracle") };
    let jhash = HashConfig { function: HashFunction::Jhash, seed: 7, ..crc.clone() };
    let plain = HashConfig { extendable: false, ..crc.clone() };
    for config in [&crc, &plain] {
        compare(eal, config, |n| n, |v| v as u8);
        compare(eal, config, |n| [n; 3], |v| v);
        compare(eal, config, |n| [n; 13], |v| [v as u8, 1, (v >> 8) as u8]);
    }
    for config in [&crc, &jhash, &plain] {
        compare(eal, config, |n| u32::from(n) << 20, u64::from);
        compare(eal, config, |n| u128::from(n) << 70 | 1, u32::from);
        compare(eal, config, |n| Ipv6Addr::from([n; 16]), |v| v & 1 == 1);
        compare(eal, config, |n| [u64::from(n); 4], |v| v);
        compare(eal, config, |n| [u32::from(n); 9], |v| v);
        compare(eal, config, |n| [u64::from(n); 16], |v| v);
    }
}

fn compare<K, V>(eal: &Eal, config: &HashConfig, key: impl Fn(u8) -> K, value: impl Fn(u16) -> V)
where
    K: Plain + Debug + Eq + StdHash,
    V: Plain + Debug + PartialEq,
{
    let table = RefCell::new(Hash::<K, V>::new(eal, config).unwrap());
    let full = Cell::new(false);
    let run = |steps: Vec<Step>| {
        let table = &mut *table.borrow_mut();
        table.clear();
        let mut model = HashMap::new();
        for step in steps {
            match step {
                Step::Insert(n, v) => match table.insert(&key(n), value(v)) {
                    Ok(old) => {
                        prop_assert_eq!(old, model.insert(key(n), (v, value(v))).map(|(_, v)| v))
                    }
                    Err(Full) => {
                        prop_assert!(!model.contains_key(&key(n)));
                        prop_assert!(model.len() > CAPACITY as usize / 2, "so early");
                        full.set(true);
                    }
                },
                Step::Remove(n) => {
                    prop_assert_eq!(table.remove(&key(n)), model.remove(&key(n)).map(|(_, v)| v));
                }
                Step::Retain(rest) => {
                    let gone: Vec<K> = model
                        .iter()
                        .filter(|(_, (v, _))| v % 4 == rest)
                        .map(|(key, _)| *key)
                        .collect();
                    let mut asked = 0;
                    table.retain(|key, _| {
                        asked += 1;
                        !gone.contains(key)
                    });
                    prop_assert_eq!(asked, model.len());
                    model.retain(|key, _| !gone.contains(key));
                }
                Step::Clear => {
                    table.clear();
                    model.clear();
                }
            }
            same(table, &model, &key, value(0))?;
        }
        Ok(())
    };
    // More keys than there is room for, which random steps insert most times, but not always.
    run((0..64).map(|n| Step::Insert(n, n.into())).collect()).unwrap();
    assert!(full.get(), "no table was ever full");
    for_all_unshrunk(10..=60, &prop::collection::vec(step(), 1..250), run);
}

fn same<K, V>(
    table: &Hash<'_, K, V>,
    model: &HashMap<K, (u16, V)>,
    key: impl Fn(u8) -> K,
    missed: V,
) -> Result<(), TestCaseError>
where
    K: Plain + Debug + Eq + StdHash,
    V: Plain + Debug + PartialEq,
{
    let expected = |key: &K| model.get(key).map(|(_, value)| *value);
    prop_assert_eq!((table.len(), table.is_empty()), (model.len(), model.is_empty()));
    let inside: HashMap<K, V> = table.iter().collect();
    prop_assert_eq!(table.iter().count(), model.len(), "a key came twice");
    prop_assert!(inside.iter().all(|(key, value)| expected(key) == Some(*value)));
    // 70 are more than C takes in one call.
    let keys: Vec<K> = (0..70).map(key).collect();
    let hashes: Vec<u32> = keys.iter().map(|key| table.hash_of(key)).collect();
    let mut values = [vec![missed; keys.len()], vec![missed; keys.len()]];
    let hits = table.lookup_bulk(&keys, &mut values[0], missed).unwrap();
    let again = table.lookup_bulk_hashed(&keys, &hashes, &mut values[1], missed).unwrap();
    prop_assert_eq!((hits, again), (model.len(), model.len()));
    prop_assert_eq!(&values[0], &values[1]);
    let expected: Vec<Option<V>> = keys.iter().map(expected).collect();
    for (n, key) in keys.iter().enumerate() {
        prop_assert_eq!(table.get(key), expected[n]);
        prop_assert_eq!(table.get_hashed(key, hashes[n]), expected[n]);
        prop_assert_eq!(table.contains(key), expected[n].is_some());
        prop_assert_eq!(values[0][n], expected[n].unwrap_or(missed));
    }
    let burst = &keys[..64];
    let mut values = vec![missed; 64];
    let mask = table.lookup_mask(burst, &mut values).unwrap();
    for n in 0..burst.len() {
        prop_assert_eq!(mask >> n & 1 == 1, expected[n].is_some());
        prop_assert_eq!(values[n], expected[n].unwrap_or(missed));
    }
    Ok(())
}
