// SPDX-License-Identifier: BSD-3-Clause
//! Lookups of IPv4 routes, natively and by C's inline functions, in the same table.

use std::cell::RefCell;
use std::ffi::CString;
use std::net::Ipv4Addr;

use dpdk::Eal;
use dpdk::lpm::{Lpm, LpmConfig};
use dpdk_sys::{layout, rte_lpm};
use proptest::prelude::*;

use super::support::property::for_all_unshrunk;

const NAME: &str = "routes";

/// Close together, so that prefixes contain each other.
pub fn address() -> impl Strategy<Value = u32> {
    (0..3u32, 0..3u32, any::<u8>(), prop_oneof![any::<u8>(), 0..4u8])
        .prop_map(|(a, b, c, d)| a << 30 | b << 14 | u32::from(c & 0x83) << 8 | u32::from(d))
}

pub fn agree(eal: &Eal) {
    let lpm = RefCell::new(Lpm::new(eal, &LpmConfig::named(NAME)).unwrap());
    let name = CString::new(NAME).unwrap();
    // SAFETY: looks a table up by its name.
    let c: *const rte_lpm = unsafe { dpdk_sys::rte_lpm_find_existing(name.as_ptr()) };
    assert!(!c.is_null());
    let routes = prop::collection::vec((address(), 1..=32u8, 0..1u32 << 24), 0..60);
    let addresses = prop::collection::vec(prop_oneof![address(), any::<u32>()], 1..100);
    for_all_unshrunk(
        10..=500,
        &(routes, addresses, any::<u32>()),
        |(routes, addresses, missed)| {
            let mut lpm = lpm.borrow_mut();
            lpm.clear();
            for (prefix, len, next_hop) in routes {
                lpm.add(Ipv4Addr::from(prefix), len, next_hop).unwrap();
            }
            same(&lpm, c, &addresses, missed)
        },
    );
}

fn same(
    lpm: &Lpm<'_>,
    c: *const rte_lpm,
    addresses: &[u32],
    missed: u32,
) -> Result<(), TestCaseError> {
    let n = addresses.len();
    let (mut entries, mut hops) = (vec![0; n], vec![0; n]);
    // SAFETY: the table exists, and there is room for one entry per address.
    unsafe {
        dpdk_sys::lr_lpm_lookup_bulk(c, addresses.as_ptr(), entries.as_mut_ptr(), n as u32);
    }
    lpm.lookup_bulk(addresses, &mut hops, missed).unwrap();
    for ((address, entry), hop) in addresses.iter().zip(entries).zip(&hops) {
        let found = entry & layout::LPM_FOUND != 0;
        prop_assert_eq!(*hop, if found { entry & 0x00ff_ffff } else { missed });
        let mut next_hop = 0;
        // SAFETY: the table exists.
        let code = unsafe { dpdk_sys::lr_lpm_lookup(c, *address, &raw mut next_hop) };
        prop_assert_eq!(lpm.lookup(*address), (code == 0).then_some(next_hop));
    }
    for four in addresses.chunks_exact(4) {
        let mut hops = [0; 4];
        // SAFETY: as above; four addresses and four places.
        unsafe { dpdk_sys::lr_lpm_lookupx4(c, four.as_ptr(), hops.as_mut_ptr(), missed) };
        prop_assert_eq!(lpm.lookups().lookup_x4(four.try_into().unwrap(), missed), hops);
    }
    Ok(())
}
