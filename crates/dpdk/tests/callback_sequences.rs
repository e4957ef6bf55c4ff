// SPDX-License-Identifier: BSD-3-Clause
//! Random sequences of callbacks: added to and removed from three queues in each direction, run by
//! bursts, dropped with their queues or leaked with forgotten ones, while ports stop and start.
//! Callbacks run in order, and each sees what its predecessors have left; each is dropped once, and
//! a leaked one neither runs again nor is dropped. At the end the pool is full except for packets
//! kept by leaked ones, and DPDK's heap holds as much as before.
//!
//! One test, because DPDK starts once in a process.
#![allow(clippy::unwrap_used, clippy::expect_used)] // A test may.

mod support;

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use dpdk::{Burst, CallbackId, Eal, Mbuf, Mempool, Packets, PoolConfig, Queues, RxQueue, TxQueue};
use proptest::prelude::*;
use support::holdings::Holdings;
use support::property::for_all;

/// Packets per burst.
const BURST: usize = 8;
/// More than a case keeps in its rings, which hold 1023.
const MBUFS: u32 = 4095;

/// A queue: its port's index in the list of ports, and its number there.
const PLACES: [(usize, usize); 3] = [(0, 0), (1, 0), (1, 1)];

#[test]
fn each_runs_in_its_turn_and_is_dropped_once() {
    let eal = support::eal(&["net_ring0", "net_null0,size=64"]);
    let config = PoolConfig { count: MBUFS, cache: 64, ..PoolConfig::named("packets") };
    let pool = Mempool::packet_pool(&eal, &config).unwrap();
    // Memory that DPDK allocates once for a port's first configuration.
    drop(ports(&eal, &pool));
    let before = Holdings::now();
    let left_behind = Cell::new(0);
    for_all(10..=250, &prop::collection::vec(session(), 1..6), |sessions| {
        let mut ports = ports(&eal, &pool);
        support::empty(&mut ports[0].queues().rx[0]); // After a case that failed.
        let mut state = State {
            pool,
            told: Arc::default(),
            all: std::array::from_fn(|_| Vec::new()),
            ring: VecDeque::new(),
            kept_for_ever: pool.in_use(),
            next: 0,
        };
        for session in sessions {
            let mut queues: Vec<_> = ports.iter_mut().map(|port| port.queues()).collect();
            for step in session.steps {
                state.take(step, &mut queues)?;
                state.check()?;
            }
            let forgotten = state.end(session.forget, queues)?;
            left_behind.set(left_behind.get() + forgotten);
            if session.restart {
                let all = ports.into_iter().map(|port| port.stop().unwrap().start().unwrap());
                ports = all.collect();
            }
        }
        support::empty(&mut ports[0].queues().rx[0]);
        drop(ports);
        prop_assert_eq!(pool.in_use(), state.kept_for_ever);
        prop_assert_eq!(Holdings::now(), before.clone());
        Ok(())
    });
    assert!(left_behind.get() > 0, "none was left behind with packets");
}

type Ports<'e> = Vec<dpdk::Port<'e, dpdk::Started>>;

fn ports<'e>(eal: &'e Eal, pool: &Mempool<'e>) -> Ports<'e> {
    let one = support::started_with(eal, pool, "net_ring0", 1);
    vec![one, support::started_with(eal, pool, "net_null0", 2)]
}

/// From handing out queues until they are gone.
#[derive(Clone, Debug)]
struct Session {
    steps: Vec<Step>,
    /// One bit per queue: it is forgotten, not dropped.
    forget: u8,
    restart: bool,
}

fn session() -> impl Strategy<Value = Session> {
    let forget = prop_oneof![4 => Just(0u8), 1 => any::<u8>()];
    (prop::collection::vec(step(), 1..40), forget, any::<bool>())
        .prop_map(|(steps, forget, restart)| Session { steps, forget, restart })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Rx,
    Tx,
}

/// A queue: its index in `PLACES`, and its direction.
type At = (usize, Way);

fn index((place, way): At) -> usize {
    2 * place + usize::from(way == Way::Tx)
}

/// What a callback does with packets.
#[derive(Clone, Copy, Debug)]
enum Action {
    Look,
    Truncate(usize),
    /// Removes the last packet.
    Keep,
    /// Returns the packets that it has kept, as far as there is room, and removes the first one.
    Exchange,
    Reverse,
    /// Frees every second packet.
    Halve,
}

#[derive(Clone, Debug)]
enum Step {
    Add(At, Action),
    Remove(At, usize),
    /// The identifier belongs to another queue.
    RemoveElsewhere(At, At, usize),
    Send(usize, usize),
    Receive(usize, usize),
}

fn step() -> impl Strategy<Value = Step> {
    let at = || (0..PLACES.len(), prop_oneof![Just(Way::Rx), Just(Way::Tx)]);
    let action = prop_oneof![
        Just(Action::Look),
        (0..BURST).prop_map(Action::Truncate),
        Just(Action::Keep),
        Just(Action::Exchange),
        Just(Action::Reverse),
        Just(Action::Halve),
    ];
    prop_oneof![
        4 => (at(), action).prop_map(|(at, action)| Step::Add(at, action)),
        2 => (at(), 0..5usize).prop_map(|(at, which)| Step::Remove(at, which)),
        1 => (at(), at(), 0..5usize).prop_map(|(at, on, which)| Step::RemoveElsewhere(at, on, which)),
        4 => (0..PLACES.len(), 0..=BURST).prop_map(|(place, n)| Step::Send(place, n)),
        4 => (0..PLACES.len(), 0..=BURST).prop_map(|(place, n)| Step::Receive(place, n)),
    ]
}

/// Events of callbacks, by their numbers.
#[derive(Default)]
struct Told {
    ran: Vec<u64>,
    dropped: Vec<u64>,
}

/// Records when it is dropped, which happens with its closure.
struct Number(u64, Arc<Mutex<Told>>);

impl Drop for Number {
    fn drop(&mut self) {
        self.1.lock().unwrap().dropped.push(self.0);
    }
}

/// The expected state of a callback.
struct Added {
    id: CallbackId,
    number: u64,
    action: Action,
    kept: Vec<u64>,
}

struct State<'e> {
    pool: Mempool<'e>,
    told: Arc<Mutex<Told>>,
    /// The callbacks of each queue, in order.
    all: [Vec<Added>; 2 * PLACES.len()],
    /// Packets in the ring, by number.
    ring: VecDeque<u64>,
    /// Packets kept by leaked callbacks.
    kept_for_ever: usize,
    /// The next number for a callback or a packet.
    next: u64,
}

/// A callback's effect on packet numbers.
fn model(action: Action, kept: &mut Vec<u64>, packets: &mut Vec<u64>, room: usize) {
    match action {
        Action::Look => {}
        Action::Truncate(len) => packets.truncate(len),
        Action::Keep => kept.extend(packets.pop()),
        Action::Exchange => {
            while packets.len() < room && !kept.is_empty() {
                packets.extend(kept.pop());
            }
            if !packets.is_empty() {
                kept.push(packets.remove(0));
            }
        }
        Action::Reverse => packets.reverse(),
        Action::Halve => {
            let mut index = 0;
            packets.retain(|_| {
                index += 1;
                index % 2 == 0
            });
        }
    }
}

/// The same effect on packets.
fn act<'m>(action: Action, kept: &mut Vec<Mbuf<'m>>, packets: &mut Packets<'_, 'm>) {
    match action {
        Action::Look => assert_eq!(packets.iter().count(), packets.len()),
        Action::Truncate(len) => packets.truncate(len),
        Action::Keep => kept.extend(packets.pop()),
        Action::Exchange => {
            while let Some(packet) = kept.pop() {
                if let Err(packet) = packets.push(packet) {
                    kept.push(packet);
                    break;
                }
            }
            kept.extend(packets.remove(0));
        }
        Action::Reverse => packets.as_mut_slice().reverse(),
        Action::Halve => {
            let mut index = 0;
            packets.retain(|_| {
                index += 1;
                index % 2 == 0
            });
        }
    }
}

fn rx<'q, 'p>(queues: &'q mut [Queues<'p>], place: usize) -> &'q mut RxQueue<'p> {
    let (port, queue) = PLACES[place];
    &mut queues[port].rx[queue]
}

fn tx<'q, 'p>(queues: &'q mut [Queues<'p>], place: usize) -> &'q mut TxQueue<'p> {
    let (port, queue) = PLACES[place];
    &mut queues[port].tx[queue]
}

fn remove(queues: &mut [Queues<'_>], (place, way): At, id: CallbackId) -> bool {
    match way {
        Way::Rx => rx(queues, place).remove_callback(id),
        Way::Tx => tx(queues, place).remove_callback(id),
    }
}

fn number(packet: &Mbuf<'_>) -> u64 {
    u64::from_ne_bytes(packet.data()[..8].try_into().unwrap())
}

impl State<'_> {
    /// Checks that all packets and callbacks are accounted for.
    fn check(&self) -> Result<(), TestCaseError> {
        let kept: usize = self.all.iter().flatten().map(|added| added.kept.len()).sum();
        prop_assert_eq!(self.pool.in_use(), self.ring.len() + kept + self.kept_for_ever);
        Ok(())
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn take(&mut self, step: Step, queues: &mut [Queues<'_>]) -> Result<(), TestCaseError> {
        match step {
            Step::Add(at, action) => self.add(at, action, queues),
            Step::Remove(at, which) => {
                let list = &mut self.all[index(at)];
                if which < list.len() {
                    let gone = list.remove(which);
                    prop_assert!(remove(queues, at, gone.id));
                    prop_assert_eq!(self.dropped(), [gone.number]);
                    prop_assert!(!remove(queues, at, gone.id), "it is gone");
                }
            }
            Step::RemoveElsewhere(at, on, which) if at != on => {
                if let Some(added) = self.all[index(on)].get(which) {
                    prop_assert!(!remove(queues, at, added.id), "another queue's");
                }
            }
            Step::RemoveElsewhere(..) => {}
            Step::Send(place, n) => self.send(place, n, tx(queues, place))?,
            Step::Receive(place, n) => self.receive(place, n, rx(queues, place))?,
        }
        prop_assert_eq!(self.dropped(), [] as [u64; 0]);
        Ok(())
    }

    /// Those that were dropped since the last call.
    fn dropped(&self) -> Vec<u64> {
        std::mem::take(&mut self.told.lock().unwrap().dropped)
    }

    fn add<'p>(&mut self, at: At, action: Action, queues: &mut [Queues<'p>]) {
        let name = Number(self.number(), Arc::clone(&self.told));
        let number = name.0;
        let runs = move || name.1.lock().unwrap().ran.push(name.0);
        let id = match at.1 {
            Way::Rx => {
                let mut kept = Vec::new();
                rx(queues, at.0).add_callback(move |packets: &mut Packets<'_, 'p>| {
                    runs();
                    act(action, &mut kept, packets);
                })
            }
            Way::Tx => tx(queues, at.0).add_callback(move |packets| {
                runs();
                act(action, &mut Vec::new(), packets);
            }),
        };
        self.all[index(at)].push(Added { id: id.unwrap(), number, action, kept: Vec::new() });
    }

    /// What happens to packets on a queue after all its callbacks have run in order.
    fn pass(&mut self, at: At, packets: &mut Vec<u64>, room: usize) -> Result<(), TestCaseError> {
        let list = &mut self.all[index(at)];
        let expected: Vec<u64> = list.iter().map(|added| added.number).collect();
        prop_assert_eq!(std::mem::take(&mut self.told.lock().unwrap().ran), expected);
        for added in list {
            model(added.action, &mut added.kept, packets, room);
            // Packets to be sent cannot be kept, only removed and freed.
            if at.1 == Way::Tx {
                added.kept.clear();
            }
        }
        Ok(())
    }

    fn send(
        &mut self,
        place: usize,
        n: usize,
        queue: &mut TxQueue<'_>,
    ) -> Result<(), TestCaseError> {
        let mut burst = Burst::<BURST>::new();
        let mut packets = Vec::new();
        for _ in 0..n {
            let mut mbuf = self.pool.alloc().unwrap();
            packets.push(self.number());
            mbuf.resize(64).unwrap()[..8].copy_from_slice(&self.next.to_ne_bytes());
            prop_assert!(burst.push(mbuf).is_ok());
        }
        let sent = queue.send(&mut burst);
        // Callbacks also run for an empty burst, as in C.
        self.pass((place, Way::Tx), &mut packets, n)?;
        prop_assert_eq!((sent, burst.len()), (packets.len(), 0));
        if place == 0 {
            self.ring.extend(packets);
        }
        Ok(())
    }

    fn receive(
        &mut self,
        place: usize,
        n: usize,
        queue: &mut RxQueue<'_>,
    ) -> Result<(), TestCaseError> {
        let mut burst = Burst::<BURST>::new();
        // After others, which callbacks do not see.
        self.pool.fill(&mut burst, BURST - n).unwrap();
        let before = burst.len();
        let received = queue.receive(&mut burst);
        if n == 0 {
            prop_assert_eq!(self.told.lock().unwrap().ran.len(), 0, "a full burst polls nothing");
            return Ok(());
        }
        // The null device always has as many packets as requested.
        let waiting = if place == 0 { self.ring.len().min(n) } else { n };
        let mut packets: Vec<u64> = match place {
            0 => self.ring.drain(..waiting).collect(),
            _ => vec![0; waiting],
        };
        self.pass((place, Way::Rx), &mut packets, n)?;
        prop_assert_eq!(received, packets.len());
        prop_assert_eq!(burst.len(), before + received);
        if place == 0 {
            let numbers: Vec<u64> = burst.iter().skip(before).map(number).collect();
            prop_assert_eq!(numbers, packets);
        }
        Ok(())
    }

    /// Drops or forgets the queues. Returns the packets that forgotten queues' callbacks have kept.
    fn end(&mut self, forget: u8, queues: Vec<Queues<'_>>) -> Result<usize, TestCaseError> {
        let mut left = 0;
        for (port, queues) in queues.into_iter().enumerate() {
            for queue in queues.rx {
                left += self.end_of((port, queue.queue().into()), Way::Rx, forget, queue)?;
            }
            for queue in queues.tx {
                left += self.end_of((port, queue.queue().into()), Way::Tx, forget, queue)?;
            }
        }
        self.kept_for_ever += left;
        self.check()?;
        Ok(left)
    }

    fn end_of<Q>(
        &mut self,
        queue: (usize, usize),
        way: Way,
        forget: u8,
        gone: Q,
    ) -> Result<usize, TestCaseError> {
        let place = PLACES.iter().position(|place| *place == queue).unwrap();
        let index = index((place, way));
        let list = std::mem::take(&mut self.all[index]);
        if forget >> index & 1 == 1 {
            std::mem::forget(gone);
            prop_assert_eq!(self.dropped(), [] as [u64; 0]);
            return Ok(list.iter().map(|added| added.kept.len()).sum());
        }
        drop(gone);
        let mut dropped = self.dropped();
        dropped.sort_unstable();
        let expected: Vec<u64> = list.iter().map(|added| added.number).collect();
        prop_assert_eq!(dropped, expected);
        Ok(0)
    }
}
