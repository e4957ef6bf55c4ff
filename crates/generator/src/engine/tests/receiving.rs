// SPDX-License-Identifier: BSD-3-Clause
//! What arrives, and how it is counted.

use super::*;

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
    // After another start, the same frames belong to an earlier run.
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
    // Frame 3 comes after 5, 7 twice, 8 never. Each was sent 100 cycles after a multiple of 1000.
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
    // Frame 0: sent at 100, received at 30,000; the clock's 20 cycles are subtracted.
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

#[test]
fn frames_for_devices_are_handed_over_and_counted_apart() {
    let small = Expectations {
        rx_masks: vec![u64::MAX],
        marks: vec![crate::plan::Mark::Fields],
        ..Expectations::default()
    };
    let full = Expectations { rx_masks: vec![u64::MAX], ..Expectations::default() };
    for expected in [full, small] {
        let flows = vec![setup(0, 0, 1000, Limit::Frames(1))];
        let mut bench = Bench::with(Mode::Paced, flows, &expected, vec![Paper::new(10)]);
        let mut arp = vec![0; 60];
        arp[12..14].copy_from_slice(&[8, 6]);
        let bring = |bench: &mut Bench| {
            bench.ports[0].bring([vec![0; 60], arp.clone(), vec![0; 61]]);
            bench.step(1000);
        };
        bring(&mut bench);
        let books = bench.books.clone();
        let port = &books.rx[0].ports[0];
        let counts = || {
            let PortBooks { frames, bytes, foreign, neighbor, .. } = port;
            [frames, bytes, foreign, neighbor].map(|cell| cell.get())
        };
        assert_eq!(counts(), [3, 181, 3, 0], "a port without devices");
        let (ear, mut listener) = crate::neighbors::pair();
        let mut ear = Some(Box::new(ear));
        bench.receiver.swap_ear(0, &mut ear);
        assert!(ear.is_none());
        bring(&mut bench);
        assert_eq!(counts(), [5, 302, 5, 1]);
        assert_eq!(listener.take(), Some(arp.clone()));
        assert_eq!(listener.take(), None);
    }
}
