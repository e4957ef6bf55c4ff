// SPDX-License-Identifier: BSD-3-Clause
use std::collections::HashMap;

use proptest::prelude::*;

use super::*;

type Key = [u32; 4];

fn key(number: u32) -> Key {
    [number, 0x0a00_0001, 80 << 16 | 1024, 6]
}

fn table<V>(capacity: usize) -> FlowTable<Key, V> {
    FlowTable::with_seed(capacity, Seed::fixed(capacity as u64)).unwrap()
}

#[test]
fn as_many_flows_as_it_says() {
    for capacity in [1, 2, 7, 8, 9, 100, 4096, 6144, 50_000] {
        let mut flows = table(capacity);
        for number in 0..capacity as u32 {
            flows.insert(key(number), number, 0).unwrap();
        }
        assert_eq!((flows.len(), flows.capacity()), (capacity, capacity));
        let other = key(capacity as u32);
        assert_eq!(flows.insert(other, 7, 0), Err(Full(7)), "{capacity}");
        for number in 0..capacity as u32 {
            assert_eq!(flows.get(&key(number)), Some(&number));
        }
        assert_eq!(flows.get(&other), None);
        // What there is can still be changed.
        flows.insert(key(0), 9, 0).unwrap();
        assert_eq!((flows.get(&key(0)), flows.len()), (Some(&9), capacity));
        flows.clear();
        assert!(flows.is_empty() && flows.find(&key(0)).is_none());
        flows.insert(other, 7, 0).unwrap();
    }
}

#[test]
fn wrong_capacities_are_refused() {
    for capacity in [0, MOST + 1, usize::MAX] {
        let error = FlowTable::<Key, u8>::new(capacity).unwrap_err();
        assert_eq!(error, CapacityError::Range(capacity));
        assert!(error.to_string().ends_with(&format!("not {capacity}")));
    }
    let large = FlowTable::<[u64; 512], [u8; 1 << 20]>::new(MOST);
    assert_eq!(large.unwrap_err(), CapacityError::Memory(MOST));
}

#[test]
fn entries_move_and_stay_findable() {
    // More flows than places of their first buckets: found only if moves keep each in one of its own two.
    let mut flows = table(6 * 4096);
    let capacity = flows.capacity() as u32;
    for number in 0..capacity {
        let slot = flows.insert(key(number), number, 0).unwrap();
        assert_eq!(flows.find(&key(number)), Some(slot));
    }
    let second = flows.iter().filter(|(slot, key, _)| {
        let hash = flows.hash(key);
        let [first, _] = flows.places(hash);
        !flows.buckets[first].entries_with(Bucket::tag(hash)).any(|entry| entry == slot.0)
    });
    assert!(second.count() > 0, "no flow was put in its second bucket");
    let slots: Vec<_> = flows.iter().map(|(slot, ..)| slot).collect();
    assert_eq!(slots.len(), flows.len());
    for slot in slots {
        let (key, value) = flows.at(slot).map(|(key, value)| (*key, *value)).unwrap();
        assert_eq!(flows.remove_at(slot), Some((key, value)));
        assert_eq!(flows.remove_at(slot), None);
        assert_eq!(flows.at(slot), None);
    }
    assert!(flows.is_empty());
    assert!(flows.buckets.iter().all(|bucket| bucket.with(0) == 0xff), "every place is empty");
}

#[test]
fn full_buckets_are_emptied_by_moving() {
    // Buckets, not entries, are the limit: as many buckets as flows need, by making most of the table's entries reachable.
    let mut flows = table::<u32>(48);
    assert_eq!(flows.buckets.len(), 8);
    let mut most = 0;
    for seed in 0..200 {
        flows.clear();
        flows.seed = Seed::fixed(seed);
        for number in 0..48 {
            flows.insert(key(number), number, 0).unwrap();
        }
        let fullest =
            flows.buckets.iter().map(|bucket| PLACES - bucket.with(0).count_ones() as usize).max();
        most = most.max(fullest.unwrap());
        assert!((0..48).all(|number| flows.get(&key(number)) == Some(&number)));
    }
    assert_eq!(most, PLACES, "a bucket was full");
}

#[test]
fn a_flow_whose_hash_is_zero_leaves_nothing_behind() {
    // Found by search: the lower half of its hash is 0.
    let (seed, key) = (Seed::fixed(7), 0x1_2f37_58a1_u64);
    assert_eq!(seed.hash(&key) as u32, 0);
    let mut flows = FlowTable::with_seed(1000, seed).unwrap();
    for round in 0..100 {
        flows.insert(key, round, 0).unwrap();
        assert_eq!(flows.get(&key), Some(&round));
        assert_eq!(flows.remove(&key), Some(round));
    }
    assert!(flows.buckets.iter().all(|bucket| bucket.with(0) == 0xff), "every place is empty");
}

#[test]
fn flows_expire_a_part_at_a_time() {
    let mut flows = table(100);
    for number in 0..100 {
        flows.insert(key(number), number, number).unwrap();
    }
    let mut gone = Vec::new();
    // At 150, flows 0 to 50 have been idle for 100 or more.
    for part in 1..=4 {
        let removed = flows.expire(150, 100, 25, |key, value| gone.push((key, value)));
        assert_eq!(removed, if part < 3 { 25 } else { usize::from(part == 3) });
    }
    gone.sort_unstable();
    assert_eq!(gone, (0..51).map(|number| (key(number), number)).collect::<Vec<_>>());
    assert_eq!(flows.len(), 49);
    // A flow that was seen stays, and so does one whose time wrapped around.
    let slot = flows.find(&key(60)).unwrap();
    *flows.see(slot, u32::MAX - 5).unwrap() += 1;
    assert_eq!(flows.expire(4, 100, 1000, |_, _| ()), 48);
    assert_eq!(flows.get(&key(60)), Some(&61));
    assert_eq!(flows.expire(94, 100, 1000, |_, _| ()), 1);
    assert_eq!(flows.see(slot, 0), None);
}

#[test]
fn results_of_bulk_lookups_are_those_of_single_ones() {
    let mut flows = table(1000);
    for number in 0..1000 {
        flows.insert(key(number * 2), number, 0).unwrap();
    }
    let keys: Vec<_> = (0..2000).map(key).collect();
    let mut found = vec![Found::default(); 2000];
    flows.find_bulk(&keys, &mut found);
    for (key, found) in keys.iter().zip(&found) {
        assert_eq!(found.slot(), flows.find(key));
    }
    assert_eq!(found.iter().filter(|found| found.slot().is_some()).count(), 1000);
    // A key that was not found is inserted by its result, once.
    flows.remove(&key(0));
    let slot = flows.insert_found(keys[1], found[1], 5, 0).unwrap();
    flows.remove(&key(2));
    assert_eq!(flows.insert_found(keys[1], found[1], 6, 0), Ok(slot));
    assert_eq!((flows.at(slot), flows.len()), (Some((&keys[1], &6)), 999));
}

#[test]
#[should_panic(expected = "as many results as keys")]
fn a_bulk_lookup_needs_room_for_all_results() {
    table::<u8>(8).find_bulk(&[key(1)], &mut []);
}

#[test]
fn an_entry_has_no_byte_more_than_its_parts() {
    assert_eq!(size_of::<Option<Entry<Key, u64>>>(), 32);
    assert_eq!(size_of::<Option<Entry<[u32; 10], u32>>>(), 52);
}

proptest! {
    #[test]
    fn it_is_a_map(
        capacity in 1usize..64,
        seed: u64,
        changes in prop::collection::vec((0u32..96, any::<u16>(), 0u8..4), 0..400),
    ) {
        let mut flows = FlowTable::with_seed(capacity, Seed::fixed(seed)).unwrap();
        let mut model = HashMap::new();
        for (number, value, change) in changes {
            let key = key(number);
            match change {
                0 | 1 => match flows.insert(key, value, 0) {
                    Ok(slot) => {
                        model.insert(key, value);
                        prop_assert_eq!(flows.at(slot), Some((&key, &value)));
                    }
                    // Only the capacity is a limit in tables this small.
                    Err(full) => {
                        prop_assert_eq!(full.0, value);
                        prop_assert!(model.len() == capacity && !model.contains_key(&key));
                    }
                },
                2 => prop_assert_eq!(flows.remove(&key), model.remove(&key)),
                _ => prop_assert_eq!(flows.get(&key), model.get(&key)),
            }
            prop_assert_eq!(flows.len(), model.len());
        }
        let all: HashMap<_, _> = flows.iter().map(|(_, key, value)| (*key, *value)).collect();
        prop_assert_eq!(all, model);
    }
}
