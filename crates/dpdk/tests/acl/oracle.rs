// SPDX-License-Identifier: BSD-3-Clause
//! Random rules and packets: compares librte_acl with a matcher that tests each packet against each
//! rule.

use std::cell::Cell;
use std::num::NonZeroU32;
use std::ops::RangeInclusive;

use dpdk::Eal;
use dpdk::acl::{
    Acl, AclConfig, Algorithm, Field, IPV4_5TUPLE, IPV6_5TUPLE, Layout, MAX_PRIORITY, Match, Rule,
};
use proptest::prelude::*;

use super::support::property::for_all;

/// Rules and packets of a case. Wide random rules that overlap need several times as many tables as
/// realistic ones.
const FEW_FIELDS: (usize, usize) = (150, 200);
const MANY_FIELDS: (usize, usize) = (30, 900);
/// The least are enough for a million pairs of rule and packet.
const CASES: RangeInclusive<u32> = 40..=60;
/// Offset, size and kind of each field.
type Shape = (usize, usize, Kind);

#[derive(Clone, Copy, Debug)]
enum Kind {
    Prefix,
    Range,
    Bits,
}
use Kind::{Bits, Prefix, Range};

const IPV4: [Shape; 5] =
    [(9, 1, Bits), (12, 4, Prefix), (16, 4, Prefix), (20, 2, Range), (22, 2, Range)];
const IPV6: [Shape; 11] = [
    (6, 1, Bits),
    (8, 4, Prefix),
    (12, 4, Prefix),
    (16, 4, Prefix),
    (20, 4, Prefix),
    (24, 4, Prefix),
    (28, 4, Prefix),
    (32, 4, Prefix),
    (36, 4, Prefix),
    (40, 2, Range),
    (42, 2, Range),
];
/// Every kind in every size that it supports, with words in arbitrary order.
const MIXED: [Shape; 14] = [
    (30, 1, Range),
    (0, 4, Bits),
    (40, 1, Prefix),
    (41, 1, Bits),
    (42, 2, Bits),
    (4, 8, Prefix),
    (20, 8, Bits),
    (12, 8, Prefix),
    (48, 2, Prefix),
    (50, 2, Range),
    (52, 4, Range),
    (60, 1, Range),
    (61, 1, Bits),
    (62, 2, Prefix),
];

pub fn agree(eal: &Eal) {
    let pairs = Cell::new(0);
    compare::<5, 1>(eal, IPV4, IPV4_5TUPLE.at_fixed_places(), &pairs);
    compare::<5, 4>(eal, IPV4, IPV4_5TUPLE.at_fixed_places(), &pairs);
    compare::<11, 1>(eal, IPV6, IPV6_5TUPLE.at_fixed_places(), &pairs);
    compare::<11, 16>(eal, IPV6, IPV6_5TUPLE.at_fixed_places(), &pairs);
    compare::<14, 1>(eal, MIXED, layout(MIXED), &pairs);
    compare::<14, 8>(eal, MIXED, layout(MIXED), &pairs);
    assert!(pairs.get() >= 1_000_000, "{} pairs of rule and packet", pairs.get());
    println!("{} pairs of rule and packet", pairs.get());
}

fn layout<const FIELDS: usize>(shape: [Shape; FIELDS]) -> Layout<FIELDS> {
    let field = |(offset, size, kind): Shape| match kind {
        Prefix => Field::prefix(offset, size),
        Range => Field::range(offset, size),
        Bits => Field::bits(offset, size),
    };
    Layout::new(shape.map(field)).unwrap()
}

/// Numbers that often share their first or last bits, or are equal.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        2 => 0..4u64,
        2 => (0..4u64).prop_map(|number| u64::MAX - number),
        2 => (0..64u32).prop_map(|bit| 1 << bit),
        1 => (0..64u32).prop_map(|bit| u64::MAX << bit),
        1 => any::<u64>(),
    ]
}

/// A rule before it is complete: for each field two numbers, and whether it matches anything.
type Draft = (u32, i32, Vec<(u64, u64, bool)>);

fn draft(fields: usize) -> impl Strategy<Value = Draft> {
    let priority = prop_oneof![1..4i32, 1..=MAX_PRIORITY, Just(MAX_PRIORITY)];
    let field = (number(), number(), prop::bool::weighted(0.6));
    (any::<u32>(), priority, prop::collection::vec(field, fields))
}

fn rule<const FIELDS: usize>(
    at: usize,
    (categories, priority, numbers): &Draft,
    shape: &[Shape; FIELDS],
    all: u32,
) -> Rule<FIELDS> {
    let fields = std::array::from_fn(|field| {
        let (a, b, open) = numbers[field];
        let (_, size, kind) = shape[field];
        let fit = |number: u64| number & (u64::MAX >> (64 - 8 * size));
        match kind {
            _ if open => Match::Any,
            Prefix => Match::Prefix { value: fit(a), len: (b % (8 * size as u64 + 1)) as u8 },
            Range => Match::Range { low: fit(a).min(fit(b)), high: fit(a).max(fit(b)) },
            Bits => Match::Bits { value: fit(a), mask: fit(b) },
        }
    });
    let userdata = NonZeroU32::new(at as u32 + 1).unwrap();
    let categories = if categories & all == 0 { 1 } else { categories & all };
    Rule { categories, ..Rule::new(userdata, *priority, fields) }
}

/// A packet of random numbers, many of which occur in a rule.
fn packet<const FIELDS: usize>(
    numbers: &[u64],
    of: &Rule<FIELDS>,
    keep: u32,
    shape: &[Shape; FIELDS],
) -> [u8; 64] {
    let mut bytes = [0xa5; 64];
    for (field, &(offset, size, _)) in shape.iter().enumerate() {
        let value = match of.fields[field] {
            Match::Prefix { value, .. } | Match::Bits { value, .. } if keep >> field & 1 == 0 => {
                value
            }
            Match::Range { low, high } if keep >> field & 1 == 0 => {
                if numbers[field] & 1 == 0 {
                    low
                } else {
                    high
                }
            }
            _ => numbers[field],
        };
        bytes[offset..offset + size].copy_from_slice(&value.to_be_bytes()[8 - size..]);
    }
    bytes
}

/// The simple matcher.
fn matches<const FIELDS: usize>(
    rule: &Rule<FIELDS>,
    packet: &[u8],
    shape: &[Shape; FIELDS],
) -> bool {
    shape.iter().zip(rule.fields).all(|(&(offset, size, _), asked)| {
        let number = packet[offset..offset + size]
            .iter()
            .fold(0u64, |number, byte| number << 8 | u64::from(*byte));
        match asked {
            Match::Any => true,
            Match::Prefix { value, len } => {
                let rest = 8 * size as u32 - u32::from(len);
                number.checked_shr(rest).unwrap_or(0) == value.checked_shr(rest).unwrap_or(0)
            }
            Match::Range { low, high } => (low..=high).contains(&number),
            Match::Bits { value, mask } => (number ^ value) & mask == 0,
        }
    })
}

fn compare<const FIELDS: usize, const CATEGORIES: usize>(
    eal: &Eal,
    shape: [Shape; FIELDS],
    layout: Layout<FIELDS>,
    pairs: &Cell<usize>,
) {
    let (most, most_packets) = if FIELDS > 5 { MANY_FIELDS } else { FEW_FIELDS };
    let drafts = prop::collection::vec(draft(FIELDS), 1..most);
    let packets = prop::collection::vec(
        (prop::collection::vec(number(), FIELDS), any::<prop::sample::Index>(), any::<u32>()),
        1..most_packets,
    );
    let all = u32::MAX >> (32 - CATEGORIES);
    let hits = Cell::new(0);
    for_all(CASES, &(drafts, packets), |(drafts, packets)| {
        let numbered = drafts.iter().enumerate();
        let rules: Vec<Rule<FIELDS>> =
            numbered.map(|(at, draft)| rule(at, draft, &shape, all)).collect();
        let packets: Vec<[u8; 64]> = packets
            .iter()
            .map(|(numbers, of, keep)| packet(numbers, of.get(&rules), *keep, &shape))
            .collect();
        let inputs: Vec<&[u8]> = packets.iter().map(<[u8; 64]>::as_slice).collect();
        let config = AclConfig { max_rules: most as u32, ..AclConfig::named("oracle") };
        let mut acl: Acl<_, FIELDS, CATEGORIES> = Acl::new(eal, &layout, &config).unwrap();
        for rule in &rules {
            acl.add(rule).unwrap();
        }
        let mut acl = acl.build().unwrap();
        let matching: Vec<Vec<&Rule<FIELDS>>> = inputs
            .iter()
            .map(|packet| rules.iter().filter(|rule| matches(rule, packet, &shape)).collect())
            .collect();
        for algorithm in Algorithm::ALL {
            if acl.set_algorithm(algorithm).is_err() {
                continue;
            }
            let mut verdicts = vec![[None; CATEGORIES]; inputs.len()];
            acl.classify_slices(&inputs, &mut verdicts).unwrap();
            for (matching, verdicts) in matching.iter().zip(&verdicts) {
                for (category, verdict) in verdicts.iter().enumerate() {
                    let candidates =
                        matching.iter().filter(|rule| rule.categories >> category & 1 == 1);
                    let best = candidates.clone().map(|rule| rule.priority).max();
                    let won = verdict
                        .map(|userdata| candidates.clone().find(|rule| rule.userdata == userdata));
                    // Among several with the same priority, any one may win.
                    prop_assert_eq!(
                        won.map(|rule| rule.map(|rule| rule.priority)),
                        best.map(Some),
                        "{:?}, category {}",
                        algorithm,
                        category
                    );
                    hits.set(hits.get() + usize::from(best.is_some()));
                }
            }
        }
        pairs.set(pairs.get() + rules.len() * packets.len());
        Ok(())
    });
    assert!(hits.get() > 1000, "hardly anything matched");
}
