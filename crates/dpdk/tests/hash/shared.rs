// SPDX-License-Identifier: BSD-3-Clause
//! One writer, several readers.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use dpdk::Eal;
use dpdk::hash::{Full, HashConfig, SharedHash};
use dpdk::qsbr::Qsbr;

/// Keys are inserted and removed, so that slots and buckets are reused all the time; a key that
/// stays is always found, and its value is always its own.
pub fn readers_see_each_key_as_it_was_written(eal: &Eal) {
    const KEYS: u64 = 200;
    const STAY: u64 = 64;
    let value = |key: u64, version: u64| key << 32 | version;
    for extendable in [true, false] {
        let config = HashConfig { capacity: 160, extendable, ..HashConfig::named("shared") };
        let qsbr = Qsbr::new(2);
        let mut shared = SharedHash::<u64, u64>::new(eal, &config, &qsbr).unwrap();
        let (mut writer, table) = shared.split();
        for key in 0..STAY {
            assert_eq!(writer.insert(&key, value(key, 0)), Ok(None));
        }
        let (stop, seen) = (AtomicBool::new(false), [const { AtomicU64::new(0) }; 2]);
        std::thread::scope(|threads| {
            let _stops = Stop(&stop);
            let readers = seen.each_ref().map(|seen| {
                let (stop, qsbr, table) = (&stop, &qsbr, table.clone());
                threads.spawn(move || {
                    let mut reader = qsbr.register().unwrap();
                    let mut online = reader.online();
                    let keys: Vec<u64> = (0..KEYS).collect();
                    let mut values = [0; KEYS as usize];
                    while !stop.load(Ordering::Relaxed) {
                        let now = table.now(&online);
                        now.lookup_bulk(&keys, &mut values, u64::MAX).unwrap();
                        for (key, found) in keys.iter().zip(&values) {
                            let one = now.get(key);
                            assert!(one.is_none_or(|one| one >> 32 == *key), "{key}: {one:x?}");
                            assert!(*found == u64::MAX || found >> 32 == *key, "{key}: {found:x}");
                            let stays = *key < STAY;
                            assert!(
                                !stays || (one.is_some() && *found != u64::MAX),
                                "{key} was missed"
                            );
                        }
                        seen.fetch_add(1, Ordering::Relaxed);
                        online.quiescent();
                    }
                })
            });
            let (mut added, mut version) = (0_u64, 0_u64);
            while added < 20_000 || seen.iter().any(|seen| seen.load(Ordering::Relaxed) < 200) {
                assert!(!readers.iter().any(|reader| reader.is_finished()), "a reader has failed");
                version = (version + 1) & 0xffff;
                let key = STAY + version.wrapping_mul(31) % (KEYS - STAY);
                if writer.get(&key).is_some() {
                    assert_eq!(writer.remove(&key).map(|value| value >> 32), Some(key));
                } else if writer.insert(&key, value(key, version)).is_ok() {
                    added += 1;
                }
                let stays = version % STAY;
                assert!(writer.insert(&stays, value(stays, version)).unwrap().is_some());
            }
        });
    }
}

/// Ends the readers, even if the writer panics.
struct Stop<'s>(&'s AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

pub fn places_wait_for_readers(eal: &Eal) {
    let config = HashConfig { capacity: 8, ..HashConfig::named("waits") };
    let qsbr = Qsbr::new(1);
    for _ in 0..2 {
        let mut shared = SharedHash::<u32, u32>::new(eal, &config, &qsbr).unwrap();
        let (mut writer, table) = shared.split();
        let mut reader = qsbr.register().unwrap();
        let mut online = reader.online();
        for key in 0..8 {
            assert_eq!(writer.insert(&key, key), Ok(None));
        }
        assert_eq!(table.now(&online).get(&3), Some(3));
        assert_eq!(writer.remove(&3), Some(3));
        assert_eq!(table.now(&online).get(&3), None);
        assert_eq!(
            writer.insert(&8, 8),
            Err(Full),
            "the reader may be comparing the key that went"
        );
        online.quiescent();
        assert_eq!(writer.insert(&8, 8), Ok(None));
        assert_eq!(table.now(&online).get(&8), Some(8));
        // The names of the table's memory in DPDK are free when the table is gone.
    }
}

/// The writer sees what is in the table, but not removed entries that wait for readers.
pub fn the_writer_walks_and_sorts_out(eal: &Eal) {
    let config = HashConfig { capacity: 64, ..HashConfig::named("walked") };
    let qsbr = Qsbr::new(1);
    let mut shared = SharedHash::<u32, u32>::new(eal, &config, &qsbr).unwrap();
    let (mut writer, table) = shared.split();
    assert_eq!(writer.used(), 0);
    for key in 0..40 {
        assert_eq!(writer.insert(&key, key + 100), Ok(None));
    }
    let mut reader = qsbr.register().unwrap();
    let mut online = reader.online();
    writer.retain(|key, value| {
        assert_eq!(value, key + 100);
        let _ = qsbr.start(); // the program may use the variable there
        key % 4 == 0
    });
    let mut left: Vec<_> = writer.iter().collect();
    left.sort_unstable();
    assert_eq!(left, (0..10).map(|n| (4 * n, 4 * n + 100)).collect::<Vec<_>>());
    let now = table.now(&online);
    assert!((0..40).all(|key| now.contains(&key) == (key % 4 == 0)));
    assert_eq!(writer.used(), 40, "the reader may be comparing one of those keys");
    online.quiescent();
    assert_eq!(writer.remove(&0), Some(100)); // takes back some of the places
    assert!(writer.used() < 39, "{}", writer.used());
}

/// Also while a reader, possibly of other tables, is online: removed keys wait for it, although no
/// reader can still see them.
pub fn names_are_free_when_a_table_is_gone(eal: &Eal) {
    let config = |name: &str| HashConfig { capacity: 8, ..HashConfig::named(name) };
    let qsbr = Qsbr::new(1);
    let mut lasting = SharedHash::<u32, u32>::new(eal, &config("lasting"), &qsbr).unwrap();
    let (mut lasts, _) = lasting.split();
    for key in 0..8 {
        assert_eq!(lasts.insert(&key, key), Ok(None));
    }
    let mut reader = qsbr.register().unwrap();
    let mut online = reader.online();
    for key in 0..8 {
        let mut ending = SharedHash::<u32, u32>::new(eal, &config("ending"), &qsbr).unwrap();
        let mut ends = ending.split().0;
        assert_eq!((ends.insert(&1, 1), ends.remove(&1)), (Ok(None), Some(1)));
        assert_eq!(lasts.remove(&key), Some(key));
        drop(ending);
        assert_eq!(lasts.insert(&(8 + key), 0), Err(Full), "this table is read");
        online.quiescent();
        assert_eq!(lasts.insert(&(8 + key), 0), Ok(None));
    }
}
