// SPDX-License-Identifier: BSD-3-Clause
//! Arguments that DPDK would misinterpret are refused.

use std::net::{Ipv4Addr, Ipv6Addr};

use dpdk::lpm::{LookupError, Lpm, Lpm6, LpmConfig, LpmError, RouteError};
use dpdk::{Eal, Errno};

const PREFIX: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 0);

fn tables(make: impl Fn(LpmConfig) -> Option<LpmError>, groups: u32) {
    for name in ["", "a\0b", "a name of 32 bytes, one too many"] {
        assert!(
            matches!(make(LpmConfig::named(name)), Some(LpmError::Name { most: 31, .. })),
            "{name:?}"
        );
    }
    let config = || LpmConfig::named("refused");
    for max_routes in [0, (1 << 28) + 1, u32::MAX] {
        let refused = make(LpmConfig { max_routes, ..config() });
        assert!(matches!(refused, Some(LpmError::Limit { what: "routes", .. })));
    }
    for groups in [0, groups + 1, u32::MAX] {
        let refused = make(LpmConfig { groups, ..config() });
        assert!(matches!(refused, Some(LpmError::Limit { what: "groups", .. })));
    }
    let refused = make(LpmConfig { groups, ..config() }); // 2 GiB and more
    assert!(matches!(refused, Some(LpmError::Refused { errno: Errno::ENOMEM, .. })), "{refused:?}");
    let refused = make(LpmConfig::named("held"));
    assert!(matches!(refused, Some(LpmError::Refused { errno: Errno::EEXIST, .. })), "{refused:?}");
    assert!(make(config()).is_none(), "what was refused left nothing behind");
}

pub fn ipv4(eal: &Eal) {
    let mut lpm = Lpm::new(eal, &LpmConfig::named("held")).unwrap();
    tables(|config| Lpm::new(eal, &config).err(), (1 << 22) - 1);
    for given in [0, 33, 255] {
        let error = Err(RouteError::Length { given, bits: 32 });
        assert_eq!(lpm.add(PREFIX, given, 0), error);
        assert_eq!(lpm.remove(PREFIX, given), error);
        assert_eq!(lpm.route(PREFIX, given), None);
    }
    let error = RouteError::NextHop { given: 1 << 24, most: (1 << 24) - 1 };
    assert_eq!(lpm.add(PREFIX, 8, 1 << 24), Err(error));
    assert_eq!(lpm.remove(PREFIX, 8), Err(RouteError::Absent));
    let error = LookupError { addresses: 2, hops: 1 };
    assert_eq!(lpm.lookup_bulk(&[0; 2], &mut [7], 0), Err(error));
}

pub fn ipv6(eal: &Eal) {
    let mut lpm = Lpm6::new(eal, &LpmConfig::named("held")).unwrap();
    tables(|config| Lpm6::new(eal, &config).err(), 1 << 21);
    let prefix = Ipv6Addr::LOCALHOST;
    for given in [0, 129, 255] {
        let error = Err(RouteError::Length { given, bits: 128 });
        assert_eq!(lpm.add(prefix, given, 0), error);
        assert_eq!(lpm.remove(prefix, given), error);
        assert_eq!(lpm.route(prefix, given), None);
    }
    let error = RouteError::NextHop { given: 1 << 21, most: (1 << 21) - 1 };
    assert_eq!(lpm.add(prefix, 8, 1 << 21), Err(error));
    assert_eq!(lpm.remove(prefix, 8), Err(RouteError::Absent));
    let error = LookupError { addresses: 2, hops: 1 };
    assert_eq!(lpm.lookup_bulk(&[[0; 16]; 2], &mut [7], 0), Err(error));
}
