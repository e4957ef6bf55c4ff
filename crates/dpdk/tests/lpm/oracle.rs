// SPDX-License-Identifier: BSD-3-Clause
//! Adds and removes random routes; every lookup is compared with the longest prefix in a plain map.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};

use dpdk::Eal;
use dpdk::lpm::{Lpm, Lpm6, LpmConfig, RouteError};
use proptest::prelude::*;

use super::support::property::for_all;

/// Few, so that tables become full.
const ROUTES: u32 = 40;
const MISSED: u32 = u32::MAX;

#[derive(Clone, Debug)]
enum Step {
    Add(u128, u8, u32),
    Delete(prop::sample::Index),
    DeleteAny(u128, u8),
    Clear,
}

/// The first `bits` of numbers, which often have the same first bits.
fn number(bits: u32) -> impl Strategy<Value = u128> {
    let part = || prop_oneof![3 => 0..3u128, 1 => (0..3u128).prop_map(|n| 255 - n)];
    prop::collection::vec(part(), 16).prop_map(move |bytes| {
        let number = bytes.iter().fold(0, |number, byte| number << 8 | byte);
        number >> (128 - bits) << (128 - bits)
    })
}

fn step(bits: u8, hops: u32) -> impl Strategy<Value = Step> {
    let len = move || prop_oneof![1..=bits, Just(bits), Just(24), Just(25)];
    prop_oneof![
        20 => (number(bits.into()), len(), 0..hops).prop_map(|(prefix, len, hop)| Step::Add(prefix, len, hop)),
        6 => any::<prop::sample::Index>().prop_map(Step::Delete),
        1 => (number(bits.into()), len()).prop_map(|(prefix, len)| Step::DeleteAny(prefix, len)),
        1 => Just(Step::Clear),
    ]
}

/// A table of either kind, with addresses in the upper bits of a number.
trait Table {
    const BITS: u8;
    fn add(&mut self, prefix: u128, len: u8, hop: u32) -> Result<(), RouteError>;
    fn remove(&mut self, prefix: u128, len: u8) -> Result<(), RouteError>;
    fn clear(&mut self);
    fn route(&self, prefix: u128, len: u8) -> Option<u32>;
    fn lookup(&self, address: u128) -> Option<u32>;
    fn lookup_bulk(&self, addresses: &[u128]) -> Vec<u32>;
}

fn v4(number: u128) -> Ipv4Addr {
    Ipv4Addr::from((number >> 96) as u32)
}

impl Table for Lpm<'_> {
    const BITS: u8 = 32;
    fn add(&mut self, prefix: u128, len: u8, hop: u32) -> Result<(), RouteError> {
        Lpm::add(self, v4(prefix), len, hop)
    }
    fn remove(&mut self, prefix: u128, len: u8) -> Result<(), RouteError> {
        Lpm::remove(self, v4(prefix), len)
    }
    fn clear(&mut self) {
        Lpm::clear(self);
    }
    fn route(&self, prefix: u128, len: u8) -> Option<u32> {
        Lpm::route(self, v4(prefix), len)
    }
    fn lookup(&self, address: u128) -> Option<u32> {
        Lpm::lookup(self, v4(address).into())
    }
    fn lookup_bulk(&self, addresses: &[u128]) -> Vec<u32> {
        let addresses: Vec<u32> = addresses.iter().map(|number| v4(*number).into()).collect();
        let mut hops = vec![0; addresses.len()];
        Lpm::lookup_bulk(self, &addresses, &mut hops, MISSED).unwrap();
        hops
    }
}

impl Table for Lpm6<'_> {
    const BITS: u8 = 128;
    fn add(&mut self, prefix: u128, len: u8, hop: u32) -> Result<(), RouteError> {
        Lpm6::add(self, Ipv6Addr::from(prefix), len, hop)
    }
    fn remove(&mut self, prefix: u128, len: u8) -> Result<(), RouteError> {
        Lpm6::remove(self, Ipv6Addr::from(prefix), len)
    }
    fn clear(&mut self) {
        Lpm6::clear(self);
    }
    fn route(&self, prefix: u128, len: u8) -> Option<u32> {
        Lpm6::route(self, Ipv6Addr::from(prefix), len)
    }
    fn lookup(&self, address: u128) -> Option<u32> {
        Lpm6::lookup(self, &address.to_be_bytes())
    }
    fn lookup_bulk(&self, addresses: &[u128]) -> Vec<u32> {
        let addresses: Vec<[u8; 16]> =
            addresses.iter().map(|number| number.to_be_bytes()).collect();
        let mut hops = vec![0; addresses.len()];
        Lpm6::lookup_bulk(self, &addresses, &mut hops, MISSED).unwrap();
        hops
    }
}

pub fn ipv4(eal: &Eal) {
    let config = LpmConfig { max_routes: ROUTES, groups: 16, ..LpmConfig::named("ipv4") };
    compare(Lpm::new(eal, &config).unwrap(), 1 << 24, 300);
    drop(Lpm::new(eal, &config).unwrap()); // The name is free again.
}

pub fn ipv6(eal: &Eal) {
    let config = LpmConfig { max_routes: ROUTES, groups: 150, ..LpmConfig::named("ipv6") };
    compare(Lpm6::new(eal, &config).unwrap(), 1 << 21, 200);
    drop(Lpm6::new(eal, &config).unwrap());
}

fn compare<T: Table>(table: T, hops: u32, cases: u32) {
    let table = RefCell::new(table);
    let full = Cell::new(0);
    let run = |steps: Vec<Step>, addresses: &[u128]| {
        let table = &mut *table.borrow_mut();
        table.clear();
        let mut model: BTreeMap<(u8, u128), u32> = BTreeMap::new();
        for step in steps {
            full.set(full.get() + usize::from(take(table, &mut model, step)?));
            check(table, &model, addresses)?;
        }
        for (len, prefix) in std::mem::take(&mut model).into_keys() {
            prop_assert_eq!(table.remove(prefix, len), Ok(()));
        }
        check(table, &model, addresses)
    };
    // More routes than there is room for, or groups, which random steps add most times, but not always.
    for len in [24, T::BITS] {
        full.set(0);
        run((0..=u128::from(ROUTES)).map(|n| Step::Add(n << 104, len, 1)).collect(), &[]).unwrap();
        assert!(full.get() > 0, "no table was ever full");
    }
    let steps = prop::collection::vec(step(T::BITS, hops), 1..120);
    let addresses = prop::collection::vec(prop_oneof![3 => number(128), 1 => any::<u128>()], 30);
    for_all(10..=cases, &(steps, addresses), |(steps, addresses)| run(steps, &addresses));
}

fn mask(number: u128, len: u8) -> u128 {
    number >> (128 - len) << (128 - len)
}

/// Returns whether the table was full.
fn take<T: Table>(
    table: &mut T,
    model: &mut BTreeMap<(u8, u128), u32>,
    step: Step,
) -> Result<bool, TestCaseError> {
    match step {
        Step::Add(prefix, len, hop) => {
            let added = table.add(prefix, len, hop);
            let key = (len, mask(prefix, len));
            match added {
                Ok(()) => _ = model.insert(key, hop),
                Err(error) => {
                    prop_assert_eq!(error, RouteError::Full);
                    // An existing route, or one that needs no group, must always fit.
                    prop_assert!(!model.contains_key(&key));
                    prop_assert!(model.len() as u32 == ROUTES || len > 24);
                    return Ok(true);
                }
            }
        }
        Step::Delete(index) if !model.is_empty() => {
            let (&(len, prefix), _) = model.iter().nth(index.index(model.len())).unwrap();
            prop_assert_eq!(table.remove(prefix, len), Ok(()));
            model.remove(&(len, prefix));
        }
        Step::DeleteAny(prefix, len) => {
            let there = model.remove(&(len, mask(prefix, len))).is_some();
            let expected = if there { Ok(()) } else { Err(RouteError::Absent) };
            prop_assert_eq!(table.remove(prefix, len), expected);
        }
        Step::Clear => {
            table.clear();
            model.clear();
        }
        Step::Delete(_) => {}
    }
    Ok(false)
}

fn check<T: Table>(
    table: &T,
    model: &BTreeMap<(u8, u128), u32>,
    addresses: &[u128],
) -> Result<(), TestCaseError> {
    for (&(len, prefix), hop) in model {
        prop_assert_eq!(table.route(prefix, len), Some(*hop));
    }
    // Also the first and the last address of each route.
    let ends = model.keys().flat_map(|&(len, prefix)| {
        [prefix, prefix | u128::MAX.checked_shr(len.into()).unwrap_or(0)]
    });
    let addresses: Vec<u128> = addresses.iter().copied().chain(ends).collect();
    let bulk = table.lookup_bulk(&addresses);
    for (address, hop) in addresses.into_iter().zip(bulk) {
        // The longest of those that it is in: they are in the order of their lengths.
        let mut longest_first = model.iter().rev();
        let expected = longest_first.find(|((len, prefix), _)| mask(address, *len) == *prefix);
        let expected = expected.map(|(_, hop)| hop);
        prop_assert_eq!(table.lookup(address), expected.copied());
        prop_assert_eq!(hop, expected.copied().unwrap_or(MISSED));
    }
    Ok(())
}
