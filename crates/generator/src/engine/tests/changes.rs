// SPDX-License-Identifier: BSD-3-Clause
//! Pauses, new rates and sizes, and second starts.

use super::*;

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
    // Stopping another flow, or pausing again, changes nothing.
    bench.sender.pause(&[0], 10_000_000);
    bench.sender.resume(&[0], 102_500_000);
    assert_eq!(bench.state(0), State::Started);
    bench.steps(102_500_000..=102_999_000, 1000);
    assert_eq!(bench.accepted(0), 3, "the next slot is half a gap after the pause");
    bench.steps(103_000_000..115_000_000, 1000);
    let flow = &bench.books.tx[0];
    assert_eq!((flow.accepted.get(), flow.intended.get(), flow.late.get()), (10, 10, 0));
    assert_eq!(flow.state(), State::Stopped);
    // The pause counts neither as a gap nor as an error.
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
    // From 4.5 ms on, one every 0.1 ms, until 10 ms.
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
    // Frames left from the first run are offered again, but not counted in the second.
    assert_eq!((bench.accepted(0), bench.books.tx[0].bytes.get()), (40, 40 * 60));
    assert_eq!(bench.state(0), State::Stopped);
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
    // Mock buffers contain a5 until they are written.
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
    // If stopped while paused, it leaves nothing behind.
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
