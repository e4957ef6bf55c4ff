// SPDX-License-Identifier: BSD-3-Clause
//! Arguments that DPDK would misinterpret are refused.

use std::net::{Ipv4Addr, Ipv6Addr};

use dpdk::fib::{Fib, Fib6, FibConfig, FibError, FibType, LookupError, NextHopSize, RouteError};
use dpdk::{Eal, Errno};

const PREFIX: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 0);

fn tables(make: impl Fn(FibConfig) -> Option<FibError>) {
    for name in ["", "a\0b", "a name of 19 bytes."] {
        let refused = make(FibConfig::named(name));
        assert!(matches!(refused, Some(FibError::Name { most: 18, .. })), "{refused:?}");
    }
    assert!(make(FibConfig::named("a name of 18 bytes")).is_none());
    let config = || FibConfig::named("refused");
    for max_routes in [0, (1 << 28) + 1, u32::MAX] {
        let refused = make(FibConfig { max_routes, ..config() });
        assert!(matches!(refused, Some(FibError::Limit { what: "routes", .. })), "{refused:?}");
    }
    for (next_hop, groups) in [
        (NextHopSize::Two, 0),
        (NextHopSize::Two, 32_752),
        (NextHopSize::Four, 1 << 21),
        (NextHopSize::Eight, u32::MAX),
    ] {
        let refused = make(FibConfig { kind: FibType::Table { next_hop, groups }, ..config() });
        assert!(matches!(refused, Some(FibError::Limit { what: "groups", .. })), "{refused:?}");
    }
    let kind = FibType::Table { next_hop: NextHopSize::Two, groups: 1 };
    let refused = make(FibConfig { kind, default_next_hop: 1 << 15, ..config() });
    assert!(matches!(refused, Some(FibError::DefaultNextHop { most: 0x7fff, .. })), "{refused:?}");
    let kind = FibType::Table { next_hop: NextHopSize::Eight, groups: 1 << 20 };
    let refused = make(FibConfig { kind, ..config() }); // 2 GiB
    // The reason depends on the release.
    assert!(matches!(refused, Some(FibError::Refused { .. })), "{refused:?}");
    let refused = make(FibConfig::named("held"));
    assert!(matches!(refused, Some(FibError::Refused { errno: Errno::EEXIST, .. })), "{refused:?}");
    assert!(make(config()).is_none(), "what was refused left nothing behind");
}

pub fn ipv4(eal: &Eal) {
    let mut fib = Fib::new(eal, &FibConfig::named("held")).unwrap();
    tables(|config| Fib::new(eal, &config).err());
    let kind = FibType::Table { next_hop: NextHopSize::One, groups: 127 };
    let refused = Fib::new(eal, &FibConfig { kind, ..FibConfig::named("refused") }).err();
    assert!(matches!(refused, Some(FibError::Limit { most: 126, .. })), "{refused:?}");
    for given in [0, 33, 255] {
        let error = Err(RouteError::Length { given, bits: 32 });
        assert_eq!(fib.add(PREFIX, given, 0), error);
        assert_eq!(fib.remove(PREFIX, given), error);
        assert_eq!(fib.route(PREFIX, given), None);
    }
    let error = RouteError::NextHop { given: 1 << 31, most: (1 << 31) - 1 };
    assert_eq!(fib.add(PREFIX, 8, 1 << 31), Err(error));
    assert_eq!(fib.remove(PREFIX, 8), Err(RouteError::Absent));
    let error = LookupError { addresses: 2, hops: 1 };
    assert_eq!(fib.lookup_bulk(&[0; 2], &mut [7]), Err(error));
    assert_eq!(fib.lookup_bulk(&[], &mut []), Ok(()));
}

pub fn ipv6(eal: &Eal) {
    let mut fib = Fib6::new(eal, &FibConfig::named("held")).unwrap();
    tables(|config| Fib6::new(eal, &config).err());
    let kind = FibType::Table { next_hop: NextHopSize::One, groups: 100 };
    let refused = Fib6::new(eal, &FibConfig { kind, ..FibConfig::named("refused") }).err();
    assert!(matches!(refused, Some(FibError::EntrySize { .. })), "{refused:?}");
    let prefix = Ipv6Addr::LOCALHOST;
    for given in [0, 129, 255] {
        let error = Err(RouteError::Length { given, bits: 128 });
        assert_eq!(fib.add(prefix, given, 0), error);
        assert_eq!(fib.remove(prefix, given), error);
        assert_eq!(fib.route(prefix, given), None);
    }
    let error = RouteError::NextHop { given: 1 << 31, most: (1 << 31) - 1 };
    assert_eq!(fib.add(prefix, 8, 1 << 31), Err(error));
    assert_eq!(fib.remove(prefix, 8), Err(RouteError::Absent));
    let error = LookupError { addresses: 2, hops: 1 };
    assert_eq!(fib.lookup_bulk(&[[0; 16]; 2], &mut [7]), Err(error));
}

/// A change that needs a second table while the memory is taken.
pub fn no_memory(eal: &Eal) {
    let kind = FibType::Table { next_hop: NextHopSize::Eight, groups: 100 };
    let make = |name| Fib6::new(eal, &FibConfig { kind, ..FibConfig::named(name) }).unwrap();
    let mut fib = make("changed");
    let others = make("others");
    let last = Ipv6Addr::from(u128::MAX);
    fib.add(last, 128, 1).unwrap();
    assert_eq!(fib.add(last, 127, 2), Err(RouteError::Memory));
    assert_eq!((fib.len(), fib.route(last, 127), fib.lookup(&last.octets())), (1, None, 1));
    drop(others);
    fib.add(last, 127, 2).unwrap();
    let before = (u128::MAX - 1).to_be_bytes();
    assert_eq!((fib.lookup(&last.octets()), fib.lookup(&before)), (1, 2));
}
