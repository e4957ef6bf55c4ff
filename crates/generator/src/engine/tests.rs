// SPDX-License-Identifier: BSD-3-Clause
//! The engine on a port of paper: a ring of bounded room whose other end a test holds.

use std::collections::VecDeque;

use packet::field::Pattern;
use packet::signature::Signature;
use packet::template::UdpFrame;
use proptest::prelude::*;

use super::io::{BURST, Frame};
use super::*;
use crate::pacing::FrameRate;

const HZ: u64 = 1_000_000_000;

impl Frame for Vec<u8> {
    fn resize(&mut self, len: usize) -> Option<&mut [u8]> {
        Vec::resize(self, len, 0xa5);
        Some(self)
    }
}

/// A port: what it accepts goes to `sent`, and `arriving` is received.
struct Paper {
    queued: Vec<Vec<u8>>,
    sent: Vec<Vec<u8>>,
    arriving: VecDeque<Vec<u8>>,
    /// Frames that it takes before its ring is full.
    room: usize,
    buffers: bool,
}

impl Paper {
    fn new(room: usize) -> Self {
        Paper {
            queued: Vec::new(),
            sent: Vec::new(),
            arriving: VecDeque::new(),
            room,
            buffers: true,
        }
    }
}

impl Io for Paper {
    type Frame = Vec<u8>;

    fn receive(&mut self, mut look: impl FnMut(&[u8])) -> usize {
        let n = self.arriving.len().min(BURST);
        self.arriving.drain(..n).for_each(|frame| look(&frame));
        n
    }

    fn reserve(&mut self, n: usize) -> Option<&mut [Vec<u8>]> {
        assert!(self.queued.len() + n <= BURST);
        let before = self.queued.len();
        self.buffers.then(|| {
            self.queued.resize(before + n, Vec::new());
            &mut self.queued[before..]
        })
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
        false
    }
}

fn setup(index: u16, port: usize, rate: u64, limit: Limit) -> FlowSetup {
    let frame = UdpFrame {
        len_with_fcs: 64 + usize::from(index),
        port_source: Pattern::Increment { start: 10_000, step: 1, count: 1000 },
        ..UdpFrame::default()
    };
    FlowSetup {
        template: Template::new(&frame, index).unwrap(),
        port,
        rx_mask: u64::MAX,
        interval: FrameRate::new(rate, 1).unwrap().interval(HZ),
        limit,
    }
}

fn engine(mode: Mode, flows: Vec<FlowSetup>, ports: usize) -> (Engine, Arc<Books>) {
    let mut engine = Engine::new(Settings { mode, hz: HZ, late_after: 1000 });
    let books = Arc::new(Books::new(flows.len(), ports));
    engine.load(flows, ports, books.clone());
    (engine, books)
}

#[test]
fn nothing_leaves_before_a_start_or_after_a_stop() {
    let (mut engine, books) = engine(Mode::Paced, vec![setup(0, 0, 1000, Limit::Endless)], 1);
    let mut ports = [Paper::new(1000)];
    assert!(!engine.step(&mut ports, || 10));
    engine.start(&[0], 10);
    assert!(books.flows[0].is_transmitting());
    // 1000 frames per second: one at once, one each million cycles.
    engine.step(&mut ports, || 2_500_010);
    assert_eq!(ports[0].sent.len(), 3);
    engine.stop(&[0], 3_200_010);
    assert!(!books.flows[0].is_transmitting() && !engine.is_transmitting());
    assert!(!engine.step(&mut ports, || 9_000_000));
    // The slot at 3,000,010 was due and not served.
    assert_eq!((books.flows[0].intended.get(), books.flows[0].attempted()), (4, 3));
}

#[test]
fn a_full_ring_is_loss_when_paced_and_back_pressure_in_a_flood() {
    let (mut paced, books) =
        engine(Mode::Paced, vec![setup(0, 0, 1_000_000, Limit::Frames(40))], 1);
    let mut ports = [Paper::new(10)];
    paced.start(&[0], 0);
    for now in 0..50_000 {
        paced.step(&mut ports, || now);
    }
    let flow = &books.flows[0];
    assert_eq!((flow.accepted.get(), flow.lost_at_ingress.get(), flow.refused.get()), (10, 30, 0));
    assert_eq!((flow.attempted(), flow.intended.get(), flow.is_transmitting()), (40, 40, false));

    let (mut flood, books) = engine(Mode::Flood, vec![setup(0, 0, 1, Limit::Frames(40))], 1);
    let mut ports = [Paper::new(10)];
    flood.start(&[0], 0);
    for now in 0..5 {
        flood.step(&mut ports, || now);
    }
    let flow = &books.flows[0];
    assert_eq!((flow.accepted.get(), flow.lost_at_ingress.get()), (10, 0));
    assert_eq!(flow.attempted(), flow.accepted.get() + flow.refused.get());
    ports[0].room = 1000;
    for now in 5..10 {
        flood.step(&mut ports, || now);
    }
    assert_eq!((books.flows[0].accepted.get(), books.flows[0].is_transmitting()), (40, false));
    // Every frame once and in order: a refused one was offered again, not replaced.
    let sequences: Vec<u32> =
        ports[0].sent.iter().map(|frame| Signature::read(frame).unwrap().sequence).collect();
    assert_eq!(sequences, (0..40).collect::<Vec<_>>());
}

#[test]
fn a_flood_by_time_ends_and_leaves_nothing_queued() {
    let (mut engine, books) = engine(Mode::Flood, vec![setup(0, 0, 1, Limit::Cycles(100))], 1);
    let mut ports = [Paper::new(33)];
    engine.start(&[0], 1000);
    for now in 1000..1200 {
        engine.step(&mut ports, || now);
    }
    assert_eq!((books.flows[0].accepted.get(), books.flows[0].is_transmitting()), (33, false));
    assert!(ports[0].queued.is_empty());
    assert!(!engine.step(&mut ports, || 2000));
}

#[test]
fn late_frames_are_counted_and_none_is_skipped() {
    let (mut engine, books) =
        engine(Mode::Paced, vec![setup(0, 0, 1_000_000, Limit::Frames(20))], 1);
    let mut ports = [Paper::new(1000)];
    engine.start(&[0], 0);
    // Slots at 0, 1000, ... 19,000; the tolerance is 1000.
    engine.step(&mut ports, || 10_000);
    assert_eq!((books.flows[0].attempted(), books.flows[0].late.get()), (11, 9));
    engine.step(&mut ports, || 19_000);
    assert_eq!((books.flows[0].attempted(), books.flows[0].late.get()), (20, 16));
}

#[test]
fn without_buffers_frames_are_lost_by_name() {
    let (mut engine, books) =
        engine(Mode::Paced, vec![setup(0, 0, 1_000_000, Limit::Frames(5))], 1);
    let mut ports = [Paper { buffers: false, ..Paper::new(1000) }];
    engine.start(&[0], 0);
    engine.step(&mut ports, || 10_000);
    assert_eq!(
        (books.flows[0].lost_at_ingress.get(), books.flows[0].is_transmitting()),
        (5, false)
    );
}

#[test]
fn received_frames_are_told_apart() {
    let mut flows = vec![setup(0, 0, 1000, Limit::Frames(1)), setup(1, 0, 1000, Limit::Frames(1))];
    flows[1].rx_mask = 1;
    let (mut engine, books) = engine(Mode::Paced, flows, 2);
    let mut ports = [Paper::new(10), Paper::new(10)];
    engine.start(&[0, 1], 0);
    engine.step(&mut ports, || 5_000_000);
    let sent = std::mem::take(&mut ports[0].sent);
    assert_eq!(sent.len(), 2);
    ports[1].arriving.extend(sent.iter().cloned());
    ports[1].arriving.push_back(vec![0; 60]);
    engine.step(&mut ports, || 5_000_000);
    let port = &books.ports[1];
    assert_eq!((books.flows[0].received.get(), books.flows[1].received.get()), (1, 0));
    assert_eq!(
        (port.frames.get(), port.received.get(), port.misdirected.get(), port.foreign.get()),
        (3, 1, 1, 1)
    );
    assert_eq!(port.bytes.get(), 60 + 61 + 60);
    // After another start the same frames are of an earlier run.
    engine.start(&[0, 1], 6_000_000);
    ports[1].arriving.extend(sent);
    engine.step(&mut ports, || 5_000_000);
    assert_eq!((books.ports[1].stale.get(), books.flows[0].received.get()), (2, 0));
}

#[test]
fn a_start_empties_the_books_of_its_flows_only() {
    let (mut engine, books) = engine(
        Mode::Paced,
        vec![setup(0, 0, 1000, Limit::Endless), setup(1, 0, 1000, Limit::Endless)],
        1,
    );
    let mut ports = [Paper::new(1000)];
    engine.start(&[0, 1], 0);
    engine.step(&mut ports, || 10_000_000);
    assert_eq!((books.flows[0].accepted.get(), books.flows[1].accepted.get()), (11, 10));
    engine.start(&[1], 10_000_000);
    assert_eq!((books.flows[0].accepted.get(), books.flows[1].accepted.get()), (11, 0));
    engine.step(&mut ports, || 20_000_000);
    assert_eq!((books.flows[0].accepted.get(), books.flows[1].accepted.get()), (21, 11));
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
        let (mut engine, books) = engine(mode, setups, 2);
        let mut ports = [Paper::new(room), Paper::new(room)];
        engine.start(&(0..flows.len()).collect::<Vec<_>>(), 7);
        let (mut now, mut step) = (7, 0);
        while engine.is_transmitting() && step < 100_000 {
            engine.step(&mut ports, || now);
            // A peer that takes a few frames now and then, so that a flood can end.
            if flood && step % 3 == 0 {
                ports.iter_mut().for_each(|port| port.room += 5);
            }
            // What was sent comes back on the other port.
            let back: Vec<_> = ports.iter_mut().map(|port| std::mem::take(&mut port.sent)).collect();
            ports.iter_mut().zip(back.into_iter().rev()).for_each(|(port, frames)| port.arriving.extend(frames));
            now += steps[step % steps.len()].max(if step > 1000 { 10_000_000 } else { 1 });
            step += 1;
        }
        for _ in 0..40 {
            engine.step(&mut ports, || now);
        }
        for (books, (_, frames, _)) in books.flows.iter().zip(&flows) {
            prop_assert!(!books.is_transmitting());
            prop_assert_eq!(books.accepted.get(), books.received.get());
            prop_assert_eq!(books.intended.get(), *frames);
            if flood {
                prop_assert_eq!(books.accepted.get(), *frames);
            } else {
                prop_assert_eq!(books.attempted(), *frames);
            }
        }
        for port in &books.ports {
            prop_assert_eq!(port.frames.get(), port.received.get());
        }
    }
}
