// SPDX-License-Identifier: BSD-3-Clause
//! The access control lists, and the hit count of each rule.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::num::NonZeroU32;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use dpdk::acl::{
    Acl, AclConfig, Built, IPV4_5TUPLE_FLAGS, IPV6_5TUPLE_FLAGS, InputError, Layout, MAX_PRIORITY,
    Match, Rule, TCP_FLAGS, Verdict,
};
use dpdk::qsbr::Replaceable;
use dpdk::{Eal, Lcore, PerSocket};
use forwarders_common::rules::{
    AclRule, Action, Address, FiveTuple, Strictness, TcpFlags, read_acl,
};
use measure::Cell;

use super::error::SetupError;
use super::options::{Options, Reading};
use super::warnings;

/// Flag in a rule's number: it denies.
const DENIES: u32 = 1 << 31;

/// Fields of the lists of each family.
pub const IPV4: usize = 6;
pub const IPV6: usize = 12;

/// How files of rules are read.
#[derive(Clone, Copy)]
pub struct ReadOptions {
    /// The mask of the program's ports.
    pub ports: u32,
    /// Where rules look for the ports of packets.
    pub reading: Reading,
    /// Whether what l3fwd silently accepts is an error.
    pub strictness: Strictness,
}

impl ReadOptions {
    /// The settings of the command line.
    pub fn of(options: &Options) -> Self {
        let Options { port_mask: ports, reading, strictness, .. } = *options;
        Self { ports, reading, strictness }
    }
}

/// The lists of both families; `None` if no file was given.
pub struct Tables<'q, 'eal> {
    pub ipv4: Option<Replaceable<'q, Rules<'eal, IPV4>>>,
    pub ipv6: Option<Replaceable<'q, Rules<'eal, IPV6>>>,
}

/// A list for each lcore, and the rules that it was made from.
pub struct Rules<'t, const FIELDS: usize> {
    /// The file.
    pub file: PathBuf,
    /// The line of each rule, in order, and whether it denies.
    pub rules: Vec<(usize, bool)>,
    /// Warnings about the file.
    pub warnings: usize,
    lists: PerSocket<Acl<'t, Built, FIELDS>>,
    /// For fragments without ports; `None` if they are dropped.
    fragments: Option<PerSocket<Acl<'t, Built, FIELDS>>>,
    /// By the lcore's index in the plan.
    lcores: Vec<(Lcore, Counters)>,
}

/// What one lcore counts.
struct Counters {
    /// By the rule's index.
    hits: Box<[Cell]>,
    unmatched: Cell,
}

/// How a packet is counted.
#[derive(Clone, Copy)]
pub enum Count {
    /// A rule's.
    Hit(NonZeroU32),
    /// No rule matches.
    Unmatched,
}

impl Count {
    #[inline(always)]
    pub fn of(verdict: Verdict) -> Self {
        verdict.map_or(Self::Unmatched, Self::Hit)
    }
}

impl<'t, const FIELDS: usize> Rules<'t, FIELDS> {
    /// The list on the NUMA node of the lcore with that index.
    #[inline(always)]
    pub fn list(&self, lcore: usize) -> &Acl<'t, Built, FIELDS> {
        self.lists.of(self.lcores[lcore].0)
    }

    /// Decides about a packet that the list cannot classify in place, counts it for the lcore with
    /// that index, and returns true if it passes.
    #[cold]
    pub fn judge(&self, lcore: usize, packet: InputError) -> bool {
        let ask = |list: &Acl<'t, Built, FIELDS>, bytes: &[u8]| {
            let mut verdict = [[None]];
            // A verdict for one packet that is long enough: it cannot fail.
            let _ = list.classify_slices(&[bytes], &mut verdict);
            verdict[0][0]
        };
        let fragments = || Some(self.fragments.as_ref()?.of(self.lcores[lcore].0));
        let verdict = match packet {
            InputError::Moved(bytes) => ask(self.list(lcore), &bytes),
            InputError::Fragment(bytes) => fragments().and_then(|list| ask(list, &bytes)),
            _ => None,
        };
        self.count(lcore, Count::of(verdict))
    }

    /// Counts a packet for the lcore with that index, and returns true if it passes.
    #[inline(always)]
    pub fn count(&self, lcore: usize, count: Count) -> bool {
        let counters = &self.lcores[lcore].1;
        match count {
            Count::Hit(number) => {
                if let Some(hits) = counters.hits.get((number.get() & !DENIES) as usize - 1) {
                    hits.add(1);
                }
                number.get() & DENIES == 0
            }
            Count::Unmatched => {
                counters.unmatched.add(1);
                false
            }
        }
    }

    /// Packets that the rule with that index decided, on all lcores.
    pub fn hits(&self, rule: usize) -> u64 {
        self.lcores.iter().map(|(_, counters)| counters.hits[rule].get()).sum()
    }

    /// Packets that no rule matched.
    pub fn unmatched(&self) -> u64 {
        self.lcores.iter().map(|(_, counters)| counters.unmatched.get()).sum()
    }
}

/// An address family, as the lists use it.
pub trait Family<const FIELDS: usize>: Address {
    /// Its name.
    const NAME: &'static str;
    /// The layout of its fields.
    const LAYOUT: Layout<FIELDS>;

    /// The conditions of a rule on each field.
    fn fields(asks: &FiveTuple<Self>) -> [Match; FIELDS];
}

impl Family<IPV4> for Ipv4Addr {
    const NAME: &'static str = "ipv4";
    const LAYOUT: Layout<IPV4> = IPV4_5TUPLE_FLAGS;

    fn fields(asks: &FiveTuple<Self>) -> [Match; IPV4] {
        let address = |prefix: &forwarders_common::rules::Prefix<Self>| Match::Prefix {
            value: prefix.network.to_bits().into(),
            len: prefix.len,
        };
        let [protocol, source_ports, destination_ports, flags] = others(asks);
        [
            protocol,
            address(&asks.source),
            address(&asks.destination),
            source_ports,
            destination_ports,
            flags,
        ]
    }
}

impl Family<IPV6> for Ipv6Addr {
    const NAME: &'static str = "ipv6";
    const LAYOUT: Layout<IPV6> = IPV6_5TUPLE_FLAGS;

    fn fields(asks: &FiveTuple<Self>) -> [Match; IPV6] {
        let [protocol, source_ports, destination_ports, flags] = others(asks);
        let [[s0, s1, s2, s3], [d0, d1, d2, d3]] = [&asks.source, &asks.destination]
            .map(|prefix| Match::ipv6_prefix(prefix.network, prefix.len));
        [protocol, s0, s1, s2, s3, d0, d1, d2, d3, source_ports, destination_ports, flags]
    }
}

/// Protocol, ports and flags. Only TCP has flags.
fn others<A>(asks: &FiveTuple<A>) -> [Match; 4] {
    const TCP: u64 = 6;
    let at = |flags: u8| u64::from(flags) << TCP_FLAGS.trailing_zeros();
    let range = |ports: &RangeInclusive<u16>| Match::Range {
        low: (*ports.start()).into(),
        high: (*ports.end()).into(),
    };
    let (protocol, flags) = match asks.flags {
        TcpFlags { mask: 0, .. } => {
            let (value, mask) = (asks.protocol.into(), asks.protocol_mask.into());
            (Match::Bits { value, mask }, Match::Any)
        }
        TcpFlags { value, mask } => (
            Match::Bits { value: TCP, mask: 0xff },
            Match::Bits { value: at(value), mask: at(mask) },
        ),
    };
    [protocol, range(&asks.source_ports), range(&asks.destination_ports), flags]
}

/// Reads a file of rules and makes lists of it for these lcores. `number` makes the names of its
/// lists unique.
pub fn load<'eal, A: Family<FIELDS>, const FIELDS: usize>(
    eal: &'eal Eal,
    file: &Path,
    ReadOptions { ports, reading, strictness }: ReadOptions,
    lcores: &[Lcore],
    number: u64,
) -> Result<Rules<'eal, FIELDS>, SetupError> {
    let mut contents = read_acl::<A>(file, ports, strictness)?;
    warnings::tell(&contents.warnings);
    let rules = &mut contents.entries;
    if reading == Reading::AsC {
        rules.iter_mut().for_each(|rule| rule.matches.flags = TcpFlags::default());
    }
    let rules = &*rules;
    let flags = rules.iter().any(|rule| rule.matches.flags.mask != 0);
    let layout = if flags { A::LAYOUT } else { A::LAYOUT.without_flags() };
    let lists =
        |layout: Layout<FIELDS>, suffix: &str, rules: &[(i32, &AclRule<A>, FiveTuple<A>)]| {
            PerSocket::try_new(eal, |socket| {
                let name = format!("{}-{number}-{}{suffix}", A::NAME, socket.unwrap_or(0));
                list(eal, file, &layout, rules, &AclConfig { socket, ..AclConfig::named(name) })
            })
        };
    let fixed = A::LAYOUT.without_flags().at_fixed_places();
    let all: Vec<_> = (0..).zip(rules).map(|(at, rule)| (at, rule, rule.matches.clone())).collect();
    let fragments = (reading == Reading::Everywhere)
        .then(|| {
            let of_fragment = |(at, rule)| Some((at, rule, of_fragment(rule)?));
            let rules: Vec<_> = (0..).zip(rules).filter_map(of_fragment).collect();
            lists(fixed, "-fragments", &rules)
        })
        .transpose()?;
    let lists = lists(if reading == Reading::AsC { fixed } else { layout }, "", &all)?;
    let counters =
        || Counters { hits: rules.iter().map(|_| Cell::new(0)).collect(), unmatched: Cell::new(0) };
    Ok(Rules {
        file: file.to_owned(),
        rules: rules.iter().map(|rule| (rule.line, rule.action == Action::Deny)).collect(),
        warnings: contents.warnings.len(),
        lists,
        fragments,
        lcores: lcores.iter().map(|lcore| (*lcore, counters())).collect(),
    })
}

/// The conditions of a rule on a fragment without ports and flags; `None` if the rule does not
/// apply to fragments. A rule that permits some ports or flags permits their fragments. A rule that
/// denies them denies the first fragments, without which the others are useless.
fn of_fragment<A: Address>(rule: &AclRule<A>) -> Option<FiveTuple<A>> {
    const ANY: RangeInclusive<u16> = 0..=u16::MAX;
    let asks = &rule.matches;
    let about_more = asks.source_ports != ANY
        || asks.destination_ports != ANY
        || asks.flags != TcpFlags::default();
    if about_more && rule.action == Action::Deny {
        return None;
    }
    let flags = TcpFlags::default();
    Some(FiveTuple { source_ports: ANY, destination_ports: ANY, flags, ..asks.clone() })
}

/// Makes one list. Each rule has its index in the file and its conditions; an earlier rule has a
/// higher priority.
fn list<'eal, A: Family<FIELDS>, const FIELDS: usize>(
    eal: &'eal Eal,
    file: &Path,
    layout: &Layout<FIELDS>,
    rules: &[(i32, &AclRule<A>, FiveTuple<A>)],
    config: &AclConfig,
) -> Result<Acl<'eal, Built, FIELDS>, SetupError> {
    let config = AclConfig { max_rules: rules.len() as u32, ..config.clone() };
    let file = || file.to_owned();
    let mut acl = Acl::new(eal, layout, &config)
        .map_err(|reason| SetupError::Acl { file: file(), reason })?;
    for (place, rule, asks) in rules {
        let denies = if rule.action == Action::Deny { DENIES } else { 0 };
        let userdata = NonZeroU32::MIN.saturating_add(*place as u32) | denies;
        acl.add(&Rule::new(userdata, MAX_PRIORITY - place, A::fields(asks)))
            .map_err(|reason| SetupError::Rule { file: file(), line: rule.line, reason })?;
    }
    acl.build().map_err(|reason| SetupError::Build { file: file(), reason })
}
