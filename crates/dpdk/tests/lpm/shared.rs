// SPDX-License-Identifier: BSD-3-Clause
//! One writer, several readers.

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use dpdk::lpm::{Lpm, LpmConfig, LpmError, RouteError};
use dpdk::qsbr::Qsbr;
use dpdk::{Eal, Errno};

const NET: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 0);

/// A host's address in the `n`th network of 24 bits.
fn host(n: u32, host: u8) -> u32 {
    u32::from(NET) | n << 8 | u32::from(host)
}

/// Groups of a few networks are reused all the time; a reader in another network's group would see
/// that network's next hop.
pub fn readers_see_the_route_before_or_after(eal: &Eal) {
    const NETWORKS: u32 = 64;
    const GROUPS: u32 = 4;
    let config = LpmConfig { groups: GROUPS, ..LpmConfig::named("shared") };
    let mut lpm = Lpm::new(eal, &config).unwrap();
    lpm.add(NET, 8, NETWORKS).unwrap();
    let qsbr = Qsbr::new(2);
    let mut shared = lpm.share(&qsbr).unwrap();
    let (mut writer, routes) = shared.split();
    let (stop, seen) = (AtomicBool::new(false), [const { AtomicU64::new(0) }; 2]);
    std::thread::scope(|threads| {
        let _stops = Stop(&stop);
        let readers = seen.each_ref().map(|seen| {
            let (stop, qsbr) = (&stop, &qsbr);
            threads.spawn(move || {
                let mut reader = qsbr.register().unwrap();
                let mut online = reader.online();
                while !stop.load(Ordering::Relaxed) {
                    let routes = routes.now(&online);
                    for n in 0..NETWORKS {
                        let hop = routes.lookup(host(n, 1)).unwrap();
                        assert!(hop == n || hop == NETWORKS, "network {n} leads to {hop}");
                    }
                    seen.fetch_add(1, Ordering::Relaxed);
                    online.quiescent();
                }
            })
        });
        let mut added = 0;
        let mut n = 0;
        // Ends when groups were used again often, and both readers have looked meanwhile.
        while added < GROUPS * 500 || seen.iter().any(|seen| seen.load(Ordering::Relaxed) < 500) {
            assert!(!readers.iter().any(|reader| reader.is_finished()), "a reader has failed");
            let route = |n: u32| Ipv4Addr::from(host(n % NETWORKS, 1));
            match writer.add(route(n), 32, n % NETWORKS) {
                Ok(()) => added += 1,
                Err(error) => assert_eq!(error, RouteError::Full, "groups wait for readers"),
            }
            let old = route(n + NETWORKS - 2);
            if writer.route(old, 32).is_some() {
                writer.remove(old, 32).unwrap();
            }
            n += 1;
        }
    });
}

/// Ends the readers, even if the writer panics.
struct Stop<'s>(&'s AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

pub fn groups_wait_for_readers(eal: &Eal) {
    let config = LpmConfig { groups: 1, ..LpmConfig::named("waits") };
    let qsbr = Qsbr::new(1);
    for _ in 0..2 {
        let mut shared = Lpm::new(eal, &config).unwrap().share(&qsbr).unwrap();
        let (mut writer, routes) = shared.split();
        let mut reader = qsbr.register().unwrap();
        let mut online = reader.online();
        let (first, second) = (Ipv4Addr::from(host(0, 1)), Ipv4Addr::from(host(1, 1)));
        writer.add(first, 32, 1).unwrap();
        assert_eq!(routes.now(&online).lookup(first.into()), Some(1));
        writer.remove(first, 32).unwrap();
        assert_eq!(routes.now(&online).lookup(first.into()), None);
        assert_eq!(
            writer.add(second, 32, 2),
            Err(RouteError::Full),
            "the reader may be on its way"
        );
        assert_eq!(writer.route(second, 32), None);
        online.quiescent();
        writer.add(second, 32, 2).unwrap();
        assert_eq!(routes.now(&online).lookup(second.into()), Some(2));
        // The name of the queue of groups is free when the table is gone, although a group waits
        // for the reader.
        writer.remove(second, 32).unwrap();
    }
}

pub fn twenty_bytes_of_names_tell_tables_apart(eal: &Eal) {
    let qsbr = Qsbr::new(1);
    let share = |name: &str| Lpm::new(eal, &LpmConfig::named(name)).unwrap().share(&qsbr);
    let one = share("twenty-bytes-of-name-1").unwrap();
    match share("twenty-bytes-of-name-2").unwrap_err() {
        LpmError::Refused { name, errno } => {
            assert_eq!((name.as_str(), errno), ("twenty-bytes-of-name-2", Errno::EEXIST));
        }
        other => panic!("{other}"),
    }
    drop(share("twenty-bytes-of-nam-2").unwrap());
    drop(one);
    drop(share("twenty-bytes-of-name-2").unwrap());
}
