// SPDX-License-Identifier: BSD-3-Clause
//! What the configuration becomes: tables that are exchanged as a whole while packets pass.

use std::collections::HashMap;
use std::net::IpAddr;
use std::num::NonZeroU32;

use dpdk::acl::{
    Acl, AclConfig, AclError, BuildError, Built, Field, Layout, MAX_PRIORITY, Match, Rule,
    RuleError,
};
use dpdk::{Eal, tsc};
use flow::maglev::Maglev;
use packet::MacAddr;

use crate::config::{Config, Deny, Mode};
use crate::packets::Flow;
use crate::way::Way;

/// Most VIPs, of all configurations since the start.
pub const MOST_VIPS: usize = 1024;
/// Most backends and ways back, of all configurations since the start.
pub const MOST_BACKENDS: usize = 1 << 16;
/// Places of a VIP's Maglev table: a hundred times as many as backends of most VIPs.
const PLACES: usize = 1021;
/// The least number of backends for which those are too few.
const MANY: usize = PLACES / 100;

/// The rules' fields, in a [`Flow`]: protocol, source, and both ports, which are one word.
const FIELDS4: Layout<4> =
    fields([Field::bits(12, 1), Field::prefix(0, 4), Field::range(8, 2), Field::range(10, 2)]);
/// The same of IPv6, whose address is four words.
const FIELDS6: Layout<7> = fields([
    Field::bits(36, 1),
    Field::prefix(0, 4),
    Field::prefix(4, 4),
    Field::prefix(8, 4),
    Field::prefix(12, 4),
    Field::range(32, 2),
    Field::range(34, 2),
]);

const fn fields<const FIELDS: usize>(fields: [Field; FIELDS]) -> Layout<FIELDS> {
    match Layout::new(fields) {
        Ok(layout) => layout,
        Err(_) => panic!("the fields are a layout"),
    }
}

/// The rules of IPv4 and IPv6.
pub type Rules4<'eal> = Acl<'eal, Built, 4>;
pub type Rules6<'eal> = Acl<'eal, Built, 7>;

/// Converts cycles of the TSC to ticks of 2^20 cycles, the time of connections: a shift instead of a division.
#[inline(always)]
pub fn ticks(cycles: u64) -> u32 {
    (cycles >> 20) as u32
}

/// Why tables cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum TablesError {
    #[error("more than {MOST_VIPS} VIPs since the start: restart l4lb")]
    Vips,
    #[error("more than {MOST_BACKENDS} backends since the start: restart l4lb")]
    Backends,
    #[error(transparent)]
    List(#[from] AclError),
    #[error("deny {0}: {1}")]
    Rule(IpAddr, RuleError),
    #[error(transparent)]
    Build(#[from] BuildError),
}

/// A backend, or the way back from one.
#[derive(Debug)]
pub struct Backend {
    pub way: Way,
    pub number: u32,
    /// Where its packets are counted.
    pub vip: u16,
    /// It is the way of answers.
    pub answers: bool,
}

/// The VIP of a destination.
#[derive(Debug)]
struct Vip {
    maglev: Maglev,
    /// By the numbers of `maglev`.
    backends: Vec<u32>,
}

/// An address, a port and a protocol.
type End = (IpAddr, u16, u8);

/// What a new flow is to.
pub enum Destination {
    Backend(u32),
    /// A VIP without backends.
    Empty,
    Nobody,
}

/// Everything that a configuration decides.
#[derive(Debug)]
pub struct Tables<'eal> {
    pub deny4: Rules4<'eal>,
    pub deny6: Rules6<'eal>,
    pub mtu: u16,
    /// Ticks without a packet after which a connection is forgotten.
    pub idle: u32,
    /// By number; the numbers stay those of the same backends, so connections outlive a reload. `None`: it is in the configuration no
    /// more.
    pub backends: Vec<Option<Backend>>,
    vips: HashMap<End, Vip>,
    /// Ways back: by a backend's end.
    answers: HashMap<End, u32>,
}

/// The numbers that VIPs and backends have in every configuration.
#[derive(Clone, Default)]
pub struct Numbers {
    vips: HashMap<String, u16>,
    /// By the VIP's end, and the backend's.
    backends: HashMap<(End, IpAddr, Option<u16>, bool), u32>,
}

impl Numbers {
    fn vip(&mut self, name: &str) -> Result<u16, TablesError> {
        let next = self.vips.len();
        if let Some(number) = self.vips.get(name) {
            return Ok(*number);
        }
        if next == MOST_VIPS {
            return Err(TablesError::Vips);
        }
        self.vips.insert(name.to_owned(), next as u16);
        Ok(next as u16)
    }

    /// `back`: of the way back.
    fn backend(
        &mut self,
        vip: End,
        address: IpAddr,
        port: Option<u16>,
        back: bool,
    ) -> Result<u32, TablesError> {
        let next = self.backends.len() as u32;
        let number = *self.backends.entry((vip, address, port, back)).or_insert(next);
        if number as usize >= MOST_BACKENDS { Err(TablesError::Backends) } else { Ok(number) }
    }

    /// Names and numbers of VIPs.
    pub fn names(&self) -> Vec<(String, u16)> {
        self.vips.iter().map(|(name, number)| (name.clone(), *number)).collect()
    }
}

impl<'eal> Tables<'eal> {
    /// The tables of a configuration. `own`: the MAC address that packets are sent from.
    pub fn new(
        eal: &'eal Eal,
        config: &Config,
        own: MacAddr,
        numbers: &mut Numbers,
    ) -> Result<Self, TablesError> {
        let mut tables = Self {
            deny4: rules(eal, "deny4", FIELDS4, &config.deny, rule4)?,
            deny6: rules(eal, "deny6", FIELDS6, &config.deny, rule6)?,
            mtu: config.mtu,
            idle: ticks(u64::from(config.idle_s).saturating_mul(tsc::hz())),
            backends: Vec::new(),
            vips: HashMap::new(),
            answers: HashMap::new(),
        };
        for vip in &config.vips {
            let number = numbers.vip(&vip.name)?;
            let end = (vip.address, vip.port, vip.protocol);
            let mut backends = Vec::new();
            for to in &vip.backends {
                let port = to.port.or((vip.mode == Mode::Nat).then_some(vip.port));
                let id = numbers.backend(end, to.address, port, false)?;
                let way = Way::to(vip.mode, vip.address, to.address, port, to.mac, own, config);
                tables.put(Backend { way, number: id, vip: number, answers: false });
                backends.push(id);
                if let (Mode::Nat, Some(port)) = (vip.mode, port) {
                    let id = numbers.backend(end, to.address, Some(port), true)?;
                    let way = Way::back(vip.address, vip.port, config.gateway, own);
                    tables.put(Backend { way, number: id, vip: number, answers: true });
                    tables.answers.insert((to.address, port, vip.protocol), id);
                }
            }
            // The same on every instance: not the numbers, which depend on earlier configurations.
            let names =
                vip.backends.iter().map(|to| format!("{} {}", to.address, to.port.unwrap_or(0)));
            let places = if backends.len() > MANY { backends.len() * 100 } else { PLACES };
            let made = Vip { maglev: Maglev::new(names, places), backends };
            tables.vips.insert(end, made);
        }
        Ok(tables)
    }

    fn put(&mut self, backend: Backend) {
        let at = backend.number as usize;
        if self.backends.len() <= at {
            self.backends.resize_with(at + 1, || None);
        }
        self.backends[at] = Some(backend);
    }

    /// A backend by its number.
    #[inline(always)]
    pub fn backend(&self, number: u32) -> Option<&Backend> {
        self.backends.get(number as usize)?.as_ref()
    }

    /// Where a new flow goes: to a backend of its destination's VIP, or back from a backend of NAT.
    /// `hash`: the flow's, by [`maglev::hash`](flow::maglev::hash).
    pub fn destination<const A: usize>(&self, flow: &Flow<A>, hash: u64) -> Destination
    where
        IpAddr: From<[u8; A]>,
    {
        let port = u16::from_be_bytes(flow.destination_port);
        let Some(vip) = self.vips.get(&(flow.destination.into(), port, flow.protocol)) else {
            let port = u16::from_be_bytes(flow.source_port);
            let answer = self.answers.get(&(flow.source.into(), port, flow.protocol));
            return answer.map_or(Destination::Nobody, |id| Destination::Backend(*id));
        };
        match vip.maglev.choose(hash) {
            Some(chosen) => Destination::Backend(vip.backends[chosen]),
            None => Destination::Empty,
        }
    }
}

/// The list of rules of one version.
fn rules<'eal, const FIELDS: usize>(
    eal: &'eal Eal,
    name: &str,
    layout: Layout<FIELDS>,
    deny: &[Deny],
    fields: fn(&Deny) -> Option<[Match; FIELDS]>,
) -> Result<Acl<'eal, Built, FIELDS>, TablesError> {
    let most = deny.len().max(1) as u32;
    let config = AclConfig { max_rules: most, ..AclConfig::unique(name) };
    let mut acl = Acl::new(eal, &layout, &config)?;
    for rule in deny {
        if let Some(fields) = fields(rule) {
            acl.add(&Rule::new(NonZeroU32::MIN, MAX_PRIORITY, fields))
                .map_err(|error| TablesError::Rule(rule.source, error))?;
        }
    }
    Ok(acl.build()?)
}

fn protocol(rule: &Deny) -> Match {
    rule.protocol.map_or(Match::Any, |value| Match::Bits { value: value.into(), mask: 0xff })
}

fn ports(rule: &Deny) -> Match {
    rule.ports.map_or(Match::Any, |[low, high]| Match::Range { low: low.into(), high: high.into() })
}

fn rule4(rule: &Deny) -> Option<[Match; 4]> {
    let IpAddr::V4(source) = rule.source else { return None };
    let source = Match::Prefix { value: u32::from(source).into(), len: rule.prefix_len };
    Some([protocol(rule), source, Match::Any, ports(rule)])
}

fn rule6(rule: &Deny) -> Option<[Match; 7]> {
    let IpAddr::V6(source) = rule.source else { return None };
    let [a, b, c, d] = Match::ipv6_prefix(source, rule.prefix_len);
    Some([protocol(rule), a, b, c, d, Match::Any, ports(rule)])
}
