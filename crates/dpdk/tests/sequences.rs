// SPDX-License-Identifier: BSD-3-Clause
//! Random sequences of everything that moves packets: allocate, write, share, clone, copy, chain, split,
//! make one, send to a driver that takes some, receive, free. After each step every mbuf of the pool is
//! accounted for and every packet holds the bytes that were put into it; at the end the pool is full.
#![allow(clippy::unwrap_used, clippy::expect_used)] // A test may.

mod support;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use dpdk::{Burst, Mbuf, Mempool, PoolConfig, Queues, ShareError};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use support::Packet;

/// More than the ring holds (1023), so that it refuses some.
const MBUFS: u32 = 1400;
const ROOM: usize = 300;
const BURST: usize = 200;

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
    TestRunner::new(Config { cases: 250, failure_persistence: None, ..Config::default() })
        .run(&prop::collection::vec(step(), 1..200), |steps| {
            let queues = &mut *queues.borrow_mut();
            let live = Cell::new(0);
            let mut state = State { pool, live: &live, held: Vec::new(), ring: VecDeque::new() };
            let outcome = steps.into_iter().try_for_each(|step| {
                refused.set(refused.get() + state.take(step, queues)?);
                state.check()
            });
            drop(state);
            support::empty(&mut queues.rx[0]);
            outcome?;
            prop_assert_eq!(live.get(), 0);
            prop_assert!(pool.is_full());
            Ok(())
        })
        .unwrap();
    assert!(refused.get() > 0, "the ring was never full");
    drop(queues);
    port.stop().unwrap();
    assert!(pool.is_full());
}

#[derive(Clone, Debug)]
enum Step {
    Alloc(u8, usize),
    Fill(usize),
    Share(usize),
    AddOwner(usize),
    Clone(usize),
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
        3 => at().prop_map(Step::Share),
        2 => at().prop_map(Step::AddOwner),
        3 => at().prop_map(Step::Clone),
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

/// What an mbuf ought to be. Its reference count is that of its `Rc`: one for each packet that it is a
/// segment of, and one for each clone of it.
struct Segment<'l> {
    live: &'l Cell<usize>,
    bytes: Vec<u8>,
    /// The mbuf whose bytes it shares.
    of: Option<Rc<Segment<'l>>>,
}

impl<'l> Segment<'l> {
    fn new(live: &'l Cell<usize>, bytes: Vec<u8>, of: Option<Rc<Self>>) -> Rc<Self> {
        live.set(live.get() + 1);
        Rc::new(Self { live, bytes, of })
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
    live: &'l Cell<usize>,
    held: Vec<(Packet<'m>, Model<'l>)>,
    ring: VecDeque<Model<'l>>,
}

impl<'m, 'l> State<'m, 'l> {
    fn check(&self) -> Result<(), TestCaseError> {
        prop_assert_eq!(self.pool.in_use(), self.live.get());
        self.held.iter().try_for_each(|(packet, model)| same(packet.get(), model))
    }

    fn own(&mut self, at: usize) -> Option<(&mut Mbuf<'m>, &mut Model<'l>)> {
        match self.held.get_mut(at) {
            Some((Packet::Own(mbuf), model)) => Some((mbuf, model)),
            _ => None,
        }
    }

    /// Does a step where it applies. Returns how many packets a driver refused.
    fn take(&mut self, step: Step, queues: &mut Queues<'m>) -> Result<usize, TestCaseError> {
        match step {
            Step::Alloc(byte, len) => {
                if let Some(mut mbuf) = self.pool.alloc() {
                    mbuf.append(len).unwrap().fill(byte);
                    let model = vec![Segment::new(self.live, vec![byte; len], None)];
                    self.held.push((Packet::Own(mbuf), model));
                }
            }
            Step::Fill(n) => {
                let mut burst = Burst::<BURST>::new();
                if self.pool.fill(&mut burst, n).is_ok() {
                    let live = self.live;
                    self.held.extend(burst.drain().map(|mbuf| {
                        (Packet::Own(mbuf), vec![Segment::new(live, Vec::new(), None)])
                    }));
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
            Step::Copy(at) => {
                let Some((packet, model)) = self.held.get(at) else { return Ok(0) };
                if let Ok(copy) = packet.get().copy_into(&self.pool) {
                    let bytes: Vec<u8> =
                        model.iter().flat_map(|segment| segment.bytes.clone()).collect();
                    let pieces = copy.segment_data().map(<[u8]>::to_vec);
                    let model: Model<'l> =
                        pieces.map(|piece| Segment::new(self.live, piece, None)).collect();
                    prop_assert_eq!(model.len(), bytes.len().div_ceil(ROOM).max(1));
                    let copied = model.iter().flat_map(|segment| segment.bytes.clone());
                    prop_assert!(copied.eq(bytes));
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
                let bytes: Vec<u8> =
                    model.iter().flat_map(|segment| segment.bytes.clone()).collect();
                let direct = model[0].of.is_none() && alone(model.first());
                let expected = model.len() == 1 || direct && bytes.len() <= ROOM;
                prop_assert_eq!(mbuf.linearize(), expected);
                if expected && model.len() > 1 {
                    *model = vec![Segment::new(live, bytes, None)];
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
                let model = model.iter().map(|segment| {
                    let of = segment.of.as_ref().unwrap_or(segment);
                    Segment::new(self.live, segment.bytes.clone(), Some(Rc::clone(of)))
                });
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

    fn chain(&mut self, head: usize, tail: usize) -> Result<(), TestCaseError> {
        if head == tail || self.own(head).is_none() || self.own(tail).is_none() {
            return Ok(());
        }
        // Ends last, so that no other index moves before it is used.
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

fn same(packet: &Mbuf<'_>, model: &Model<'_>) -> Result<(), TestCaseError> {
    prop_assert_eq!(packet.segments(), model.len());
    let expected = model.iter().map(|segment| segment.bytes.as_slice());
    prop_assert!(packet.segment_data().eq(expected));
    let len: usize = model.iter().map(|segment| segment.bytes.len()).sum();
    prop_assert_eq!(packet.packet_len(), len);
    let unshared = alone(model.first()) && model[0].of.is_none();
    prop_assert_eq!(packet.is_unshared(), unshared);
    Ok(())
}
