// SPDX-License-Identifier: BSD-3-Clause
//! The tables that all loops use and the keys that are looked up, generated from a seed.

use std::num::NonZeroU32;

use dpdk::acl::{Acl, AclConfig, IPV4_5TUPLE, Match, Rule};
use dpdk::hash::{Hash, HashConfig};
use dpdk::lpm::{Lpm, LpmConfig};
use dpdk::ring::{Ring, RingConfig};
use dpdk::{Eal, Mbuf, Mempool, PoolConfig};
use flow::{FlowTable, Seed};

use crate::loops::{Header, Key, PACKETS, Rules};

/// Routes, of which a few are longer than 24 bits.
const ROUTES: u32 = 2000;
/// Keys in the hash table.
const KEYS: u32 = 50_000;
/// Rules in the access-control list.
const RULES: u32 = 200;
/// Keys that are looked up, again and again.
pub const LOOKUPS: usize = 4096;

pub const LPM: &str = "bench-lpm";
pub const HASH: &str = "bench-hash";
pub const ACL: &str = "bench-acl";
pub const POOL: &str = "bench-pool";
pub const RING: &str = "bench-ring";

/// All of them.
pub struct Tables {
    pub lpm: Lpm<'static>,
    pub addresses: Vec<u32>,
    pub hash: Hash<'static, Key, u32>,
    pub flows: FlowTable<Key, u32>,
    pub keys: Vec<Key>,
    pub acl: Rules,
    pub headers: Vec<Header>,
    pub pool: Mempool<'static>,
    pub ring: Ring<'static, Mbuf<'static>>,
}

/// xorshift64*: the same numbers in every run. The results in docs/benchmarks.md are for tables
/// that it generated, so do not replace it by `packet::random`.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u32 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) as u32
    }
}

type Failed = Box<dyn std::error::Error>;

impl Tables {
    pub fn new(eal: &'static Eal) -> Result<Self, Failed> {
        let numbers = &mut Numbers(0x5eed);
        let (lpm, addresses) = routes(eal, numbers)?;
        let (hash, flows, keys) = keys(eal, numbers)?;
        let (acl, headers) = rules(eal, numbers)?;
        let pool = PoolConfig { count: 2047, ..PoolConfig::named(POOL) };
        let ring = RingConfig { capacity: 4 * PACKETS as u32, ..RingConfig::named(RING) };
        Ok(Self {
            lpm,
            addresses,
            hash,
            flows,
            keys,
            acl,
            headers,
            pool: Mempool::packet_pool(eal, &pool)?,
            ring: Ring::new(eal, &ring)?,
        })
    }
}

/// An eighth of the addresses have no route, except that some match a short one by chance.
fn routes(eal: &'static Eal, numbers: &mut Numbers) -> Result<(Lpm<'static>, Vec<u32>), Failed> {
    let config = LpmConfig { max_routes: ROUTES, groups: 512, ..LpmConfig::named(LPM) };
    let mut lpm = Lpm::new(eal, &config)?;
    let mut prefixes = Vec::new();
    for n in 0..ROUTES {
        let (prefix, len) = (numbers.next(), if n % 10 == 0 { 28 } else { 16 + (n % 9) as u8 });
        lpm.add(prefix.into(), len, n)?;
        prefixes.push((prefix, len));
    }
    let address = |n: usize| match n % 8 {
        0 => numbers.next(),
        _ => {
            let (prefix, len) = prefixes[numbers.next() as usize % prefixes.len()];
            prefix ^ numbers.next() >> len
        }
    };
    Ok((lpm, (0..LOOKUPS).map(address).collect()))
}

/// Both tables of flows, with the same keys, and the keys that are looked up.
type Flows = (Hash<'static, Key, u32>, FlowTable<Key, u32>, Vec<Key>);

/// An eighth of the keys that are looked up are not in the table.
fn keys(eal: &'static Eal, numbers: &mut Numbers) -> Result<Flows, Failed> {
    // C looks up 64 keys per call; so does the safe API if the table is not extendable.
    let config = HashConfig { capacity: 2 * KEYS, extendable: false, ..HashConfig::named(HASH) };
    let mut table = Hash::new(eal, &config)?;
    let mut flows = FlowTable::with_seed(2 * KEYS as usize, Seed::fixed(0x5eed))?;
    let mut key = || [numbers.next(), numbers.next(), numbers.next(), 17];
    let inside: Vec<Key> = (0..KEYS).map(|_| key()).collect();
    for (value, key) in inside.iter().enumerate() {
        table.insert(key, value as u32)?;
        flows.insert(*key, value as u32, 0)?;
    }
    let looked_up = |n: usize| match n % 8 {
        0 => key(),
        _ => inside[key()[0] as usize % inside.len()],
    };
    Ok((table, flows, (0..LOOKUPS).map(looked_up).collect()))
}

/// Rules on addresses and ports, and headers that match one rule each.
fn rules(eal: &'static Eal, numbers: &mut Numbers) -> Result<(Rules, Vec<Header>), Failed> {
    let config = AclConfig { max_rules: RULES, ..AclConfig::named(ACL) };
    // The C side does not support IP options.
    let layout = IPV4_5TUPLE.at_fixed_places();
    let mut acl: Acl<'static, _, 5> = Acl::new(eal, &layout, &config)?;
    let mut drawn = Vec::new();
    for n in 0..RULES {
        let (source, destination) = (numbers.next(), numbers.next());
        let (lens, port) = ([8 * (n % 4) as u8, 16 + 8 * (n % 3) as u8], numbers.next() as u16);
        let prefix = |value: u32, len: u8| match len {
            0 => Match::Any,
            _ => Match::Prefix { value: (value >> (32 - len) << (32 - len)).into(), len },
        };
        let ports = Match::Range { low: port.into(), high: u16::MAX.into() };
        acl.add(&Rule::new(
            NonZeroU32::new(n + 1).unwrap_or(NonZeroU32::MIN),
            1 + n as i32,
            [Match::Any, prefix(source, lens[0]), prefix(destination, lens[1]), Match::Any, ports],
        ))?;
        drawn.push((source, destination, lens, port));
    }
    let header = |_| {
        let (source, destination, lens, port) = drawn[numbers.next() as usize % drawn.len()];
        let mut header = [0; 64];
        let other = |number: u32, len: u8| number ^ numbers_below(32 - len, source ^ destination);
        header[9] = 17;
        header[12..16].copy_from_slice(&other(source, lens[0]).to_be_bytes());
        header[16..20].copy_from_slice(&other(destination, lens[1]).to_be_bytes());
        header[20..22].copy_from_slice(&(numbers.next() as u16).to_be_bytes());
        header[22..24].copy_from_slice(&(port | numbers.next() as u16).to_be_bytes());
        header
    };
    Ok((acl.build()?, (0..LOOKUPS).map(header).collect()))
}

/// A number of `bits` bits; the others are 0.
fn numbers_below(bits: u8, from: u32) -> u32 {
    from.wrapping_mul(0x9e37_79b9).checked_shr(32 - u32::from(bits)).unwrap_or(0)
}
