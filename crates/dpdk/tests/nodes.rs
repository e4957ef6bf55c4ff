// SPDX-License-Identifier: BSD-3-Clause
//! A NUMA node that the machine does not have is refused by its number, whatever is to be made there; nothing is made. And objects
//! whose names the library makes. One test, because DPDK starts once in a process.
#![allow(clippy::unwrap_used, clippy::expect_used)] // A test may.

mod support;

use std::fmt::Display;

use dpdk::acl::{Acl, AclConfig, IPV4_5TUPLE};
use dpdk::fib::{Fib, FibConfig};
use dpdk::hash::{Hash, HashConfig};
use dpdk::lpm::{Lpm, LpmConfig};
use dpdk::ring::{Ring, RingConfig};
use dpdk::{HeapBuffer, Mbuf, Mempool, PoolConfig};

const NODE: Option<u32> = Some(77);

#[test]
fn unknown_nodes_are_named() {
    let eal = support::eal(&[]);
    fn refused<T, E: Display>(made: Result<T, E>, name: &str) {
        let error = made.err().expect("made on a node that is not there").to_string();
        assert!(error.starts_with(name), "{error}");
        assert!(error.contains("NUMA node 77 does not exist: DPDK found "), "{error}");
    }
    let pool = PoolConfig { socket: NODE, ..PoolConfig::named("pool") };
    refused(Mempool::packet_pool(&eal, &pool), "mempool \"pool\"");
    let hash = HashConfig { socket: NODE, ..HashConfig::named("hash") };
    refused(Hash::<u32, u32>::new(&eal, &hash), "hash table \"hash\"");
    let ring = RingConfig { socket: NODE, ..RingConfig::named("ring") };
    refused(Ring::<Mbuf<'_>>::new(&eal, &ring), "ring \"ring\"");
    let acl = AclConfig { socket: NODE, ..AclConfig::named("acl") };
    refused(Acl::<_, 5>::new(&eal, &IPV4_5TUPLE, &acl), "ACL \"acl\"");
    let lpm = LpmConfig { socket: NODE, ..LpmConfig::named("lpm") };
    refused(Lpm::new(&eal, &lpm), "LPM table \"lpm\"");
    let fib = FibConfig { socket: NODE, ..FibConfig::named("fib") };
    refused(Fib::new(&eal, &fib), "FIB \"fib\"");
    refused(HeapBuffer::zeroed(&eal, 64, NODE), "NUMA node 77 does not exist");

    // The names are free, and the first node is there.
    let node = Some(0);
    Mempool::packet_pool(&eal, &PoolConfig { socket: node, ..pool }).unwrap();
    Hash::<u32, u32>::new(&eal, &HashConfig { socket: node, ..hash }).unwrap();
    HeapBuffer::zeroed(&eal, 64, node).unwrap();

    // Old and new tables of one kind, side by side.
    let hashes = [(); 2].map(|()| HashConfig::unique("flows"));
    assert_ne!(hashes[0].name, hashes[1].name);
    let tables = hashes.map(|config| Hash::<u32, u32>::new(&eal, &config).unwrap());
    let lists = [(); 2].map(|()| Acl::<_, 5>::new(&eal, &IPV4_5TUPLE, &AclConfig::unique("acl")));
    // 64 MiB each.
    let lpms = [(); 2].map(|()| Lpm::new(&eal, &LpmConfig::unique("lpm")).map(drop));
    let one = LpmConfig::unique("lpm");
    assert_ne!(one.name, LpmConfig::unique("lpm").name);
    let fibs = [(); 2].map(|()| FibConfig::unique("fib").name);
    let rings = [(); 2].map(|()| Ring::<Mbuf<'_>>::new(&eal, &RingConfig::unique("ring")).unwrap());
    let small = || PoolConfig { count: 255, cache: 0, ..PoolConfig::unique("pool") };
    let pools = [(); 2].map(|()| Mempool::packet_pool(&eal, &small()).unwrap());
    assert!(lists.iter().all(Result::is_ok) && lpms.iter().all(Result::is_ok));
    assert!(tables.len() == 2 && fibs[0] != fibs[1]);
    assert!(rings.iter().all(|ring| ring.is_empty()) && pools.iter().all(Mempool::is_full));
}
