// SPDX-License-Identifier: BSD-3-Clause
//! What an lcore does on orders for many flows, and what it leaves to other threads.

use super::*;
use crate::books::RxBooks;
use crate::capture::{self, Clock, Recorder, Tap};

#[test]
fn who_is_forgotten_writes_in_no_book_until_the_start() {
    for mode in [Mode::Paced, Mode::Flood] {
        let flows = vec![setup(0, 0, 1_000_000, Limit::Endless), setup(1, 0, 1, Limit::Endless)];
        let mut bench = Bench::new(mode, flows, vec![u64::MAX; 2], vec![Paper::new(40)]);
        bench.start(&[0, 1], 0);
        bench.steps(0..50_000, 1000);
        let sent = std::mem::take(&mut bench.ports[0].sent);
        bench.sender.forget(&[0], 50_000);
        bench.receiver.forget(&[0]);
        // Here the control plane clears the books, and nothing else writes to them.
        bench.books.clear(&[0], false);
        bench.ports[0].bring(sent);
        bench.ports[0].room = 1000;
        bench.steps(50_000..60_000, 1000);
        let (tx, rx) = (&bench.books.tx[0], &bench.books.rx[0].flows[0]);
        assert_eq!((tx.accepted.get(), tx.lost_at_ingress.get(), tx.bytes.get()), (0, 0, 0));
        assert_eq!((tx.gaps.count(), tx.state()), (0, State::Stopped));
        let delays = rx.delays.as_ref().unwrap();
        assert_eq!(
            (rx.received.get(), rx.sequence.in_order.get(), delays.latency.count()),
            (0, 0, 0)
        );
        assert!(bench.books.rx[0].ports[0].stale.get() > 0 && bench.state(1) == State::Started);
        bench.start(&[0], 60_000);
        bench.step(61_000);
        assert!(bench.accepted(0) > 0);
    }
}

/// Also prints how long orders take an lcore, in microseconds, for a thousand flows.
#[test]
fn orders_touch_no_histogram_and_leave_what_is_to_be_dropped_to_the_orderer() {
    const FLOWS: usize = 1024;
    let flows = (0..FLOWS).map(|index| setup(index as u16, 0, 1000, Limit::Endless)).collect();
    let mut bench = Bench::new(Mode::Paced, flows, vec![u64::MAX; FLOWS], vec![Paper::new(9)]);
    let all: Vec<usize> = (0..FLOWS).collect();
    for books in &bench.books.rx[0].flows {
        books.delays.as_ref().unwrap().latency.add(7, 1);
    }
    bench.books.tx.iter().for_each(|books| books.gaps.add(7, 1));
    bench.books.gaps[0].add(7, 1);
    let mut times = Vec::new();
    let mut time = |name: &'static str, order: &mut dyn FnMut()| {
        let begin = std::time::Instant::now();
        order();
        times.push((name, begin.elapsed().as_micros()));
    };
    let Bench { sender, receiver, .. } = &mut bench;
    for _ in 0..2 {
        time("forget", &mut || {
            sender.forget(&all, 0);
            receiver.forget(&all);
        });
        time("expect", &mut || receiver.expect(&all, 1, true));
        time("start", &mut || sender.start(&all, 1, 0));
    }
    let new = |flow: usize| Some(writer(flow as u16, Sizes::Fixed(1000)));
    let mut changes: Vec<Change> =
        all.iter().map(|flow| Change { flow: *flow, rate: None, writer: new(*flow) }).collect();
    time("change", &mut || sender.change(&mut changes, 0));
    time("stop", &mut || sender.stop(&all, 0));
    let mut tap = Some(Box::new(tap()));
    time("tap", &mut || receiver.swap_tap(0, &mut tap));
    assert!(tap.is_none());
    tap = Some(Box::new(self::tap()));
    time("tap", &mut || receiver.swap_tap(0, &mut tap));
    eprintln!("microseconds of an lcore for {FLOWS} flows: {times:?}");
    // Clearing the books, and dropping those objects, takes milliseconds.
    let kept = |books: &RxBooks| books.delays.as_ref().unwrap().latency.count() == 1;
    assert!(bench.books.rx[0].flows.iter().all(kept));
    assert!(bench.books.tx.iter().all(|books| books.gaps.count() == 1));
    assert_eq!(bench.books.gaps[0].count(), 1);
    let old = |change: &Change| change.writer.as_ref().unwrap().peek_len() < 1000 - 4;
    assert!(changes.iter().all(old) && tap.is_some());
}

fn tap() -> Tap {
    let clock = Clock::new(0, std::time::UNIX_EPOCH, HZ);
    let settings = capture::Settings::new("p", clock);
    Recorder::start(settings, 1, 0).1.remove(0)
}

#[test]
fn a_flow_that_was_given_another_writer_starts_with_its_frames() {
    for mode in [Mode::Paced, Mode::Flood] {
        let mut bench = Bench::one(mode, setup(0, 0, 1_000_000, Limit::Endless), 40);
        let mut new = spec(Sizes::Fixed(64));
        new.headers[0].set("dst", 0x0200_0000_0099).unwrap();
        let writer = Box::new(FrameWriter::new(&new, 0).unwrap());
        bench.start(&[0], 0);
        bench.steps(0..50_000, 1000);
        assert!(bench.ports[0].sent.iter().all(|frame| frame[..6] == [0; 6]));
        bench.sender.forget(&[0], 50_000);
        // What a flood has queued belongs to nobody any more.
        bench.ports[0].queued.clear();
        let mut writers =
            vec![NewWriter { flow: 0, writer }, NewWriter { flow: 7, writer: writer_of_7() }];
        bench.sender.rewrite(&mut writers);
        bench.ports[0].sent.clear();
        bench.ports[0].room = 40;
        bench.sender.lanes[0].queued = Default::default();
        bench.start(&[0], 60_000);
        bench.steps(60_000..100_000, 1000);
        let sent = &bench.ports[0].sent;
        assert!(!sent.is_empty());
        assert!(sent.iter().all(|frame| frame[..6] == [2, 0, 0, 0, 0, 0x99]));
        let packet::signature::Reading::Ours(first) = Signature::inspect(&sent[0]) else {
            panic!()
        };
        assert_eq!(first.sequence, 0);
    }
}

/// A writer for a flow of another lcore.
fn writer_of_7() -> Box<FrameWriter> {
    writer(7, Sizes::Fixed(64))
}
