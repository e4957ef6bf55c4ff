// SPDX-License-Identifier: BSD-3-Clause
//! The packet path of an lcore: which packets go where. The loop (`worker`) and the graph (`nodes`) share it.

use std::net::IpAddr;
use std::num::NonZeroU32;

use dpdk::acl::{Acl, Built};
use dpdk::{Burst, Mbuf};
use flow::{CapacityError, FlowTable, Found, maglev};
use zerocopy::FromZeros;

use crate::counters::{Counters, Reason};
use crate::packets::{Flow, Parsed, parse};
use crate::tables::{Backend, Destination, Tables};
use crate::way::Failure;

/// Packets of a burst.
pub const BURST: usize = 32;
/// How many packets ahead the headers are prefetched.
const AHEAD: usize = 4;
/// How often each connection is looked at during the time after which it is idle.
const LOOKS: usize = 8;

/// A known connection.
#[derive(Clone, Copy)]
pub struct Connection {
    backend: u32,
    /// A part of its hash: the UDP source port of its tunnel.
    entropy: u16,
}

/// One IP version: its connections, and its packets of a burst, whose memory is used again by the next one.
struct Version<const A: usize> {
    connections: FlowTable<Flow<A>, Connection>,
    flows: [Flow<A>; BURST],
    found: [Found; BURST],
    denied: [[Option<NonZeroU32>; 1]; BURST],
    len: usize,
    /// The packets' places in the burst: bit `n` is packet `n`.
    places: u32,
}

/// The decision about a packet.
#[derive(Clone, Copy)]
pub struct Verdict<'t> {
    /// The backend that it goes to; `None` if it is dropped.
    pub backend: Option<&'t Backend>,
    /// A hash of its flow.
    pub entropy: u16,
    /// Why it is dropped.
    pub why: Reason,
}

impl<'t> Verdict<'t> {
    /// The packet is dropped.
    pub const fn drop(why: Reason) -> Self {
        Self { backend: None, entropy: 0, why }
    }

    /// The packet goes to a backend; if there is none, it is lost.
    pub const fn pass(backend: Option<&'t Backend>, entropy: u16) -> Self {
        Self { backend, entropy, why: Reason::Failed }
    }
}

/// The state of an lcore's balancing.
pub struct Balancer {
    v4: Version<4>,
    v6: Version<16>,
    /// The tick in which connections were last looked at.
    aged: u32,
    pub counters: Counters,
}

impl Balancer {
    /// Makes one with room for this many connections of each IP version.
    pub fn new(connections: usize) -> Result<Self, CapacityError> {
        Ok(Self {
            v4: Version::new(connections)?,
            v6: Version::new(connections)?,
            aged: 0,
            counters: Counters::new(),
        })
    }

    /// Balances a burst, at a time in [ticks](crate::tables::ticks): what stays in it is to be sent.
    pub fn balance(&mut self, tables: &Tables<'_>, burst: &mut Burst<'_, BURST>, now: u32) {
        let mut verdicts = [Verdict::drop(Reason::Other); BURST];
        self.verdicts(tables, burst.as_slice(), &mut verdicts, now);
        let mut verdicts = verdicts.iter();
        burst.retain(|packet| {
            verdicts
                .next()
                .is_some_and(|verdict| apply(tables, packet, verdict, &mut self.counters))
        });
    }

    /// Decides what happens to each packet, at most as many as a burst has.
    #[inline(always)]
    pub fn verdicts<'t>(
        &mut self,
        tables: &'t Tables<'_>,
        packets: &[Mbuf<'_>],
        verdicts: &mut [Verdict<'t>; BURST],
        now: u32,
    ) {
        let Self { v4, v6, counters, .. } = self;
        v4.clear();
        v6.clear();
        for (number, packet) in packets.iter().enumerate().take(BURST) {
            if let Some(later) = packets.get(number + AHEAD) {
                later.prefetch();
            }
            match parse(packet) {
                Parsed::V4(flow) => v4.push(flow, number),
                Parsed::V6(flow) => v6.push(flow, number),
                Parsed::Other => (),
            }
        }
        v4.decide(&tables.deny4, tables, counters, now, verdicts);
        v6.decide(&tables.deny6, tables, counters, now, verdicts);
    }

    /// Forgets connections that were idle: in each tick a part of the tables, so that this takes little time, and no poll takes long.
    #[inline(always)]
    pub fn age(&mut self, now: u32, idle: u32) {
        if now != self.aged {
            self.aged = now;
            let gone = self.v4.age(now, idle) + self.v6.age(now, idle);
            if gone > 0 {
                self.counters.forgotten(gone);
            }
        }
    }
}

/// Changes a packet that passes, and counts it; false if it is to be dropped.
#[inline(always)]
pub fn apply(
    tables: &Tables<'_>,
    packet: &mut Mbuf<'_>,
    verdict: &Verdict<'_>,
    counters: &mut Counters,
) -> bool {
    let Some(backend) = verdict.backend else {
        counters.dropped(verdict.why);
        return false;
    };
    let len = packet.packet_len();
    match backend.way.apply(packet, tables.mtu, verdict.entropy) {
        Ok(()) => {
            counters.passed(backend.vip, backend.answers, len);
            return true;
        }
        Err(Failure::TooBig) => counters.dropped(Reason::TooBig),
        Err(Failure::Other) => counters.dropped(Reason::Failed),
    }
    false
}

impl<const A: usize> Version<A>
where
    IpAddr: From<[u8; A]>,
{
    fn new(connections: usize) -> Result<Self, CapacityError> {
        Ok(Self {
            connections: FlowTable::new(connections)?,
            flows: [Flow::new_zeroed(); BURST],
            found: [Found::default(); BURST],
            denied: [[None]; BURST],
            len: 0,
            places: 0,
        })
    }

    #[inline(always)]
    fn clear(&mut self) {
        (self.len, self.places) = (0, 0);
    }

    /// Adds the packet with this number in the burst.
    #[inline(always)]
    fn push(&mut self, flow: Flow<A>, number: usize) {
        if let Some(place) = self.flows.get_mut(self.len) {
            *place = flow;
            self.len += 1;
            self.places |= 1 << number;
        }
    }

    /// Decides about the packets.
    #[inline(always)]
    fn decide<'t, const FIELDS: usize>(
        &mut self,
        deny: &Acl<'_, Built, FIELDS>,
        tables: &'t Tables<'_>,
        counters: &mut Counters,
        now: u32,
        verdicts: &mut [Verdict<'t>; BURST],
    ) {
        if self.places == 0 {
            return;
        }
        let Self { connections, .. } = self;
        let len = self.len.min(BURST);
        let (flows, found) = (&self.flows[..len], &mut self.found[..len]);
        let denied = &mut self.denied[..len];
        // As many results as flows, each with all its bytes.
        let _ = deny.classify_slices(flows, denied);
        connections.find_bulk(flows, found);
        let mut places = self.places;
        for ((flow, found), [denied]) in flows.iter().zip(found).zip(denied) {
            let place = places.trailing_zeros() as usize % BURST;
            places &= places.wrapping_sub(1);
            let verdict = &mut verdicts[place];
            if denied.is_some() {
                *verdict = Verdict::drop(Reason::Denied);
                continue;
            }
            if let Some(known) = found.slot().and_then(|slot| connections.see(slot, now)) {
                *verdict = Verdict::pass(tables.backend(known.backend), known.entropy);
            }
            if verdict.backend.is_none() {
                *verdict = choose(tables, connections, flow, *found, counters, now);
            }
        }
    }

    /// Forgets connections that are idle, in a part of the table; returns how many.
    #[inline(never)]
    fn age(&mut self, now: u32, idle: u32) -> usize {
        let part = self.connections.capacity() * LOOKS / (idle as usize).max(1) + 1;
        self.connections.expire(now, idle, part, |_, _| ())
    }
}

/// Chooses the backend of a new connection, or of one whose backend is gone.
#[inline(never)]
fn choose<'t, const A: usize>(
    tables: &'t Tables<'_>,
    connections: &mut FlowTable<Flow<A>, Connection>,
    flow: &Flow<A>,
    found: Found,
    counters: &mut Counters,
    now: u32,
) -> Verdict<'t>
where
    IpAddr: From<[u8; A]>,
{
    // Not the table's hash, which is another on each lcore and instance.
    let hash = maglev::hash(flow.as_ref());
    let number = match tables.destination(flow, hash) {
        Destination::Backend(number) => number,
        Destination::Empty => return Verdict::drop(Reason::NoBackend),
        Destination::Nobody => return Verdict::drop(Reason::NoVip),
    };
    let Some(backend) = tables.backend(number) else { return Verdict::drop(Reason::NoBackend) };
    let connection = Connection { backend: number, entropy: hash as u16 };
    // A full table is no reason to drop: the hash chooses the same backend for the next packet.
    let before = connections.len();
    match connections.insert_found(*flow, found, connection, now) {
        // Neither one that an earlier packet of the burst has brought, nor the way back of one.
        Ok(_) if connections.len() > before && !backend.answers => {
            counters.new_connection(backend.vip);
        }
        Ok(_) => (),
        Err(_) => counters.full(),
    }
    Verdict::pass(Some(backend), connection.entropy)
}
