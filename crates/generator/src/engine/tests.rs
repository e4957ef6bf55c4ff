// SPDX-License-Identifier: BSD-3-Clause
//! Tests senders and receivers on mock ports: rings of limited room whose other end the test holds.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;

use packet::field::Pattern;
use packet::frame::{FrameSpec, Header, SignatureSpec};
use packet::headers;
use packet::payload::Payload;
use packet::signature::Signature;
use packet::size::Sizes;
use packet::writer::FrameWriter;

use super::io::{BURST, Frame, Receive, Transmit};
use super::receiver::{Expectations, Receiver};
use super::sender::{Change, NewWriter, Sender};
use super::source::FrameSource;
use super::timetable::{Pace, Tact};
use super::watch::Watch;
use super::*;
use crate::books::{Books, PortBooks, State, Told};
use crate::pacing::{FrameRate, Interval};
use crate::tags::Tags;

mod changes;
mod disturbed;
mod orders;
mod properties;
mod receiving;
mod sending;
mod small;
mod tagged;

const HZ: u64 = 1_000_000_000;

impl Frame for Vec<u8> {
    fn len(&self) -> usize {
        Vec::len(self)
    }

    fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        Some(self)
    }
}

/// A port: frames that it accepts go to `sent`, and those in `arriving` are received.
#[derive(Default)]
struct Paper {
    queued: Vec<Vec<u8>>,
    sent: Vec<Vec<u8>>,
    arriving: RefCell<VecDeque<Vec<u8>>>,
    /// Frames that it accepts before its ring is full.
    room: usize,
    no_buffers: bool,
    resident: bool,
}

impl Paper {
    fn new(room: usize) -> Self {
        Paper { room, ..Paper::default() }
    }

    fn bring(&mut self, frames: impl IntoIterator<Item = Vec<u8>>) {
        self.arriving.get_mut().extend(frames);
    }
}

/// The receiving side.
struct From<'a>(&'a Paper, Vec<Vec<u8>>);

impl Receive for From<'_> {
    fn receive(&mut self) -> usize {
        let mut arriving = self.0.arriving.borrow_mut();
        let n = arriving.len().min(BURST);
        self.1 = arriving.drain(..n).collect();
        n
    }

    fn free(&mut self) {
        self.1.clear();
    }

    fn frame(&self, n: usize) -> &[u8] {
        self.1.get(n).map_or(&[], Vec::as_slice)
    }
}

impl Transmit for Paper {
    type Frame = Vec<u8>;

    fn reserve(&mut self, n: usize) -> Option<&mut [Vec<u8>]> {
        assert!(self.queued.len() + n <= BURST);
        let before = self.queued.len();
        (!self.no_buffers).then(|| {
            self.queued.resize(before + n, vec![0xa5; 77]);
            &mut self.queued[before..]
        })
    }

    fn queued(&mut self) -> &mut [Vec<u8>] {
        &mut self.queued
    }

    fn offer(&mut self) -> usize {
        let n = self.queued.len().min(self.room);
        self.room -= n;
        self.sent.extend(self.queued.drain(..n));
        n
    }

    fn discard(&mut self) {
        self.queued.clear();
    }

    fn emit(&mut self, frame: &[u8]) -> bool {
        let accepted = self.room > 0 && !self.no_buffers;
        if accepted {
            self.room -= 1;
            self.sent.push(frame.to_vec());
        }
        accepted
    }

    fn resident(&self) -> bool {
        self.resident
    }

    fn forget_resident(&mut self) {
        self.resident = false;
    }
}

fn spec(sizes: Sizes) -> FrameSpec {
    let ports = Pattern::Increment { start: 10_000, step: 1, count: 1000 };
    FrameSpec {
        headers: vec![
            Header::new(&headers::ETHERNET),
            Header::new(&headers::IPV4),
            Header::new(&headers::UDP).with("src_port", ports).unwrap(),
        ],
        sizes,
        payload: Payload::default(),
        signature: Some(SignatureSpec::Full { stamped: true, integrity: false }),
    }
}

fn even(rate: u64) -> Pace {
    let rate = FrameRate::new(rate, 1).unwrap();
    let tact = Tact::Even { rate, interval: rate.interval(HZ), bursts: None };
    Pace { tact, delay: Interval::default() }
}

fn writer(flow: u16, sizes: Sizes) -> Box<FrameWriter> {
    Box::new(FrameWriter::new(&spec(sizes), flow).unwrap())
}

fn setup(index: u16, lane: usize, rate: u64, limit: Limit) -> FlowSetup {
    FlowSetup {
        index,
        lane,
        source: FrameSource::Writer(writer(index, Sizes::Fixed(64 + usize::from(index) % 900))),
        stamped: true,
        pace: even(rate),
        limit,
    }
}

/// An lcore with as many queues as ports.
struct Bench {
    sender: Sender,
    receiver: Receiver,
    books: Arc<Books>,
    ports: Vec<Paper>,
    run: u8,
    watch: Watch,
}

impl Bench {
    fn new(mode: Mode, flows: Vec<FlowSetup>, rx_masks: Vec<u64>, ports: Vec<Paper>) -> Self {
        let expected = Expectations { rx_masks, ..Expectations::default() };
        Bench::with(mode, flows, &expected, ports)
    }

    fn with(mode: Mode, flows: Vec<FlowSetup>, expected: &Expectations, ports: Vec<Paper>) -> Self {
        Bench::tagged(mode, flows, expected, ports, &[])
    }

    /// The first flows have these tags.
    fn tagged(
        mode: Mode,
        flows: Vec<FlowSetup>,
        expected: &Expectations,
        ports: Vec<Paper>,
        tags: &[Arc<Tags>],
    ) -> Self {
        let settings = Settings { mode, hz: HZ, late_after: 1000, clock_cost: 20 };
        let told =
            |flow| Told { order: true, delays: true, lean: false, tags: tags.get(flow).cloned() };
        let told: Vec<Told> = (0..flows.len()).map(told).collect();
        let books = Arc::new(Books::new(&told, ports.len(), 1));
        let numbers = (0..ports.len()).collect();
        Bench {
            receiver: Receiver::new(&settings, expected, numbers, books.clone(), 0),
            sender: Sender::new(
                settings,
                flows,
                (0..ports.len()).map(Some).collect(),
                books.clone(),
            ),
            books,
            ports,
            run: 0,
            // No pause is detected.
            watch: Watch::new(u64::MAX),
        }
    }

    fn one(mode: Mode, flow: FlowSetup, room: usize) -> Self {
        Bench::new(mode, vec![flow], vec![u64::MAX], vec![Paper::new(room)])
    }

    fn start(&mut self, flows: &[usize], now: u64) {
        self.sender.forget(flows, now);
        self.receiver.forget(flows);
        let from_rest = self.books.tx.iter().all(|flow| flow.state() == State::Stopped);
        self.books.clear(flows, from_rest);
        self.run += 1;
        self.receiver.expect(flows, self.run, from_rest);
        self.sender.start(flows, self.run, now);
    }

    /// Changes a flow's rate or sizes.
    fn change(&mut self, flow: usize, rate: Option<FrameRate>, sizes: Option<Sizes>, now: u64) {
        let writer = sizes.map(|sizes| writer(flow as u16, sizes));
        self.sender.change(&mut [Change { flow, rate, writer }], now);
    }

    fn step(&mut self, now: u64) -> bool {
        let mut lanes: Vec<From<'_>> =
            self.ports.iter().map(|port| From(port, Vec::new())).collect();
        let received = self.receiver.drain(&mut lanes, || now, &self.watch);
        let sent = self.sender.transmit(&mut self.ports, || self.watch.see(now));
        if !received && !sent {
            // Like the worker, which reads the clock to see how long it has been idle.
            self.watch.see(now);
        }
        received | sent
    }

    fn steps(&mut self, times: impl Iterator<Item = u64>, step: usize) {
        for now in times.step_by(step) {
            self.step(now);
        }
    }

    fn state(&self, flow: usize) -> State {
        self.books.tx[flow].state()
    }

    fn accepted(&self, flow: usize) -> u64 {
        self.books.tx[flow].accepted.get()
    }
}
