// SPDX-License-Identifier: BSD-3-Clause
//! The packet path of an lcore: which packets go where. The loop (`worker`) and the graph (`nodes`) share it.

use std::net::IpAddr;
use std::num::NonZeroU32;

use dpdk::acl::{Acl, Built};
use dpdk::{Burst, Mbuf};
use flow::{CapacityError, FlowTable, Found, maglev};
use zerocopy::FromZeros;

use crate::counters::{Counters, Drop};
use crate::packets::{Flow, Parsed, parse};
use crate::tables::{Backend, Destination, Tables};
use crate::way::Failure;

/// Packets of a burst.
pub const BURST: usize = 32;
/// How many packets ahead the headers are prefetched.
const AHEAD: usize = 4;
/// How many times each connection is looked at, to see whether it is idle, in the time after which it is.
const LOOKS: usize = 8;

/// What is known of a connection.
#[derive(Clone, Copy)]
pub struct Connection {
    backend: u32,
    /// A part of its hash: the UDP source port of its tunnel.
    entropy: u16,
}

/// The connections of one IP version.
type Connections<const A: usize> = FlowTable<Flow<A>, Connection>;

/// Packets of a burst that are of one IP version. Its memory is used again by the next burst.
struct Lane<const A: usize> {
    flows: [Flow<A>; BURST],
    found: [Found; BURST],
    denied: [[Option<NonZeroU32>; 1]; BURST],
    len: usize,
}

impl<const A: usize> Lane<A> {
    fn new() -> Self {
        Self {
            flows: [Flow::new_zeroed(); BURST],
            found: [Found::default(); BURST],
            denied: [[None]; BURST],
            len: 0,
        }
    }

    #[inline(always)]
    fn push(&mut self, flow: Flow<A>) {
        if let Some(place) = self.flows.get_mut(self.len) {
            *place = flow;
            self.len += 1;
        }
    }
}

/// What happens to a packet.
#[derive(Clone, Copy)]
pub struct Verdict<'t> {
    /// Where it goes; `None`: it is dropped.
    pub backend: Option<&'t Backend>,
    /// A hash of its flow.
    pub entropy: u16,
    /// Why it is dropped.
    pub why: Drop,
}

impl<'t> Verdict<'t> {
    /// The packet is dropped.
    pub const fn drop(why: Drop) -> Self {
        Self { backend: None, entropy: 0, why }
    }

    /// The packet goes to a backend; if there is none, it is lost.
    pub const fn pass(backend: Option<&'t Backend>, entropy: u16) -> Self {
        Self { backend, entropy, why: Drop::Failed }
    }
}

/// The state of an lcore's balancing.
pub struct Balancer {
    connections4: Connections<4>,
    connections6: Connections<16>,
    lane4: Lane<4>,
    lane6: Lane<16>,
    /// The tick in which connections were last looked at.
    aged: u32,
    pub counters: Counters,
}

impl Balancer {
    /// Room for so many connections of each IP version.
    pub fn new(connections: usize) -> Result<Self, CapacityError> {
        Ok(Self {
            connections4: FlowTable::new(connections)?,
            connections6: FlowTable::new(connections)?,
            lane4: Lane::new(),
            lane6: Lane::new(),
            aged: 0,
            counters: Counters::new(),
        })
    }

    /// Balances a burst, at a time in [ticks](crate::tables::ticks): what stays in it is to be sent.
    pub fn balance(&mut self, tables: &Tables<'_>, burst: &mut Burst<'_, BURST>, now: u32) {
        let mut verdicts = [Verdict::drop(Drop::Other); BURST];
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
        // Which packets are of which version: bit `n` is packet `n`.
        let (mut of4, mut of6) = (0u32, 0u32);
        (self.lane4.len, self.lane6.len) = (0, 0);
        for (number, packet) in packets.iter().enumerate().take(BURST) {
            if let Some(later) = packets.get(number + AHEAD) {
                later.prefetch();
            }
            match parse(packet) {
                Parsed::V4(flow) => {
                    self.lane4.push(flow);
                    of4 |= 1 << number;
                }
                Parsed::V6(flow) => {
                    self.lane6.push(flow);
                    of6 |= 1 << number;
                }
                Parsed::Other => (),
            }
        }
        let counters = &mut self.counters;
        decide(
            &tables.deny4,
            tables,
            &mut self.connections4,
            &mut self.lane4,
            counters,
            now,
            of4,
            verdicts,
        );
        decide(
            &tables.deny6,
            tables,
            &mut self.connections6,
            &mut self.lane6,
            counters,
            now,
            of6,
            verdicts,
        );
    }

    /// Forgets connections that were idle: in each tick a part of the tables, so that this takes little time, and no poll takes long.
    #[inline(always)]
    pub fn age(&mut self, now: u32, idle: u32) {
        if now != self.aged {
            self.aged = now;
            self.age_part(now, idle);
        }
    }

    #[inline(never)]
    fn age_part(&mut self, now: u32, idle: u32) {
        let part = self.connections4.capacity() * LOOKS / (idle as usize).max(1) + 1;
        let gone = self.connections4.expire(now, idle, part, |_, _| ());
        let gone = gone + self.connections6.expire(now, idle, part, |_, _| ());
        if gone > 0 {
            self.counters.forgotten(gone);
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
            counters.passed(backend.vip, len);
            return true;
        }
        Err(Failure::TooBig) => counters.dropped(Drop::TooBig),
        Err(Failure::Other) => counters.dropped(Drop::Failed),
    }
    false
}

/// Decides about the packets of a lane, whose places in the burst are the ones of `places`.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
fn decide<'t, const A: usize, const FIELDS: usize>(
    deny: &Acl<'_, Built, FIELDS>,
    tables: &'t Tables<'_>,
    connections: &mut Connections<A>,
    lane: &mut Lane<A>,
    counters: &mut Counters,
    now: u32,
    mut places: u32,
    verdicts: &mut [Verdict<'t>; BURST],
) where
    IpAddr: From<[u8; A]>,
{
    if places == 0 {
        return;
    }
    let len = lane.len.min(BURST);
    let (flows, found, denied) =
        (&lane.flows[..len], &mut lane.found[..len], &mut lane.denied[..len]);
    // As many results as flows, each with all its bytes.
    let _ = deny.classify_slices(flows, denied);
    connections.find_bulk(flows, found);
    for ((flow, found), [denied]) in flows.iter().zip(found).zip(denied) {
        let place = places.trailing_zeros() as usize % BURST;
        places &= places.wrapping_sub(1);
        let verdict = &mut verdicts[place];
        if denied.is_some() {
            *verdict = Verdict::drop(Drop::Denied);
            continue;
        }
        if let Some(known) = found.slot().and_then(|slot| connections.see(slot, now)) {
            *verdict = Verdict::pass(tables.backend(known.backend), known.entropy);
        }
        if verdict.backend.is_none() {
            *verdict = new(tables, connections, flow, *found, counters, now);
        }
    }
}

/// A new connection, or one whose backend is gone.
#[inline(never)]
fn new<'t, const A: usize>(
    tables: &'t Tables<'_>,
    connections: &mut Connections<A>,
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
        Destination::Empty => return Verdict::drop(Drop::NoBackend),
        Destination::Nobody => return Verdict::drop(Drop::NoVip),
    };
    let Some(backend) = tables.backend(number) else { return Verdict::drop(Drop::NoBackend) };
    let connection = Connection { backend: number, entropy: hash as u16 };
    // A full table is no reason to drop: the hash chooses the same backend for the next packet.
    let before = connections.len();
    match connections.insert_found(*flow, found, connection, now) {
        // Not if an earlier packet of the burst has brought it.
        Ok(_) if connections.len() > before => counters.new_connection(backend.vip),
        Ok(_) => (),
        Err(_) => counters.full(),
    }
    Verdict::pass(Some(backend), connection.entropy)
}
