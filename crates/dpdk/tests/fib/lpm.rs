// SPDX-License-Identifier: BSD-3-Clause
//! The same routes give the same next hops in a forwarding table and in LPM.

use dpdk::Eal;
use dpdk::fib::{Fib, Fib6, FibConfig, FibType, NextHopSize};
use dpdk::lpm::{Lpm, Lpm6, LpmConfig};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestRunner};

const ROUTES: usize = 2000;
const ADDRESSES: usize = 20_000;
const MISSED: u32 = 0x0001_ffff;

pub fn same_next_hops(eal: &Eal) {
    let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::default() });
    let mut draw = |bits: u8| {
        // Half of the addresses near the routes.
        let prefix = any::<u128>().prop_map(|n| n & (0x0f03 << 112 | u128::MAX >> 16));
        let routes = prop::collection::vec((prefix, 1..=bits, 0..MISSED), ROUTES);
        let routes = routes.new_tree(&mut runner).unwrap().current();
        let others = prop::collection::vec(any::<u128>(), ADDRESSES);
        let others = others.new_tree(&mut runner).unwrap().current();
        let near = routes.iter().cycle().zip(&others);
        let near: Vec<u128> = near.map(|((prefix, ..), n)| prefix ^ n >> (n % 128)).collect();
        (routes, [others, near].concat())
    };
    let fib = |groups| FibConfig {
        max_routes: ROUTES as u32,
        kind: FibType::Table { next_hop: NextHopSize::Four, groups },
        default_next_hop: MISSED.into(),
        ..FibConfig::named("fib")
    };
    let lpm = |groups| LpmConfig { max_routes: ROUTES as u32, groups, ..LpmConfig::named("lpm") };

    let (routes, addresses) = draw(32);
    let addresses: Vec<u32> = addresses.iter().map(|n| (n >> 96) as u32).collect();
    let (mut hops, mut same) = (vec![0; addresses.len()], vec![0; addresses.len()]);
    {
        let (mut fib, mut lpm) =
            (Fib::new(eal, &fib(2000)).unwrap(), Lpm::new(eal, &lpm(2000)).unwrap());
        for (prefix, len, hop) in routes {
            let prefix = ((prefix >> 96) as u32).into();
            fib.add(prefix, len, hop.into()).unwrap();
            lpm.add(prefix, len, hop).unwrap();
        }
        fib.lookup_bulk(&addresses, &mut hops).unwrap();
        lpm.lookup_bulk(&addresses, &mut same, MISSED).unwrap();
    }
    compare(&hops, &same);

    let (routes, addresses) = draw(64);
    let addresses: Vec<[u8; 16]> = addresses.iter().map(|n| n.to_be_bytes()).collect();
    let (mut fib, mut lpm) =
        (Fib6::new(eal, &fib(16_000)).unwrap(), Lpm6::new(eal, &lpm(16_000)).unwrap());
    for (prefix, len, hop) in routes {
        fib.add(prefix.into(), len, hop.into()).unwrap();
        lpm.add(prefix.into(), len, hop).unwrap();
    }
    fib.lookup_bulk(&addresses, &mut hops).unwrap();
    lpm.lookup_bulk(&addresses, &mut same, MISSED).unwrap();
    compare(&hops, &same);
}

fn compare(hops: &[u64], same: &[u32]) {
    assert!(hops.iter().copied().eq(same.iter().map(|hop| u64::from(*hop))));
    let missed = hops.iter().filter(|hop| **hop == u64::from(MISSED)).count();
    assert!(missed > 100 && missed < hops.len() - 100, "{missed} of {}", hops.len());
}
