// SPDX-License-Identifier: BSD-3-Clause
//! Random sequences of all operations on packets: allocate, write, attach external bytes, share,
//! clone, take a part, copy, chain, split, linearise, shorten, request offloads, send to a driver
//! that accepts some, receive, free. After each step, every mbuf of the pool and every owner of
//! external bytes is accounted for, every packet holds the bytes that were written and the value of
//! its dynamic field, and the headers of an offload request are in a first segment that is not
//! shared. At the end the pool is full.
#![allow(clippy::unwrap_used, clippy::expect_used)] // A test may.

mod support;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use dpdk::dynfield::DynField;
use dpdk::{
    Burst, ExternalBuffer, ForeignMemory, IpOffload, L4Offload, Mbuf, Mempool, PartError,
    PoolConfig, Queues, ShareError, TxOffload,
};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use support::Packet;

/// More than the ring holds (1023), so that the driver refuses some.
const MBUFS: u32 = 1400;
const ROOM: usize = 300;
const BURST: usize = 200;
const REQUEST: TxOffload =
    TxOffload { l2_len: 14, ip: IpOffload::Ipv4 { len: 20, checksum: true }, l4: L4Offload::Udp };

#[test]
fn every_packet_is_in_one_place() {
    let eal = support::eal(&["net_ring0"]);
    let config = PoolConfig {
        count: MBUFS,
        cache: 32,
        data_room: 128 + ROOM as u16,
        ..PoolConfig::named("packets")
    };
    let pool = Mempool::packet_pool(&eal, &config).unwrap();
    let mut port = support::started(&eal, &pool, "net_ring0");
    let queues = RefCell::new(port.queues());
    let refused = Cell::new(0);
    let foreign = ForeignMemory::check(&eal).unwrap();
    let field = DynField::<u64>::register(&eal, "test_sequence").unwrap();
    let run = |steps: Vec<Step>| {
        let queues = &mut *queues.borrow_mut();
        let live = Cell::new(0);
        let lent = Arc::new(());
        let mut state = State {
            pool,
            foreign,
            field,
            live: &live,
            lent: &lent,
            values: 0,
            held: Vec::new(),
            ring: VecDeque::new(),
        };
        let outcome = steps.into_iter().try_for_each(|step| {
            refused.set(refused.get() + state.take(step, queues)?);
            state.check()
        });
        drop(state);
        support::empty(&mut queues.rx[0]);
        outcome?;
        prop_assert_eq!(live.get(), 0);
        prop_assert_eq!(Arc::strong_count(&lent), 1);
        prop_assert!(pool.is_full());
        Ok(())
    };
    // More than the ring holds, which random sequences reach often, but not always.
    let most = BURST - 1;
    let full = MBUFS as usize / most;
    run((0..full).flat_map(|_| [Step::Fill(most), Step::Send(most)]).collect()).unwrap();
    assert!(refused.get() > 0, "the ring was never full");
    TestRunner::new(Config { cases: 250, failure_persistence: None, ..Config::default() })
        .run(&prop::collection::vec(step(), 1..200), run)
        .unwrap();
    drop(queues);
    port.stop().unwrap();
    assert!(pool.is_full());
}

#[derive(Clone, Debug)]
enum Step {
    Alloc(u8, usize),
    Fill(usize),
    External(u8, usize),
    Request(usize),
    Mark(usize),
    Adj(usize, usize),
    Trim(usize, usize),
    Share(usize),
    AddOwner(usize),
    Clone(usize),
    Part(usize, usize, usize),
    Copy(usize),
    Unshare(usize),
    Chain(usize, usize),
    Split(usize, usize),
    Linearize(usize),
    Send(usize),
    Receive(usize),
    Free(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let which = prop_oneof![3 => 0..5usize, 1 => 0..400usize].boxed();
    let at = move || which.clone();
    prop_oneof![
        4 => (any::<u8>(), 0..=ROOM).prop_map(|(byte, len)| Step::Alloc(byte, len)),
        2 => (0..BURST).prop_map(Step::Fill),
        1 => (any::<u8>(), 0..2 * ROOM).prop_map(|(byte, len)| Step::External(byte, len)),
        2 => at().prop_map(Step::Request),
        2 => at().prop_map(Step::Mark),
        1 => (at(), 0..60usize).prop_map(|(at, len)| Step::Adj(at, len)),
        1 => (at(), 0..60usize).prop_map(|(at, len)| Step::Trim(at, len)),
        3 => at().prop_map(Step::Share),
        2 => at().prop_map(Step::AddOwner),
        3 => at().prop_map(Step::Clone),
        2 => (at(), 0..2 * ROOM, 0..2 * ROOM).prop_map(|(at, skip, len)| Step::Part(at, skip, len)),
        1 => at().prop_map(Step::Copy),
        2 => at().prop_map(Step::Unshare),
        4 => (at(), at()).prop_map(|(head, tail)| Step::Chain(head, tail)),
        3 => (at(), 0..5usize).prop_map(|(at, segments)| Step::Split(at, segments)),
        1 => at().prop_map(Step::Linearize),
        3 => (0..BURST).prop_map(Step::Send),
        1 => (1..BURST).prop_map(Step::Receive),
        2 => at().prop_map(Step::Free),
    ]
}

/// The expected state of an mbuf. Its reference count is that of its `Rc`: one for each packet that
/// contains it, and one for each clone of it.
struct Segment<'l> {
    live: &'l Cell<usize>,
    bytes: RefCell<Vec<u8>>,
    of: Bytes<'l>,
    /// The value of its dynamic field, if it was set.
    value: Cell<Option<u64>>,
}

/// Where a segment's bytes are.
#[derive(Clone)]
enum Bytes<'l> {
    Own,
    /// In another mbuf, which is held for its reference count.
    Of(#[allow(dead_code)] Rc<Segment<'l>>),
    /// Outside of all mbufs, counted by this reference.
    External(Rc<()>),
}

impl<'l> Segment<'l> {
    fn new(live: &'l Cell<usize>, bytes: Vec<u8>, of: Bytes<'l>) -> Rc<Self> {
        live.set(live.get() + 1);
        Rc::new(Self { live, bytes: RefCell::new(bytes), of, value: Cell::new(None) })
    }

    /// A clone of the bytes in `range`.
    fn part(self: &Rc<Self>, range: Range<usize>) -> Rc<Self> {
        let of = match &self.of {
            Bytes::Own => Bytes::Of(Rc::clone(self)),
            others => others.clone(),
        };
        let part = Self::new(self.live, self.bytes.borrow()[range].to_vec(), of);
        part.value.set(self.value.get());
        part
    }

    fn len(&self) -> usize {
        self.bytes.borrow().len()
    }
}

fn bytes_of(model: &Model<'_>) -> Vec<u8> {
    model.iter().flat_map(|segment| segment.bytes.borrow().clone()).collect()
}

/// Bytes outside of all mbufs. They keep their counter alive.
struct Lent {
    bytes: Vec<u8>,
    _count: Arc<()>,
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Segment<'_> {
    fn drop(&mut self) {
        self.live.set(self.live.get() - 1);
    }
}

type Model<'l> = Vec<Rc<Segment<'l>>>;

fn alone(segment: Option<&Rc<Segment<'_>>>) -> bool {
    segment.is_some_and(|segment| Rc::strong_count(segment) == 1)
}

struct State<'m, 'l> {
    pool: Mempool<'m>,
    foreign: ForeignMemory<'m>,
    field: DynField<u64>,
    live: &'l Cell<usize>,
    /// Counts the external buffers that exist; the test owns one reference.
    lent: &'l Arc<()>,
    /// Number of values given to fields.
    values: u64,
    held: Vec<(Packet<'m>, Model<'l>)>,
    ring: VecDeque<Model<'l>>,
}

impl<'m, 'l> State<'m, 'l> {
    fn check(&self) -> Result<(), TestCaseError> {
        prop_assert_eq!(self.pool.in_use(), self.live.get());
        let mut lent: Vec<*const ()> = self
            .held
            .iter()
            .map(|(_, model)| model)
            .chain(&self.ring)
            .flatten()
            .filter_map(|segment| match &segment.of {
                Bytes::External(bytes) => Some(Rc::as_ptr(bytes)),
                _ => None,
            })
            .collect();
        lent.sort_unstable();
        lent.dedup();
        prop_assert_eq!(Arc::strong_count(self.lent), 1 + lent.len());
        self.held.iter().try_for_each(|(packet, model)| same(packet.get(), model, &self.field))
    }

    fn own(&mut self, at: usize) -> Option<(&mut Mbuf<'m>, &mut Model<'l>)> {
        match self.held.get_mut(at) {
            Some((Packet::Own(mbuf), model)) => Some((mbuf, model)),
            _ => None,
        }
    }

    /// Does a step if it applies. Returns how many packets a driver refused.
    fn take(&mut self, step: Step, queues: &mut Queues<'m>) -> Result<usize, TestCaseError> {
        match step {
            Step::Alloc(byte, len) => {
                if let Some(mut mbuf) = self.pool.alloc() {
                    mbuf.append(len).unwrap().fill(byte);
                    let model = vec![Segment::new(self.live, vec![byte; len], Bytes::Own)];
                    self.held.push((Packet::Own(mbuf), model));
                }
            }
            Step::Fill(n) => {
                let mut burst = Burst::<BURST>::new();
                if self.pool.fill(&mut burst, n).is_ok() {
                    let live = self.live;
                    self.held.extend(burst.drain().map(|mbuf| {
                        (Packet::Own(mbuf), vec![Segment::new(live, Vec::new(), Bytes::Own)])
                    }));
                }
            }
            Step::External(byte, len) => {
                let bytes = vec![byte; len];
                let lent = Lent { bytes: bytes.clone(), _count: Arc::clone(self.lent) };
                let buffer = ExternalBuffer::foreign(self.foreign, lent);
                // In two mbufs, so that the bytes have two owners.
                let cut = len / 3;
                let of = Bytes::External(Rc::new(()));
                for range in [0..cut, cut..len] {
                    if let Ok(mbuf) = buffer.packet(&self.pool, range.clone()) {
                        let model = Segment::new(self.live, bytes[range].to_vec(), of.clone());
                        self.held.push((Packet::Own(mbuf), vec![model]));
                    }
                }
            }
            Step::Request(at) => {
                let Some((mbuf, model)) = self.own(at) else { return Ok(0) };
                let expected = alone(model.first())
                    && matches!(model[0].of, Bytes::Own)
                    && model[0].len() >= REQUEST.headers_len();
                let done = mbuf.request(&REQUEST).is_ok();
                // It may have been shortened at the front until too little of the buffer is left.
                prop_assert!(done == expected || !done && mbuf.headroom() > ROOM - 74 + 128);
            }
            Step::Mark(at) => {
                self.values += 1;
                let (value, field) = (self.values, self.field);
                if let Some((mbuf, model)) = self.own(at) {
                    field.write(mbuf, value);
                    model[0].value.set(Some(value));
                }
            }
            Step::Adj(at, len) => {
                let Some((mbuf, model)) = self.own(at) else { return Ok(0) };
                let expected = alone(model.first()) && model[0].len() >= len;
                prop_assert_eq!(mbuf.adj(len), expected);
                if expected {
                    drop(model[0].bytes.borrow_mut().drain(..len));
                }
            }
            Step::Trim(at, len) => {
                let Some((mbuf, model)) = self.own(at) else { return Ok(0) };
                let expected = alone(model.first())
                    && alone(model.last())
                    && model.last().is_some_and(|last| last.len() >= len);
                prop_assert_eq!(mbuf.trim(len), expected);
                if let Some(last) = model.last().filter(|_| expected) {
                    let left = last.len() - len;
                    last.bytes.borrow_mut().truncate(left);
                }
            }
            Step::Share(at) if self.own(at).is_some() => {
                if let (Packet::Own(mbuf), model) = self.held.swap_remove(at) {
                    self.held.push((Packet::Shared(mbuf.share()), model));
                }
            }
            Step::AddOwner(at) => {
                if let Some((Packet::Shared(shared), model)) = self.held.get(at) {
                    let owner = (Packet::Shared(shared.try_clone().unwrap()), model.clone());
                    self.held.push(owner);
                }
            }
            Step::Clone(at) => self.clone(at)?,
            Step::Part(at, skip, len) => self.part(at, skip, len)?,
            Step::Copy(at) => {
                let Some((packet, model)) = self.held.get(at) else { return Ok(0) };
                if let Ok(copy) = packet.get().copy_into(&self.pool) {
                    let (bytes, value) = (bytes_of(model), model[0].value.get());
                    let pieces = copy.segment_data().map(<[u8]>::to_vec);
                    let model: Model<'l> =
                        pieces.map(|piece| Segment::new(self.live, piece, Bytes::Own)).collect();
                    prop_assert_eq!(model.len(), bytes.len().div_ceil(ROOM).max(1));
                    prop_assert_eq!(bytes_of(&model), bytes);
                    model[0].value.set(value);
                    self.held.push((Packet::Own(copy), model));
                }
            }
            Step::Unshare(at) => {
                let Some((Packet::Shared(_), model)) = self.held.get(at) else { return Ok(0) };
                let expected = model.iter().all(|segment| alone(Some(segment)));
                let (Packet::Shared(shared), model) = self.held.swap_remove(at) else {
                    return Ok(0);
                };
                let packet = match shared.unshare() {
                    Ok(mbuf) => Packet::Own(mbuf),
                    Err(shared) => Packet::Shared(shared),
                };
                prop_assert_eq!(matches!(packet, Packet::Own(_)), expected);
                self.held.push((packet, model));
            }
            Step::Chain(head, tail) => self.chain(head, tail)?,
            Step::Split(at, segments) => {
                let live = self.live.get();
                let Some((mbuf, model)) = self.own(at) else { return Ok(0) };
                let expected = (1..model.len()).contains(&segments)
                    && [0, segments - 1, segments].into_iter().all(|cut| alone(model.get(cut)));
                let tail = mbuf.split(segments);
                prop_assert_eq!(tail.is_some(), expected);
                if let Some(tail) = tail {
                    let rest = model.split_off(segments);
                    self.held.push((Packet::Own(tail), rest));
                }
                prop_assert_eq!(self.live.get(), live);
            }
            Step::Linearize(at) => {
                let live = self.live;
                let Some((mbuf, model)) = self.own(at) else { return Ok(0) };
                let (bytes, value) = (bytes_of(model), model[0].value.get());
                let direct = matches!(model[0].of, Bytes::Own) && alone(model.first());
                // Space freed at the front does not count as room.
                let room = ROOM + 128 - mbuf.headroom();
                let expected = model.len() == 1 || direct && bytes.len() <= room;
                prop_assert_eq!(mbuf.linearize(), expected);
                if expected && model.len() > 1 {
                    *model = vec![Segment::new(live, bytes, Bytes::Own)];
                    model[0].value.set(value);
                }
            }
            Step::Send(n) => return self.send(queues, n),
            Step::Receive(n) => {
                let mut burst = Burst::<BURST>::new();
                while burst.spare() > n {
                    let Some(filler) = self.pool.alloc() else { break };
                    prop_assert!(burst.push(filler).is_ok());
                }
                let fillers = burst.len();
                let received = queues.rx[0].receive(&mut burst);
                prop_assert_eq!(received, self.ring.len().min(BURST - fillers));
                let models = self.ring.drain(..received);
                self.held.extend(burst.drain().skip(fillers).map(Packet::Own).zip(models));
            }
            Step::Free(at) if at < self.held.len() => drop(self.held.swap_remove(at)),
            Step::Share(_) | Step::Free(_) => {}
        }
        Ok(0)
    }

    fn clone(&mut self, at: usize) -> Result<(), TestCaseError> {
        let Some((Packet::Shared(shared), model)) = self.held.get(at) else { return Ok(()) };
        match shared.clone_into(&self.pool) {
            Ok(clone) => {
                let model = model.iter().map(|segment| segment.part(0..segment.len()));
                let model = model.collect();
                self.held.push((Packet::Own(clone), model));
            }
            Err(error) => {
                prop_assert_eq!(error, ShareError::Exhausted);
                prop_assert!(self.pool.available() < model.len());
            }
        }
        Ok(())
    }

    fn part(&mut self, at: usize, skip: usize, len: usize) -> Result<(), TestCaseError> {
        let Some((Packet::Shared(shared), model)) = self.held.get(at) else { return Ok(()) };
        let all = bytes_of(model).len();
        match shared.part_into(&self.pool, skip..skip + len) {
            Ok(part) if len == 0 => {
                let model = vec![Segment::new(self.live, Vec::new(), Bytes::Own)];
                self.held.push((Packet::Own(part), model));
            }
            Ok(part) => {
                let (mut from, mut segments) = (0, Vec::new());
                for segment in model {
                    let cut = |at: usize| at.clamp(from, from + segment.len()) - from;
                    let range = cut(skip)..cut(skip + len);
                    if !range.is_empty() {
                        segments.push(segment.part(range));
                    }
                    from += segment.len();
                }
                segments[0].value.set(model[0].value.get());
                self.held.push((Packet::Own(part), segments));
            }
            Err(PartError::Range { .. }) => prop_assert!(skip + len > all),
            Err(error) => {
                prop_assert_eq!(error, ShareError::Exhausted.into());
                prop_assert!(self.pool.available() < model.len());
            }
        }
        Ok(())
    }

    fn chain(&mut self, head: usize, tail: usize) -> Result<(), TestCaseError> {
        if head == tail || self.own(head).is_none() || self.own(tail).is_none() {
            return Ok(());
        }
        // From the end, so that no index changes before it is used.
        let end = self.held.len() - 1;
        self.held.swap(tail, end);
        let head = if head == end { tail } else { head };
        let Some((Packet::Own(tail), mut segments)) = self.held.pop() else { return Ok(()) };
        let (mbuf, model) = self.own(head).unwrap();
        let expected = [model.first(), model.last(), segments.first()].into_iter().all(alone);
        let refused = mbuf.chain(tail).err();
        prop_assert_eq!(refused.is_none(), expected);
        match refused {
            Some(tail) => self.held.push((Packet::Own(tail), segments)),
            None => model.append(&mut segments),
        }
        Ok(())
    }

    /// Offers the last `n` packets that are not shared. Returns how many were refused.
    fn send(&mut self, queues: &mut Queues<'m>, n: usize) -> Result<usize, TestCaseError> {
        let mut burst = Burst::<BURST>::new();
        let mut models = VecDeque::new();
        let mut at = self.held.len();
        while at > 0 && burst.len() < n {
            at -= 1;
            if self.own(at).is_none() {
                continue;
            }
            if let (Packet::Own(mbuf), model) = self.held.swap_remove(at) {
                prop_assert!(burst.push(mbuf).is_ok());
                models.push_back(model);
            }
        }
        let offered = burst.len();
        let sent = queues.tx[0].send(&mut burst);
        prop_assert_eq!(burst.len(), offered - sent);
        self.ring.extend(models.drain(..sent));
        let refused = burst.len();
        self.held.extend(burst.drain().map(Packet::Own).zip(models));
        Ok(refused)
    }
}

fn same(packet: &Mbuf<'_>, model: &Model<'_>, field: &DynField<u64>) -> Result<(), TestCaseError> {
    prop_assert_eq!(packet.segments(), model.len());
    let pieces: Vec<Vec<u8>> = model.iter().map(|segment| segment.bytes.borrow().clone()).collect();
    prop_assert!(packet.segment_data().eq(&pieces));
    let len: usize = pieces.iter().map(Vec::len).sum();
    prop_assert_eq!(packet.packet_len(), len);
    let unshared = alone(model.first()) && matches!(model[0].of, Bytes::Own);
    prop_assert_eq!(packet.is_unshared(), unshared);
    if let Some(value) = model[0].value.get() {
        prop_assert_eq!(field.read(packet), value);
    }
    // A packet that was shared after the request is not sent until it is unshared again.
    if let Some(request) = packet.requested() {
        prop_assert_eq!(request, REQUEST);
        prop_assert!(packet.data().len() >= REQUEST.headers_len());
        prop_assert!(matches!(model[0].of, Bytes::Own));
    }
    Ok(())
}
