// SPDX-License-Identifier: BSD-3-Clause
//! An lcore that loses its CPU: frames that it sends or receives then are counted, but not in
//! latencies.

use proptest::prelude::*;

use super::*;

/// Cycles between slots, between steps, and on the wire.
const SLOT: u64 = 1000;
const STEP: u64 = 250;
const WIRE: u64 = 5000;
/// The limit of lateness and of pauses ([`Bench::new`]).
const LIMIT: u64 = 1000;

/// A wire with a delay, which loses frames that its full ring cannot take.
struct Wire {
    flight: VecDeque<(u64, Vec<u8>)>,
    /// Frames that it accepts per step.
    ring: usize,
    /// Indices of the frames that it loses.
    loses: Vec<u64>,
    seen: u64,
}

impl Wire {
    fn new() -> Self {
        Wire { flight: VecDeque::new(), ring: usize::MAX, loses: Vec::new(), seen: 0 }
    }

    /// Runs the lcore at all these times.
    fn run(&mut self, bench: &mut Bench, times: impl IntoIterator<Item = u64>) {
        for now in times {
            let there = self.flight.iter().take_while(|(at, _)| *at <= now).count();
            bench.ports[0].bring(self.flight.drain(..there).map(|(_, frame)| frame));
            bench.step(now);
            for (place, frame) in std::mem::take(&mut bench.ports[0].sent).into_iter().enumerate() {
                if place < self.ring && !self.loses.contains(&self.seen) {
                    self.flight.push_back((now + WIRE, frame));
                }
                self.seen += 1;
            }
        }
    }
}

fn bench(frames: u64) -> Bench {
    let mut bench =
        Bench::one(Mode::Paced, setup(0, 0, HZ / SLOT, Limit::Frames(frames)), usize::MAX);
    bench.watch = Watch::new(LIMIT);
    bench.start(&[0], 0);
    bench
}

fn work(from: u64, to: u64) -> impl Iterator<Item = u64> {
    (from..to).step_by(STEP as usize)
}

/// Received frames, the disturbed ones of these, missing frames, the disturbed ones of these, and
/// the number in the latency.
fn figures(bench: &Bench) -> [u64; 5] {
    let flow = &bench.books.rx[0].flows[0];
    let latency = flow.delays.as_ref().unwrap().latency.count();
    let (received, missing) = (flow.received.get(), flow.sequence.missing.get());
    [received, flow.disturbed.get(), missing, flow.missing_disturbed.get(), latency]
}

fn longest(bench: &Bench) -> u64 {
    bench.books.rx[0].flows[0].delays.as_ref().unwrap().latency.max().unwrap()
}

#[test]
fn without_a_pause_nothing_is_disturbed() {
    let mut bench = bench(300);
    Wire::new().run(&mut bench, work(0, 400_000));
    assert_eq!(figures(&bench), [300, 0, 0, 0, 300]);
    assert_eq!(bench.books.tx[0].accepted_disturbed.get(), 0);
}

#[test]
fn what_waited_and_what_left_late_is_in_no_latency() {
    let mut bench = bench(300);
    // The lcore is away for 50 slots.
    Wire::new().run(&mut bench, work(0, 100_000).chain(work(150_000, 400_000)));
    let tx = &bench.books.tx[0];
    // One of them in the next step: a burst has 32.
    assert_eq!((tx.accepted.get(), tx.late.get()), (300, 50));
    // 51 were due from 100,000 to 150,000, and 50 in an equally long time afterwards.
    let [received, disturbed, missing, _, latency] = figures(&bench);
    let sent = tx.accepted_disturbed.get();
    assert!((99..=102).contains(&sent), "{sent}");
    // Five were on the wire when it stopped.
    assert_eq!(disturbed, sent + 5);
    assert_eq!((received, missing, latency), (300, 0, 300 - disturbed));
    assert!(longest(&bench) <= WIRE + STEP, "{}", longest(&bench));
    // Later frames are like the first ones.
    assert!(!tx.disturbed.last());
}

#[test]
fn what_a_late_burst_loses_is_told_apart() {
    let mut bench = bench(300);
    let mut wire = Wire::new();
    // A burst of 32 is too large for the wire; it also loses a frame before and one after.
    (wire.ring, wire.loses) = (8, vec![20, 280]);
    wire.run(&mut bench, work(0, 100_000).chain(work(150_000, 400_000)));
    let [received, _, missing, disturbed, _] = figures(&bench);
    assert_eq!(received + missing, 300);
    assert!(missing > 20, "{missing}");
    assert_eq!(missing - disturbed, 2, "the two that were on time");
}

#[test]
fn a_sender_that_never_catches_up_is_disturbed_all_the_time() {
    let mut bench = bench(300);
    // It runs once every 40 slots, and sends 32 frames.
    Wire::new().run(&mut bench, (0..20_000_000).step_by(40_000));
    let [received, disturbed, ..] = figures(&bench);
    assert_eq!(received, 300);
    assert!(disturbed >= 299, "{disturbed}");
    assert!(bench.books.tx[0].disturbed.last());
    // A new start clears the books, and nothing is disturbed before it is late again.
    bench.start(&[0], 30_000_000);
    assert!(!bench.books.tx[0].disturbed.last());
    Wire::new().run(&mut bench, (30_000_000..50_000_000).step_by(40_000));
    let [received, disturbed, ..] = figures(&bench);
    assert_eq!(received, 300);
    assert!(disturbed >= 299, "{disturbed}");
    bench.start(&[0], 60_000_000);
    Wire::new().run(&mut bench, work(60_000_000, 60_400_000));
    assert_eq!(figures(&bench), [300, 0, 0, 0, 300]);
}

#[test]
fn a_flow_that_joins_a_late_queue_is_disturbed_from_its_first_frame() {
    let flows = vec![
        setup(0, 0, HZ / SLOT, Limit::Frames(3000)),
        FlowSetup { index: 1, ..setup(1, 0, HZ / (160 * SLOT), Limit::Frames(2)) },
    ];
    let mut bench = Bench::new(Mode::Paced, flows, vec![u64::MAX; 2], vec![Paper::new(usize::MAX)]);
    bench.watch = Watch::new(LIMIT);
    bench.start(&[0], 0);
    let mut wire = Wire::new();
    wire.run(&mut bench, (0..2_000_000).step_by(40_000));
    bench.start(&[1], 2_000_000);
    wire.run(&mut bench, (2_000_000..8_000_000).step_by(40_000));
    let slow = &bench.books.rx[0].flows[1];
    assert_eq!((slow.received.get(), slow.disturbed.get()), (2, 2));
}

#[test]
fn flows_of_one_queue_are_disturbed_together() {
    // The slow flow has no frame due in the pause, and one right after it, behind the other flow's.
    let flows = vec![
        setup(0, 0, HZ / SLOT, Limit::Frames(300)),
        FlowSetup { index: 1, ..setup(1, 0, HZ / (160 * SLOT), Limit::Frames(2)) },
    ];
    let mut bench = Bench::new(Mode::Paced, flows, vec![u64::MAX; 2], vec![Paper::new(usize::MAX)]);
    bench.watch = Watch::new(LIMIT);
    bench.start(&[0, 1], 0);
    Wire::new().run(&mut bench, work(0, 100_000).chain(work(150_000, 600_000)));
    let slow = &bench.books.rx[0].flows[1];
    assert_eq!((slow.received.get(), bench.books.tx[1].late.get()), (2, 0));
    let latency = slow.delays.as_ref().unwrap().latency.count();
    assert_eq!(slow.disturbed.get() + latency, 2);
    assert_eq!(bench.books.tx[1].accepted_disturbed.get(), slow.disturbed.get());
}

proptest! {
    /// Random pauses and losses. No latency is longer than the wire's delay and the limit. Each
    /// received frame is either in the latency or disturbed. Without pauses no frame and no loss is
    /// disturbed.
    #[test]
    fn pauses_are_in_no_latency(
        pauses in prop::collection::vec((2_000u64..60_000, 100u64..120_000), 0..6),
        loses in prop::collection::vec(0u64..600, 0..4),
    ) {
        let mut bench = bench(600);
        let (mut times, mut at) = (Vec::new(), 0);
        for (works, pause) in &pauses {
            times.extend(work(at, at + works));
            at += works + pause;
        }
        times.extend(work(at, at + 2_000_000));
        let mut wire = Wire::new();
        wire.loses = loses;
        wire.run(&mut bench, times);
        let [received, disturbed, missing, missing_disturbed, latency] = figures(&bench);
        prop_assert_eq!(received, disturbed + latency);
        prop_assert!(missing_disturbed <= missing);
        if latency > 0 {
            prop_assert!(longest(&bench) <= WIRE + LIMIT + STEP, "{}", longest(&bench));
        }
        if pauses.iter().all(|(_, pause)| pause + STEP <= LIMIT) {
            prop_assert_eq!((disturbed, missing_disturbed), (0, 0));
        }
    }
}
