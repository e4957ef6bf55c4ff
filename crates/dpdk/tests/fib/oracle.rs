// SPDX-License-Identifier: BSD-3-Clause
//! Adds and removes random routes; every lookup is compared with the longest prefix in a plain map.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};

use dpdk::Eal;
use dpdk::fib::{Fib, Fib6, FibConfig, FibType, NextHopSize, RouteError};
use proptest::prelude::*;

use super::support::property::for_all_unshrunk;

/// Few, so that tables become full.
const ROUTES: u32 = 40;
const DEFAULT: u64 = 77;

#[derive(Clone, Debug)]
enum Step {
    Add(u128, u8, u64),
    Delete(prop::sample::Index),
    DeleteAny(u128, u8),
}

/// The first `bits` of numbers, which often have the same first bits.
fn number(bits: u32) -> impl Strategy<Value = u128> {
    let part = || prop_oneof![3 => 0..3u128, 1 => (0..3u128).prop_map(|n| 255 - n)];
    prop::collection::vec(part(), 16).prop_map(move |bytes| {
        let number = bytes.iter().fold(0, |number, byte| number << 8 | byte);
        number >> (128 - bits) << (128 - bits)
    })
}

/// Few different next hops: often that of the enclosing route, which DPDK treats differently.
fn step(bits: u8, most: u64) -> impl Strategy<Value = Step> {
    let len = move || prop_oneof![1..=bits, Just(bits), Just(24), Just(25)];
    let hop = move || prop_oneof![4 => 0..3u64, 1 => Just(DEFAULT), 1 => Just(most), 1 => 0..=most];
    prop_oneof![
        20 => (number(bits.into()), len(), hop()).prop_map(|(prefix, len, hop)| Step::Add(prefix, len, hop)),
        8 => any::<prop::sample::Index>().prop_map(Step::Delete),
        1 => (number(bits.into()), len()).prop_map(|(prefix, len)| Step::DeleteAny(prefix, len)),
    ]
}

/// A table of either kind, with addresses in the upper bits of a number.
trait Table {
    const BITS: u8;
    fn add(&mut self, prefix: u128, len: u8, hop: u64) -> Result<(), RouteError>;
    fn remove(&mut self, prefix: u128, len: u8) -> Result<(), RouteError>;
    fn route(&self, prefix: u128, len: u8) -> Option<u64>;
    fn routes(&self) -> Vec<((u8, u128), u64)>;
    fn size(&self) -> usize;
    fn lookup(&self, address: u128) -> u64;
    fn lookup_bulk(&self, addresses: &[u128]) -> Vec<u64>;
}

fn v4(number: u128) -> Ipv4Addr {
    Ipv4Addr::from((number >> 96) as u32)
}

impl Table for Fib<'_> {
    const BITS: u8 = 32;
    fn add(&mut self, prefix: u128, len: u8, hop: u64) -> Result<(), RouteError> {
        Fib::add(self, v4(prefix), len, hop)
    }
    fn remove(&mut self, prefix: u128, len: u8) -> Result<(), RouteError> {
        Fib::remove(self, v4(prefix), len)
    }
    fn route(&self, prefix: u128, len: u8) -> Option<u64> {
        Fib::route(self, v4(prefix), len)
    }
    fn routes(&self) -> Vec<((u8, u128), u64)> {
        let wide = |prefix| u128::from(u32::from(prefix)) << 96;
        Fib::routes(self).map(|(prefix, len, hop)| ((len, wide(prefix)), hop)).collect()
    }
    fn size(&self) -> usize {
        assert_eq!(self.is_empty(), Fib::routes(self).next().is_none());
        self.len()
    }
    fn lookup(&self, address: u128) -> u64 {
        Fib::lookup(self, v4(address).into())
    }
    fn lookup_bulk(&self, addresses: &[u128]) -> Vec<u64> {
        let addresses: Vec<u32> = addresses.iter().map(|number| v4(*number).into()).collect();
        let mut hops = vec![0; addresses.len()];
        Fib::lookup_bulk(self, &addresses, &mut hops).unwrap();
        hops
    }
}

impl Table for Fib6<'_> {
    const BITS: u8 = 128;
    fn add(&mut self, prefix: u128, len: u8, hop: u64) -> Result<(), RouteError> {
        Fib6::add(self, Ipv6Addr::from(prefix), len, hop)
    }
    fn remove(&mut self, prefix: u128, len: u8) -> Result<(), RouteError> {
        Fib6::remove(self, Ipv6Addr::from(prefix), len)
    }
    fn route(&self, prefix: u128, len: u8) -> Option<u64> {
        Fib6::route(self, Ipv6Addr::from(prefix), len)
    }
    fn routes(&self) -> Vec<((u8, u128), u64)> {
        Fib6::routes(self).map(|(prefix, len, hop)| ((len, prefix.into()), hop)).collect()
    }
    fn size(&self) -> usize {
        assert_eq!(self.is_empty(), Fib6::routes(self).next().is_none());
        self.len()
    }
    fn lookup(&self, address: u128) -> u64 {
        Fib6::lookup(self, &address.to_be_bytes())
    }
    fn lookup_bulk(&self, addresses: &[u128]) -> Vec<u64> {
        let addresses: Vec<[u8; 16]> =
            addresses.iter().map(|number| number.to_be_bytes()).collect();
        let mut hops = vec![0; addresses.len()];
        Fib6::lookup_bulk(self, &addresses, &mut hops).unwrap();
        hops
    }
}

fn config(kind: FibType) -> FibConfig {
    FibConfig { max_routes: ROUTES, kind, default_next_hop: DEFAULT, ..FibConfig::named("oracle") }
}

pub fn ipv4(eal: &Eal) {
    use NextHopSize::{Eight, Four, One, Two};
    for next_hop in [One, Two, Four, Eight] {
        let config = config(FibType::Table { next_hop, groups: 12 });
        compare(Fib::new(eal, &config).unwrap(), next_hop.most(), 60);
        drop(Fib::new(eal, &config).unwrap()); // The name is free again.
    }
    compare(Fib::new(eal, &config(FibType::Dummy)).unwrap(), u64::MAX, 40);
}

pub fn ipv6(eal: &Eal) {
    use NextHopSize::{Eight, Four, Two};
    for next_hop in [Two, Four, Eight] {
        let config = config(FibType::Table { next_hop, groups: 300 });
        compare(Fib6::new(eal, &config).unwrap(), next_hop.most(), 40);
        drop(Fib6::new(eal, &config).unwrap());
    }
    compare(Fib6::new(eal, &config(FibType::Dummy)).unwrap(), u64::MAX, 40);
}

fn compare<T: Table>(table: T, most: u64, cases: u32) {
    let table = RefCell::new(table);
    let full = Cell::new(0);
    let run = |steps: Vec<Step>, addresses: &[u128]| {
        let table = &mut *table.borrow_mut();
        for ((len, prefix), _) in table.routes() {
            table.remove(prefix, len).unwrap(); // After a case that failed.
        }
        let mut model: BTreeMap<(u8, u128), u64> = BTreeMap::new();
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
    let steps = prop::collection::vec(step(T::BITS, most), 1..120);
    let addresses = prop::collection::vec(prop_oneof![3 => number(128), 1 => any::<u128>()], 30);
    for_all_unshrunk(10..=cases, &(steps, addresses), |(steps, addresses)| run(steps, &addresses));
}

fn mask(number: u128, len: u8) -> u128 {
    number >> (128 - len) << (128 - len)
}

/// Returns whether the table was full.
fn take<T: Table>(
    table: &mut T,
    model: &mut BTreeMap<(u8, u128), u64>,
    step: Step,
) -> Result<bool, TestCaseError> {
    match step {
        Step::Add(prefix, len, hop) => match table.add(prefix, len, hop) {
            Ok(()) => _ = model.insert((len, mask(prefix, len)), hop),
            Err(error) => {
                prop_assert_eq!(error, RouteError::Full);
                // An existing route, or one that needs no group, must always fit.
                prop_assert!(!model.contains_key(&(len, mask(prefix, len))));
                prop_assert!(model.len() as u32 == ROUTES || len > 24);
                return Ok(true);
            }
        },
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
        Step::Delete(_) => {}
    }
    Ok(false)
}

fn check<T: Table>(
    table: &T,
    model: &BTreeMap<(u8, u128), u64>,
    addresses: &[u128],
) -> Result<(), TestCaseError> {
    for (&(len, prefix), hop) in model {
        prop_assert_eq!(table.route(prefix, len), Some(*hop));
    }
    let mut routes = table.routes();
    routes.sort_unstable();
    prop_assert!(routes.into_iter().eq(model.iter().map(|(key, hop)| (*key, *hop))));
    prop_assert_eq!(table.size(), model.len());
    // Also the first and last address of each route, and their neighbours.
    let ends = model.keys().flat_map(|&(len, prefix)| {
        let last = prefix | u128::MAX.checked_shr(len.into()).unwrap_or(0);
        [prefix, last, prefix.wrapping_sub(1), last.wrapping_add(1)]
    });
    let addresses: Vec<u128> = addresses.iter().copied().chain(ends).collect();
    let bulk = table.lookup_bulk(&addresses);
    for (address, hop) in addresses.into_iter().zip(bulk) {
        // The longest of those that it is in: they are in the order of their lengths.
        let mut longest_first = model.iter().rev();
        let expected = longest_first.find(|((len, prefix), _)| mask(address, *len) == *prefix);
        let expected = expected.map_or(DEFAULT, |(_, hop)| *hop);
        prop_assert_eq!(table.lookup(address), expected, "{:x}", address);
        prop_assert_eq!(hop, expected);
    }
    Ok(())
}

/// Routes with the next hop of the enclosing route, or whose enclosing route is removed first: in
/// each round, DPDK's count of groups becomes too small or too large.
pub fn groups_are_not_lost(eal: &Eal) {
    const ROUNDS: u32 = 100;
    let table = |groups| config(FibType::Table { next_hop: NextHopSize::Two, groups });
    let mut fib = Fib::new(eal, &table(2)).unwrap();
    let mut fib6 = Fib6::new(eal, &FibConfig { name: "oracle6".into(), ..table(40) }).unwrap();
    for _ in 0..ROUNDS {
        for (inner, outer) in [(1, 1), (1, 2)] {
            around(
                &mut fib,
                [(v4_number([10, 0, 0, 0]), 8), (v4_number([10, 1, 1, 1]), 32)],
                [outer, inner],
            );
            let prefix = 0x2001_0db8_0000_0000_0000_0000_0000_0000;
            around(&mut fib6, [(prefix, 32), (prefix | 1 << 64, 64)], [outer, inner]);
        }
    }
    assert!(fib.is_empty() && fib6.is_empty());
}

/// Nested routes that end at the last of all addresses, each next to another: DPDK would write
/// whole tables.
pub fn the_last_of_all_addresses(eal: &Eal) {
    let config = |name: &str| {
        let kind = FibType::Table { next_hop: NextHopSize::Two, groups: 200 };
        FibConfig { name: name.into(), ..config(kind) }
    };
    at_the_end(Fib::new(eal, &config("last")).unwrap());
    at_the_end(Fib6::new(eal, &config("last6")).unwrap());
}

fn at_the_end<T: Table>(mut table: T) {
    let mut model = BTreeMap::new();
    let lens = [32.min(T::BITS), 31, 26, 25, 24, 9, 8, 2, 1];
    let pairs = lens.map(|len| {
        let last = mask(u128::MAX, len);
        [(len, last), (len, last ^ 1 << (128 - len))]
    });
    // Added from the inside out; then with other next hops; then removed from the outside in.
    for hop in [3, 4] {
        for (n, key @ (len, prefix)) in pairs.into_iter().flatten().enumerate() {
            let hop = hop + n as u64;
            table.add(prefix, len, hop).unwrap();
            model.insert(key, hop);
            check(&table, &model, &[0, 1 << 127, u128::MAX]).unwrap();
        }
    }
    for (len, prefix) in pairs.into_iter().flatten().rev() {
        table.remove(prefix, len).unwrap();
        model.remove(&(len, prefix));
        check(&table, &model, &[0, 1 << 127, u128::MAX]).unwrap();
    }
}

fn v4_number(address: [u8; 4]) -> u128 {
    u128::from(u32::from_be_bytes(address)) << 96
}

/// Adds and removes a route, one inside it and one next to that.
fn around<T: Table>(table: &mut T, [outer, inner]: [(u128, u8); 2], hops: [u64; 2]) {
    table.add(outer.0, outer.1, hops[0]).unwrap();
    table.add(inner.0, inner.1, hops[1]).unwrap();
    assert_eq!(table.lookup(inner.0), hops[1]);
    table.remove(outer.0, outer.1).unwrap();
    assert_eq!(table.lookup(inner.0), hops[1]);
    table.remove(inner.0, inner.1).unwrap();
    assert_eq!(table.lookup(inner.0), DEFAULT);
}
