// SPDX-License-Identifier: BSD-3-Clause
//! Which frames leave, and when.

use super::*;

#[test]
fn nothing_leaves_before_a_start_or_after_a_stop() {
    let mut bench = Bench::one(Mode::Paced, setup(0, 0, 1000, Limit::Endless), 1000);
    assert!(!bench.step(10));
    bench.start(&[0], 10);
    assert_eq!(bench.state(0), State::Started);
    // 1000 frames per second: one at once, then one every million cycles.
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
    // Every frame once and in order: a refused frame is offered again, not replaced.
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
    // 18 of the 19 gaps are 0, the other is the time between the two bursts: 9 us for 19 us of
    // slots.
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
    // Ten leave with each offer, whenever they were written.
    assert_eq!(stamps, (0..80).map(|frame| 1000 * (1 + frame / 10)).collect::<Vec<_>>());
}

#[test]
fn each_of_many_flows_ends_when_its_frames_have_left() {
    for mode in [Mode::Paced, Mode::Flood] {
        let frames = |flow: u16| u64::from(1 + flow % 7);
        let flows = (0..200).map(|flow| setup(flow, 0, 1_000_000, Limit::Frames(frames(flow))));
        let mut bench =
            Bench::new(mode, flows.collect(), vec![u64::MAX; 200], vec![Paper::new(10_000)]);
        let all: Vec<usize> = (0..200).collect();
        bench.start(&all, 0);
        bench.steps(0..1500, 100);
        // Some have ended, and one of them starts again beside the others.
        let ended = all.iter().filter(|flow| bench.state(**flow) == State::Stopped).count();
        assert!((1..199).contains(&ended), "{ended}");
        assert_eq!(bench.state(0), State::Stopped);
        bench.start(&[0], 1600);
        assert_eq!(bench.state(0), State::Started);
        bench.steps(1600..100_000, 100);
        assert!(!bench.sender.is_transmitting());
        for flow in 0..200u16 {
            let own = usize::from(flow);
            assert_eq!((bench.accepted(own), bench.state(own)), (frames(flow), State::Stopped));
        }
        // The second start of the first flow.
        let sent: u64 = (0..200).map(frames).sum::<u64>() + frames(0);
        assert_eq!(bench.ports[0].sent.len() as u64, sent);
    }
}
