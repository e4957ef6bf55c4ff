// SPDX-License-Identifier: BSD-3-Clause
//! Senders and receivers on ports of paper: rings of bounded room whose other end a test holds.

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
use proptest::prelude::*;

use super::io::{BURST, Frame, Receive, Transmit};
use super::receiver::{Expectations, Receiver};
use super::sender::{Change, Sender};
use super::source::FrameSource;
use super::timetable::{Pace, Tact};
use super::*;
use crate::books::{Books, State, Told};
use crate::pacing::{FrameRate, Interval};

mod orders;

const HZ: u64 = 1_000_000_000;

impl Frame for Vec<u8> {
    fn len(&self) -> usize {
        Vec::len(self)
    }

    fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        Some(self)
    }
}

/// A port: what it accepts goes to `sent`, and `arriving` is received.
#[derive(Default)]
struct Paper {
    queued: Vec<Vec<u8>>,
    sent: Vec<Vec<u8>>,
    arriving: RefCell<VecDeque<Vec<u8>>>,
    /// Frames that it takes before its ring is full.
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
        signature: Some(SignatureSpec { stamped: true, integrity: false }),
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
}

impl Bench {
    fn new(mode: Mode, flows: Vec<FlowSetup>, rx_masks: Vec<u64>, ports: Vec<Paper>) -> Self {
        let settings = Settings { mode, hz: HZ, late_after: 1000, clock_cost: 20 };
        let told = Told { order: true, delays: true };
        let books = Arc::new(Books::new(&vec![told; flows.len()], ports.len(), 1));
        let expected = Expectations { rx_masks, integrity: false };
        let numbers = (0..ports.len()).collect();
        Bench {
            receiver: Receiver::new(&settings, &expected, numbers, books.clone(), 0),
            sender: Sender::new(
                settings,
                flows,
                (0..ports.len()).map(Some).collect(),
                books.clone(),
            ),
            books,
            ports,
            run: 0,
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

    /// Gives a flow another rate, or other sizes.
    fn change(&mut self, flow: usize, rate: Option<FrameRate>, sizes: Option<Sizes>, now: u64) {
        let writer = sizes.map(|sizes| writer(flow as u16, sizes));
        self.sender.change(&mut [Change { flow, rate, writer }], now);
    }

    fn step(&mut self, now: u64) -> bool {
        let mut lanes: Vec<From<'_>> =
            self.ports.iter().map(|port| From(port, Vec::new())).collect();
        let received = self.receiver.drain(&mut lanes, || now);
        received | self.sender.transmit(&mut self.ports, || now)
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

#[test]
fn nothing_leaves_before_a_start_or_after_a_stop() {
    let mut bench = Bench::one(Mode::Paced, setup(0, 0, 1000, Limit::Endless), 1000);
    assert!(!bench.step(10));
    bench.start(&[0], 10);
    assert_eq!(bench.state(0), State::Started);
    // 1000 frames per second: one at once, one each million cycles.
    bench.step(2_500_010);
    assert_eq!(bench.ports[0].sent.len(), 3);
    bench.sender.stop(&[0], 3_200_010);
    assert!(bench.state(0) == State::Stopped && !bench.sender.is_transmitting());
    assert!(!bench.step(9_000_000));
    // The slot at 3,000,010 was due and not served.
    assert_eq!((bench.books.tx[0].intended.get(), bench.books.tx[0].attempted()), (4, 3));
}

#[test]
fn a_full_ring_is_loss_when_paced_and_back_pressure_in_a_flood() {
    let mut paced = Bench::one(Mode::Paced, setup(0, 0, 1_000_000, Limit::Frames(40)), 10);
    paced.start(&[0], 0);
    for now in 0..50_000 {
        paced.step(now);
    }
    let flow = &paced.books.tx[0];
    assert_eq!((flow.accepted.get(), flow.lost_at_ingress.get(), flow.refused.get()), (10, 30, 0));
    assert_eq!((flow.attempted(), flow.intended.get(), flow.state()), (40, 40, State::Stopped));
    assert_eq!(flow.bytes.get(), 10 * 60);

    let mut flood = Bench::one(Mode::Flood, setup(0, 0, 1, Limit::Frames(40)), 10);
    flood.start(&[0], 0);
    for now in 0..5 {
        flood.step(now);
    }
    let flow = &flood.books.tx[0];
    assert_eq!((flow.accepted.get(), flow.lost_at_ingress.get()), (10, 0));
    assert_eq!(flow.attempted(), flow.accepted.get() + flow.refused.get());
    flood.ports[0].room = 1000;
    for now in 5..10 {
        flood.step(now);
    }
    assert_eq!((flood.accepted(0), flood.state(0)), (40, State::Stopped));
    assert_eq!(flood.books.tx[0].bytes.get(), 40 * 60);
    // Every frame once and in order: a refused one was offered again, not replaced.
    let sequences: Vec<u32> =
        flood.ports[0].sent.iter().map(|frame| Signature::read(frame).unwrap().sequence).collect();
    assert_eq!(sequences, (0..40).collect::<Vec<_>>());
}

#[test]
fn a_flood_by_time_ends_and_leaves_nothing_queued() {
    let mut bench = Bench::one(Mode::Flood, setup(0, 0, 1, Limit::Nanoseconds(100)), 33);
    bench.start(&[0], 1000);
    for now in 1000..1200 {
        bench.step(now);
    }
    assert_eq!((bench.accepted(0), bench.state(0)), (33, State::Stopped));
    assert!(bench.ports[0].queued.is_empty());
    assert!(!bench.step(2000));
}

#[test]
fn late_frames_are_counted_and_none_is_skipped() {
    let mut bench = Bench::one(Mode::Paced, setup(0, 0, 1_000_000, Limit::Frames(20)), 1000);
    bench.start(&[0], 0);
    // Slots at 0, 1000, ... 19,000; the tolerance is 1000.
    bench.step(10_000);
    let flow = bench.books.clone();
    assert_eq!((flow.tx[0].attempted(), flow.tx[0].late.get()), (11, 9));
    bench.step(19_000);
    assert_eq!((flow.tx[0].attempted(), flow.tx[0].late.get()), (20, 16));
    // 18 of the 19 gaps are nothing, the other the time between the two bursts; 9 us for 19 us of slots.
    let gaps = &flow.tx[0].gaps;
    assert_eq!((gaps.count(), gaps.max(), gaps.quantile(0.94)), (19, Some(9000), Some(0)));
    let port = &flow.gaps[0];
    assert_eq!((port.count(), port.max(), port.sum()), (19, Some(9000), 9000));
    let ppm = flow.tx[0].pacing_error_ppm().unwrap();
    assert!((ppm - (9.0 / 19.0 - 1.0) * 1e6).abs() < 1.0, "{ppm}");
}

#[test]
fn without_buffers_frames_are_lost_by_name() {
    let mut bench = Bench::one(Mode::Paced, setup(0, 0, 1_000_000, Limit::Frames(5)), 1000);
    bench.ports[0].no_buffers = true;
    bench.start(&[0], 0);
    bench.step(10_000);
    assert_eq!((bench.books.tx[0].lost_at_ingress.get(), bench.state(0)), (5, State::Stopped));
}

#[test]
fn a_time_has_exactly_its_frames() {
    // 1000 frames per second for 20 ms: slots at 0, 1, ... 19 ms; one at 20 ms would be too late.
    for bursts in [None, Some((3, Interval::from_nanoseconds(4e6, HZ)))] {
        let mut flow = setup(0, 0, 1000, Limit::Nanoseconds(20_000_000));
        let Tact::Even { bursts: place, .. } = &mut flow.pace.tact else { unreachable!() };
        *place = bursts;
        let mut bench = Bench::one(Mode::Paced, flow, 1000);
        bench.start(&[0], 500);
        for now in (500..30_000_000).step_by(10_000) {
            bench.step(now);
        }
        // In bursts: 0, 1, 2, 7, 8, 9, 14, 15, 16 ms.
        let wanted = if bursts.is_some() { 9 } else { 20 };
        assert_eq!((bench.accepted(0), bench.state(0)), (wanted, State::Stopped));
        assert_eq!(bench.books.tx[0].intended.get(), wanted);
    }
}

#[test]
fn a_pause_puts_slots_off() {
    let mut bench =
        Bench::one(Mode::Paced, setup(0, 0, 1000, Limit::Nanoseconds(10_000_000)), 1000);
    bench.start(&[0], 500);
    bench.steps(0..=2_500_000, 1000);
    assert_eq!(bench.accepted(0), 3);
    bench.sender.pause(&[0], 2_500_000);
    assert_eq!(bench.state(0), State::Paused);
    assert!(!bench.step(9_000_000));
    // A stop of another flow, or a pause again, changes nothing.
    bench.sender.pause(&[0], 10_000_000);
    bench.sender.resume(&[0], 102_500_000);
    assert_eq!(bench.state(0), State::Started);
    bench.steps(102_500_000..=102_999_000, 1000);
    assert_eq!(bench.accepted(0), 3, "the next slot is half a gap after the pause");
    bench.steps(103_000_000..115_000_000, 1000);
    let flow = &bench.books.tx[0];
    assert_eq!((flow.accepted.get(), flow.intended.get(), flow.late.get()), (10, 10, 0));
    assert_eq!(flow.state(), State::Stopped);
    // The pause is neither a gap nor an error.
    assert_eq!((flow.gaps.count(), flow.gaps.max().map(|gap| gap / 1000)), (8, Some(1000)));
    assert!(flow.pacing_error_ppm().unwrap().abs() < 200.0);
    assert_eq!(flow.tx_duration_tsc() / 1000, 9000);
    assert_eq!(flow.began_tsc.get(), 1000, "the pause changes nothing of when it began");
}

#[test]
fn a_paused_flow_can_be_stopped() {
    let mut bench = Bench::one(Mode::Paced, setup(0, 0, 1000, Limit::Endless), 1000);
    bench.start(&[0], 0);
    bench.step(1_500_000);
    bench.sender.pause(&[0], 1_500_000);
    bench.sender.stop(&[0], 900_000_000);
    assert_eq!(bench.state(0), State::Stopped);
    assert_eq!((bench.books.tx[0].intended.get(), bench.accepted(0)), (2, 2));
    bench.sender.resume(&[0], 950_000_000);
    assert!(!bench.step(999_000_000));
}

#[test]
fn a_rate_changes_without_a_restart() {
    let mut bench =
        Bench::one(Mode::Paced, setup(0, 0, 1000, Limit::Nanoseconds(10_000_000)), 1000);
    bench.start(&[0], 0);
    bench.steps(0..=4_500_000, 1000);
    assert_eq!(bench.accepted(0), 5);
    bench.change(0, FrameRate::new(10_000, 1), Some(Sizes::Fixed(128)), 4_500_000);
    bench.steps(4_501_000..=12_000_000, 1000);
    // From 4.5 ms on one each 0.1 ms, until 10 ms.
    let flow = &bench.books.tx[0];
    assert_eq!((flow.accepted.get(), flow.intended.get()), (60, 60));
    assert_eq!((flow.state(), flow.late.get()), (State::Stopped, 0));
    let lens: Vec<usize> = bench.ports[0].sent.iter().map(Vec::len).collect();
    assert_eq!((&lens[..5], &lens[5..]), (&[60; 5][..], &[124; 55][..]));
    assert_eq!(flow.bytes.get(), 5 * 60 + 55 * 124);
    let sequences: Vec<u32> =
        bench.ports[0].sent.iter().map(|frame| Signature::read(frame).unwrap().sequence).collect();
    assert_eq!(sequences, (0..60).collect::<Vec<_>>());
}

#[test]
fn a_flood_counts_the_bytes_of_frames_that_were_queued_when_sizes_changed() {
    let flows = vec![setup(0, 0, 1, Limit::Frames(100)), setup(1, 0, 1, Limit::Frames(100))];
    let mut bench = Bench::new(Mode::Flood, flows, vec![u64::MAX; 2], vec![Paper::new(5)]);
    bench.start(&[0, 1], 0);
    bench.step(1);
    assert_eq!(bench.accepted(0) + bench.accepted(1), 5);
    bench.change(1, None, Some(Sizes::Fixed(700)), 2);
    bench.ports[0].room = 1000;
    (3..20).for_each(|now| {
        bench.step(now);
    });
    for index in 0..2u16 {
        let own = |frame: &&Vec<u8>| Signature::read(frame).unwrap().flow == index;
        let sent: Vec<&Vec<u8>> = bench.ports[0].sent.iter().filter(own).collect();
        let books = &bench.books.tx[usize::from(index)];
        assert_eq!((sent.len(), books.accepted.get()), (100, 100));
        assert_eq!(sent.iter().map(|frame| frame.len() as u64).sum::<u64>(), books.bytes.get());
        assert_eq!(sent.iter().any(|frame| frame.len() == 696), index == 1);
    }
}

#[test]
fn a_flood_that_starts_again_leaves_the_frames_of_its_first_run_out() {
    let flows = vec![setup(0, 0, 1, Limit::Frames(40)), setup(1, 0, 1, Limit::Endless)];
    let mut bench = Bench::new(Mode::Flood, flows, vec![u64::MAX; 2], vec![Paper::new(0)]);
    bench.start(&[0, 1], 0);
    bench.step(1);
    assert_eq!(bench.ports[0].queued.len(), 32);
    bench.start(&[0], 2);
    bench.step(3);
    let (flow, other) = (&bench.books.tx[0], &bench.books.tx[1]);
    assert_eq!((flow.attempted(), flow.first_tsc.get(), flow.last_tsc.get()), (0, 0, 0));
    assert_eq!((other.refused.get(), other.last_tsc.get()), (32, 3));
    bench.ports[0].room = 10_000;
    (4..20).for_each(|now| {
        bench.step(now);
    });
    assert_eq!(bench.books.tx[0].first_tsc.get(), 5);
    let runs = |run: u8| {
        let own = |frame: &&Vec<u8>| {
            let found = Signature::read(frame).unwrap();
            (found.flow, found.run) == (0, run)
        };
        bench.ports[0].sent.iter().filter(own).count()
    };
    assert_eq!((runs(1), runs(2)), (16, 40));
    // What its first run has left is offered again, but is no business of the second's.
    assert_eq!((bench.accepted(0), bench.books.tx[0].bytes.get()), (40, 40 * 60));
    assert_eq!(bench.state(0), State::Stopped);
}

#[test]
fn a_refused_frame_has_the_stamp_of_its_last_offer() {
    let mut bench = Bench::one(Mode::Flood, setup(0, 0, 1, Limit::Frames(100)), 10);
    bench.start(&[0], 1000);
    for now in (1000..9000).step_by(1000) {
        bench.step(now);
        bench.ports[0].room = 10;
    }
    let stamps: Vec<u64> = bench.ports[0]
        .sent
        .iter()
        .map(|frame| Signature::read(frame).unwrap())
        .enumerate()
        .map(|(number, found)| (found.sequence == number as u32).then_some(found.stamp).unwrap())
        .collect();
    // Ten leave at each offer, whenever they were written.
    assert_eq!(stamps, (0..80).map(|frame| 1000 * (1 + frame / 10)).collect::<Vec<_>>());
}

#[test]
fn frames_of_a_new_size_are_written_whole() {
    let mut bench = Bench::one(Mode::Paced, setup(0, 0, 1_000_000, Limit::Frames(20)), 1000);
    bench.ports[0].resident = true;
    bench.start(&[0], 0);
    bench.step(2000);
    bench.ports[0].forget_resident();
    bench.change(0, None, Some(Sizes::Fixed(200)), 2500);
    bench.steps(2500..30_000, 500);
    let (old, new) = bench.ports[0].sent.split_at(3);
    // Buffers of paper hold a5 until they are written.
    assert!(old.iter().all(|frame| frame.len() == 60));
    assert!(new.iter().all(|frame| frame.len() == 196 && frame[42..178].iter().all(|b| *b == 0)));
}

#[test]
fn a_flood_that_waits_keeps_what_it_has_queued() {
    let mut bench = Bench::one(Mode::Flood, setup(0, 0, 1, Limit::Frames(100)), 10);
    bench.start(&[0], 0);
    bench.step(1);
    assert_eq!((bench.accepted(0), bench.ports[0].queued.len()), (10, 22));
    bench.sender.pause(&[0], 2);
    assert!(!bench.step(3));
    bench.ports[0].room = 1000;
    assert!(!bench.step(4));
    bench.sender.resume(&[0], 5);
    (6..20).for_each(|now| {
        bench.step(now);
    });
    assert_eq!((bench.accepted(0), bench.state(0)), (100, State::Stopped));
    let sequences: Vec<u32> =
        bench.ports[0].sent.iter().map(|frame| Signature::read(frame).unwrap().sequence).collect();
    assert_eq!(sequences, (0..100).collect::<Vec<_>>());
    // Stopped while it waits, it leaves nothing behind.
    bench.ports[0].room = 10;
    bench.start(&[0], 30);
    bench.step(31);
    bench.sender.pause(&[0], 32);
    bench.sender.stop(&[0], 33);
    bench.step(34);
    assert!(bench.ports[0].queued.is_empty() && !bench.step(35));
}

#[test]
fn a_flow_whose_time_a_new_rate_ends_while_it_waits_is_done() {
    let flows = vec![
        setup(0, 0, 1000, Limit::Nanoseconds(1_000_000_000)),
        setup(1, 0, 1000, Limit::Endless),
    ];
    let mut bench = Bench::new(Mode::Paced, flows, vec![u64::MAX; 2], vec![Paper::new(9999)]);
    bench.start(&[0, 1], 500);
    bench.steps(500..500_000_000, 1_000_000);
    bench.sender.pause(&[0], 500_000_000);
    bench.change(0, FrameRate::new(1, 1), None, 500_000_001);
    let sent = bench.accepted(0);
    bench.sender.resume(&[0], 600_000_000);
    bench.steps(600_000_000..3_000_000_000, 1_000_000);
    assert_eq!((bench.accepted(0), bench.state(0)), (sent, State::Stopped));
    assert!(bench.state(1) == State::Started);
}

#[test]
fn a_rate_that_changes_during_the_delay_leaves_the_first_frame_where_it_was() {
    let mut flow = setup(0, 0, 1, Limit::Frames(3));
    flow.pace.delay = Interval::from_nanoseconds(10e9, HZ);
    let mut bench = Bench::one(Mode::Paced, flow, 1000);
    bench.start(&[0], 0);
    bench.step(1_000_000_000);
    bench.change(0, FrameRate::new(1000, 1), None, 1_000_000_000);
    bench.step(9_999_999_999);
    assert_eq!(bench.accepted(0), 0);
    bench.step(10_001_000_000);
    assert_eq!(bench.accepted(0), 2);
}

#[test]
fn received_frames_are_told_apart() {
    let flows = vec![setup(0, 0, 1000, Limit::Frames(1)), setup(1, 0, 1000, Limit::Frames(1))];
    let ports = vec![Paper::new(10), Paper::new(10)];
    let mut bench = Bench::new(Mode::Paced, flows, vec![u64::MAX, 1], ports);
    bench.start(&[0, 1], 0);
    bench.step(5_000_000);
    let sent = std::mem::take(&mut bench.ports[0].sent);
    assert_eq!(sent.len(), 2);
    bench.ports[1].bring(sent.iter().cloned());
    let mut damaged = sent[0].clone();
    damaged[50] ^= 1;
    bench.ports[1].bring([vec![0; 60], damaged]);
    bench.step(5_000_000);
    let books = bench.books.clone();
    let (flows, port) = (&books.rx[0].flows, &books.rx[0].ports[1]);
    assert_eq!((flows[0].received.get(), flows[1].received.get()), (1, 0));
    assert_eq!((port.frames.get(), port.received.get(), port.misdirected.get()), (4, 1, 1));
    assert_eq!((port.foreign.get(), port.corrupt.get()), (1, 1));
    assert_eq!(port.bytes.get(), 60 + 61 + 60 + 60);
    // After another start the same frames are of an earlier run.
    bench.start(&[0, 1], 6_000_000);
    bench.ports[1].bring(sent);
    bench.step(5_000_000);
    assert_eq!((port.stale.get(), flows[0].received.get()), (2, 0));
}

#[test]
fn order_copies_and_delays_are_entered() {
    let mut bench = Bench::one(Mode::Paced, setup(0, 0, 1_000_000, Limit::Frames(10)), 1000);
    bench.start(&[0], 100);
    bench.steps(100..20_000, 100);
    let sent = std::mem::take(&mut bench.ports[0].sent);
    // Frame 3 comes after 5, 7 twice, 8 never. Each was sent at a multiple of 1000 after 100.
    for (frame, at) in [0, 1, 2, 4, 5, 3, 6, 7, 7, 9].into_iter().zip((30_000..).step_by(1000)) {
        bench.ports[0].bring([sent[frame].clone()]);
        bench.step(at);
    }
    let flow = &bench.books.rx[0].flows[0];
    assert_eq!((flow.received.get(), flow.sequence.in_order.get()), (10, 8));
    assert_eq!((flow.sequence.reordered.get(), flow.sequence.duplicates.get()), (1, 1));
    assert_eq!((flow.sequence.max_extent.get(), flow.sequence.missing.get()), (2, 1));
    let extents = flow.sequence.extents().unwrap();
    assert_eq!((extents.count(), extents.quantile(1.0)), (1, Some(2)));
    let port = &bench.books.rx[0].ports[0];
    assert_eq!((port.reordered.get(), port.duplicates.get()), (1, 1));
    // Frame 0: sent at 100, there at 30,000; the clock's 20 are no part of it.
    let delays = flow.delays.as_ref().unwrap();
    assert_eq!((delays.latency.count(), delays.latency.min()), (10, Some(28_880)));
    assert_eq!(delays.latency.max(), Some(31_880), "frame 3, two later");
    assert_eq!((flow.first_tsc.get(), flow.last_tsc.get()), (30_000, 39_000));
}

#[test]
fn a_start_empties_the_books_of_its_flows_only() {
    let flows = vec![setup(0, 0, 1000, Limit::Endless), setup(1, 0, 1000, Limit::Endless)];
    let mut bench = Bench::new(Mode::Paced, flows, vec![u64::MAX; 2], vec![Paper::new(1000)]);
    bench.start(&[0, 1], 0);
    bench.step(10_000_000);
    assert_eq!((bench.accepted(0), bench.accepted(1)), (11, 10));
    bench.start(&[1], 10_000_000);
    assert_eq!((bench.accepted(0), bench.accepted(1)), (11, 0));
    bench.step(20_000_000);
    assert_eq!((bench.accepted(0), bench.accepted(1)), (21, 11));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    // Whatever the rates, the durations, the room and the moments of polling: what is intended is
    // attempted, and every frame has a place in the books.
    #[test]
    fn the_books_close(
        flows in prop::collection::vec((1u64..3_000_000, 1u64..400, 0usize..2), 1..6),
        flood: bool, room in 0usize..600, steps in prop::collection::vec(1u64..200_000, 1..40),
    ) {
        let mode = if flood { Mode::Flood } else { Mode::Paced };
        let setups = flows.iter().enumerate()
            .map(|(i, (rate, frames, port))| setup(i as u16, *port, *rate, Limit::Frames(*frames))).collect();
        let ports = vec![Paper::new(room), Paper::new(room)];
        let mut bench = Bench::new(mode, setups, vec![u64::MAX; flows.len()], ports);
        bench.start(&(0..flows.len()).collect::<Vec<_>>(), 7);
        let (mut now, mut step) = (7, 0);
        while bench.sender.is_transmitting() && step < 100_000 {
            bench.step(now);
            // A peer that takes a few frames now and then, so that a flood can end.
            if flood && step % 3 == 0 {
                bench.ports.iter_mut().for_each(|port| port.room += 5);
            }
            // What was sent comes back on the other port.
            let back: Vec<_> = bench.ports.iter_mut().map(|port| std::mem::take(&mut port.sent)).collect();
            bench.ports.iter_mut().zip(back.into_iter().rev()).for_each(|(port, frames)| port.bring(frames));
            now += steps[step % steps.len()].max(if step > 1000 { 10_000_000 } else { 1 });
            step += 1;
        }
        for _ in 0..40 {
            bench.step(now);
        }
        for (index, (_, frames, _)) in flows.iter().enumerate() {
            let (tx, rx) = (&bench.books.tx[index], &bench.books.rx[0].flows[index]);
            prop_assert_eq!(tx.state(), State::Stopped);
            prop_assert_eq!(tx.accepted.get(), rx.received.get());
            prop_assert_eq!(tx.bytes.get(), rx.bytes.get());
            prop_assert_eq!(tx.intended.get(), *frames);
            prop_assert_eq!(rx.sequence.in_order.get(), rx.received.get());
            if flood {
                prop_assert_eq!(tx.accepted.get(), *frames);
            } else {
                prop_assert_eq!(tx.attempted(), *frames);
            }
        }
        for port in &bench.books.rx[0].ports {
            prop_assert_eq!(port.frames.get(), port.received.get());
        }
    }

    // Starts, stops, pauses, changes at any moments: nothing panics, and at the end the books close.
    #[test]
    fn orders_at_any_moment_leave_the_books_closed(
        rates in prop::collection::vec((1u64..3_000_000, prop_oneof![Just(Limit::Endless), (1u64..500).prop_map(Limit::Frames), (1u64..3_000_000).prop_map(Limit::Nanoseconds)]), 1..4),
        flood: bool, orders in prop::collection::vec((0u8..6, 0usize..4, 1u64..300_000, 1u64..2_000_000), 1..60),
    ) {
        let mode = if flood { Mode::Flood } else { Mode::Paced };
        let setups = rates.iter().enumerate().map(|(i, (rate, limit))| setup(i as u16, 0, *rate, *limit)).collect();
        let mut bench = Bench::new(mode, setups, vec![u64::MAX; rates.len()], vec![Paper::new(usize::MAX)]);
        let mut now = 50;
        for (order, flow, wait, rate) in orders {
            let flows = [flow % rates.len()];
            match order {
                0 => bench.start(&flows, now),
                1 => bench.sender.stop(&flows, now),
                2 => bench.sender.pause(&flows, now),
                3 => bench.sender.resume(&flows, now),
                4 => bench.change(flows[0], FrameRate::new(rate, 1), Some(Sizes::Fixed(64 + (rate % 900) as usize)), now),
                _ => bench.start(&(0..rates.len()).collect::<Vec<_>>(), now),
            }
            for _ in 0..5 {
                now += wait;
                bench.step(now);
            }
        }
        let all: Vec<usize> = (0..rates.len()).collect();
        bench.sender.stop(&all, now);
        bench.step(now);
        for tx in &bench.books.tx {
            prop_assert_eq!(tx.state(), State::Stopped);
            if !flood {
                prop_assert!(tx.intended.get() >= tx.attempted(), "{} < {}", tx.intended.get(), tx.attempted());
            }
        }
        prop_assert!(!bench.step(now + 1_000_000_000));
    }
}
