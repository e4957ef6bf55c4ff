// SPDX-License-Identifier: BSD-3-Clause
//! Everything that has memory and a name in DPDK returns both: random sequences in which rings,
//! tables, lists and buffers are made, used and dropped, in any order and with few names; some are
//! as large as DPDK's memory, or larger. Refused ones leave nothing behind, and at the end DPDK has
//! allocated as much as at the beginning.
//!
//! One test, because DPDK starts once in a process.
#![allow(clippy::unwrap_used, clippy::expect_used)] // A test may.

mod support;

use std::cell::Cell;
use std::num::NonZeroU32;
use std::sync::Arc;

use dpdk::acl::{Acl, AclConfig, Built, Configuring, IPV4_5TUPLE, Match, Rule};
use dpdk::fib::{Fib, Fib6, FibConfig, FibType, NextHopSize};
use dpdk::hash::{Hash, HashConfig, SharedHash};
use dpdk::lpm::{Lpm, Lpm6, LpmConfig, SharedLpm};
use dpdk::qsbr::{Qsbr, Reader};
use dpdk::ring::{Ring, RingConfig};
use dpdk::{Eal, ExternalBuffer, ForeignMemory, HeapBuffer};
use proptest::prelude::*;
use support::holdings::Holdings;
use support::property::for_all;

#[test]
fn names_and_memory_are_given_back() {
    let eal = support::quiet_eal(&[]);
    let (made, refused) = (Cell::new(0), Cell::new(0));
    for_all(10..=150, &prop::collection::vec(step(), 1..40), |steps| {
        let before = Holdings::now();
        let qsbr = Qsbr::new(1);
        let reader = qsbr.register().unwrap();
        let counted = Arc::new(());
        let mut state =
            State { eal: &eal, qsbr: &qsbr, reader, counted: &counted, held: Vec::new() };
        for step in steps {
            match state.take(step)? {
                Some(true) => made.set(made.get() + 1),
                Some(false) => refused.set(refused.get() + 1),
                None => {}
            }
        }
        drop(state);
        prop_assert_eq!(Arc::strong_count(&counted), 1, "items were left behind");
        prop_assert_eq!(Holdings::now(), before);
        Ok(())
    });
    assert!(made.get() > 0 && refused.get() > 0, "{made:?} were made, {refused:?} refused");
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Ring,
    Hash,
    SharedHash,
    Lpm,
    SharedLpm,
    Lpm6,
    Fib,
    Fib6,
    Acl,
    Heap,
    Foreign,
}

impl Kind {
    const ALL: [Self; 11] = [
        Self::Ring,
        Self::Hash,
        Self::SharedHash,
        Self::Lpm,
        Self::SharedLpm,
        Self::Lpm6,
        Self::Fib,
        Self::Fib6,
        Self::Acl,
        Self::Heap,
        Self::Foreign,
    ];

    /// True if DPDK refuses two of them with the same name.
    fn shares_names_with(self, other: Self) -> bool {
        let class = |kind| match kind {
            Self::SharedHash => Self::Hash,
            Self::SharedLpm => Self::Lpm,
            Self::Fib6 => Self::Fib, // both have pools
            kind => kind,
        };
        !matches!(self, Self::Heap | Self::Foreign) && class(self) == class(other)
    }
}

/// The amount of memory that is requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Size {
    Small,
    /// Megabytes: about as much as is available, so that it may be refused in the middle.
    Large,
    /// More than is available.
    Absurd,
}

#[derive(Clone, Debug)]
enum Step {
    Make(Kind, u8, Size),
    /// Inserts this many items into an existing object.
    Use(usize, u8),
    Drop(usize),
    /// The reader goes and stays online, is quiescent, or goes offline.
    Online,
    Offline,
}

fn step() -> impl Strategy<Value = Step> {
    let kind = prop::sample::select(&Kind::ALL[..]);
    let size =
        prop_oneof![30 => Just(Size::Small), 1 => Just(Size::Large), 3 => Just(Size::Absurd)];
    prop_oneof![
        6 => (kind, 0..3u8, size).prop_map(|(kind, name, size)| Step::Make(kind, name, size)),
        6 => (0..12usize, any::<u8>()).prop_map(|(at, number)| Step::Use(at, number)),
        3 => (0..12usize).prop_map(Step::Drop),
        1 => Just(Step::Online),
        1 => Just(Step::Offline),
    ]
}

/// An object that has memory from DPDK.
enum Thing<'e> {
    Ring(Ring<'e, Box<(u64, Arc<()>)>>),
    Hash(Hash<'e, [u64; 16], u32>),
    SharedHash(SharedHash<'e, u32, u32>),
    Lpm(Lpm<'e>),
    SharedLpm(SharedLpm<'e>),
    Lpm6(Lpm6<'e>),
    Fib(Fib<'e>),
    Fib6(Fib6<'e>),
    Configuring(Acl<'e, Configuring, 5>),
    Built(Acl<'e, Built, 5>),
    Heap(HeapBuffer<'e>),
    External(#[allow(dead_code)] ExternalBuffer<'e>),
}

struct Held<'e> {
    kind: Kind,
    name: u8,
    size: Size,
    thing: Thing<'e>,
}

impl Held<'_> {
    /// The smallest tables of librte_lpm, for IPv4 and for IPv6, have 2^24 entries of 4 bytes: four fill the memory.
    fn is_large(&self) -> bool {
        self.size == Size::Large || matches!(self.kind, Kind::Lpm | Kind::SharedLpm | Kind::Lpm6)
    }
}

struct State<'e> {
    eal: &'e Eal,
    qsbr: &'e Qsbr,
    counted: &'e Arc<()>,
    held: Vec<Held<'e>>,
    /// Last, so that it may still be online when the others are dropped.
    reader: Reader<'e>,
}

impl<'e> State<'e> {
    /// Returns true if something was made, false if it was refused.
    fn take(&mut self, step: Step) -> Result<Option<bool>, TestCaseError> {
        match step {
            Step::Make(kind, name, size) => {
                let before = Holdings::now();
                let named =
                    |held: &Held<'_>| kind.shares_names_with(held.kind) && held.name == name;
                let taken = self.held.iter().any(named);
                let Some(thing) = self.make(kind, name, size) else {
                    let room = size == Size::Small && !self.held.iter().any(Held::is_large);
                    prop_assert!(taken || !room, "there was room, and no other of that name");
                    prop_assert_eq!(Holdings::now(), before, "what was refused left something");
                    return Ok(Some(false));
                };
                prop_assert!(!taken, "two of a name");
                self.held.push(Held { kind, name, size, thing });
                return Ok(Some(true));
            }
            Step::Use(at, number) => {
                if at < self.held.len() {
                    let held = self.held.swap_remove(at);
                    if let Some(thing) = self.fill(held.thing, number) {
                        self.held.push(Held { thing, ..held });
                    }
                }
            }
            Step::Drop(at) if at < self.held.len() => drop(self.held.swap_remove(at)),
            Step::Drop(_) => {}
            Step::Online => std::mem::forget(self.reader.online()),
            Step::Offline => drop(self.reader.online()),
        }
        Ok(None)
    }

    fn make(&self, kind: Kind, name: u8, size: Size) -> Option<Thing<'e>> {
        let (eal, name) = (self.eal, format!("life{name}"));
        let of = |small: u32, large: u32, absurd: u32| match size {
            Size::Small => small,
            Size::Large => large,
            Size::Absurd => absurd,
        };
        let lpm = |bytes: u32| LpmConfig {
            max_routes: of(20, 100_000_000 / bytes, 1 << 28),
            groups: of(4, 1000, 1 << 20),
            ..LpmConfig::named(name.clone())
        };
        // Only the walked tree is small: the other kinds begin with 2^24 entries.
        let fib = |widest| {
            let table = |next_hop| FibType::Table { next_hop, groups: 10 };
            FibConfig {
                max_routes: of(20, 1000, 1 << 28),
                kind: match size {
                    Size::Small => FibType::Dummy,
                    Size::Large => table(NextHopSize::Two),
                    Size::Absurd => table(widest),
                },
                ..FibConfig::named(name.clone())
            }
        };
        match kind {
            Kind::Ring => {
                let capacity = of(9, 10_000_000, (1 << 28) - 1);
                let config = RingConfig { capacity, ..RingConfig::named(name) };
                Ring::new(eal, &config).ok().map(Thing::Ring)
            }
            Kind::Hash => {
                let capacity = of(20, 700_000, 20_000_000);
                let config = HashConfig { capacity, ..HashConfig::named(name) };
                Hash::new(eal, &config).ok().map(Thing::Hash)
            }
            Kind::SharedHash => {
                let capacity = of(20, 2_500_000, 100_000_000);
                let config = HashConfig { capacity, ..HashConfig::named(name) };
                SharedHash::new(eal, &config, self.qsbr).ok().map(Thing::SharedHash)
            }
            Kind::Lpm => Lpm::new(eal, &lpm(8)).ok().map(Thing::Lpm),
            Kind::SharedLpm => {
                Lpm::new(eal, &lpm(8)).ok()?.share(self.qsbr).ok().map(Thing::SharedLpm)
            }
            Kind::Lpm6 => Lpm6::new(eal, &lpm(40)).ok().map(Thing::Lpm6),
            Kind::Fib => Fib::new(eal, &fib(NextHopSize::Eight)).ok().map(Thing::Fib),
            Kind::Fib6 => Fib6::new(eal, &fib(NextHopSize::Eight)).ok().map(Thing::Fib6),
            Kind::Acl => {
                let max_rules = of(10, 1_000_000, 50_000_000);
                let config = AclConfig { max_rules, ..AclConfig::named(name) };
                Acl::new(eal, &IPV4_5TUPLE, &config).ok().map(Thing::Configuring)
            }
            Kind::Heap => {
                let len = of(100, 100 << 20, 1 << 31);
                HeapBuffer::zeroed(eal, len as usize, None).ok().map(Thing::Heap)
            }
            // Not on DPDK's heap, so that it is always available.
            Kind::Foreign => {
                let counted = Arc::clone(self.counted);
                let bytes = Lent { bytes: vec![1; 100], _counted: counted };
                let right = ForeignMemory::check(eal).ok()?;
                Some(Thing::External(ExternalBuffer::foreign(right, bytes)))
            }
        }
    }

    /// Inserts something, removes something, or converts the object.
    fn fill(&self, thing: Thing<'e>, number: u8) -> Option<Thing<'e>> {
        let (key, prefix) = (u32::from(number) % 31, u32::from(number) << 24 | 1);
        let (v4, v6) = (prefix.into(), (u128::from(prefix) << 96 | 1).into());
        let len = 1 + number % 32;
        Some(match thing {
            Thing::Ring(mut ring) => {
                let item = Box::new((0, Arc::clone(self.counted)));
                match number % 3 {
                    0 => drop(ring.split().1.dequeue()),
                    1 => drop(ring.split().0.enqueue(item)),
                    _ => drop(ring.enqueue(item)),
                }
                Thing::Ring(ring)
            }
            Thing::Hash(mut table) => {
                match number % 3 {
                    0 => drop(table.remove(&[key.into(); 16])),
                    _ => drop(table.insert(&[key.into(); 16], key)),
                }
                Thing::Hash(table)
            }
            Thing::SharedHash(mut table) => {
                let mut writer = table.split().0;
                match number % 3 {
                    0 => _ = writer.insert(&key, key),
                    _ => drop((0..31).map(|key| writer.remove(&key)).collect::<Vec<_>>()),
                }
                Thing::SharedHash(table)
            }
            Thing::Lpm(mut routes) => match number % 8 {
                0 => routes.share(self.qsbr).ok().map(Thing::SharedLpm)?,
                1 => {
                    routes.clear();
                    Thing::Lpm(routes)
                }
                _ => {
                    _ = routes.add(v4, len, 1);
                    Thing::Lpm(routes)
                }
            },
            Thing::SharedLpm(mut routes) => {
                let mut writer = routes.split().0;
                // Into a group, and out again.
                match number % 3 {
                    0 => _ = writer.remove(v4, 32),
                    _ => _ = writer.add(v4, 32, 1).is_ok() && writer.remove(v4, 32).is_ok(),
                }
                Thing::SharedLpm(routes)
            }
            Thing::Lpm6(mut routes) => {
                match number % 4 {
                    0 => routes.clear(),
                    _ => _ = routes.add(v6, 4 * len, 1),
                }
                Thing::Lpm6(routes)
            }
            Thing::Fib(mut fib) => {
                match number % 3 {
                    0 => _ = fib.remove(v4, len),
                    _ => _ = fib.add(v4, len, 1),
                }
                Thing::Fib(fib)
            }
            Thing::Fib6(mut fib) => {
                match number % 3 {
                    0 => _ = fib.remove(v6, 4 * len),
                    _ => _ = fib.add(v6, 4 * len, 1),
                }
                Thing::Fib6(fib)
            }
            Thing::Configuring(mut acl) => match number % 4 {
                0 => Thing::Built(acl.build().ok()?),
                1 => {
                    acl.clear();
                    Thing::Configuring(acl)
                }
                _ => {
                    let from = Match::Prefix { value: prefix.into(), len };
                    let fields = [Match::Any, from, Match::Any, Match::Any, Match::Any];
                    _ = acl.add(&Rule::new(NonZeroU32::MIN, 1, fields));
                    Thing::Configuring(acl)
                }
            },
            Thing::Built(acl) => Thing::Configuring(acl.reconfigure()),
            Thing::Heap(mut memory) => {
                memory.fill(number);
                if number % 2 == 0 {
                    Thing::External(ExternalBuffer::on_heap(memory))
                } else {
                    Thing::Heap(memory)
                }
            }
            Thing::External(buffer) => Thing::External(buffer),
        })
    }
}

/// The program's own bytes, which are counted.
struct Lent {
    bytes: Vec<u8>,
    _counted: Arc<()>,
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}
