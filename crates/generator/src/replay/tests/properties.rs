// SPDX-License-Identifier: BSD-3-Clause
//! Properties of any file and any schedule.

use super::*;
use crate::capture::{self, Clock, Format, Recorder, Settings};
use crate::pacing::FrameRate;
use proptest::prelude::*;
use std::time::UNIX_EPOCH;

proptest! {
    // Frames written by a recorder are replayed the same, in both formats.
    #[test]
    fn what_was_captured_can_be_replayed(
        captured in prop::collection::vec((14usize..3000, 0u64..10_000_000_000), 1..40),
        pcapng in any::<bool>(),
    ) {
        let clock = Clock::new(0, UNIX_EPOCH, 1_000_000_000);
        let format = if pcapng { Format::PcapNg } else { Format::Pcap };
        // The smallest ring, which has room for all frames: touching the usual one takes most of a case's time.
        let limits = capture::Limits { ring: 0, ..capture::Limits::default() };
        let settings = Settings { format, limits, ..Settings::new("p", clock) };
        let (mut recorder, mut taps) = Recorder::start(settings, 1, 0);
        let (mut tsc, mut expected) = (0, Vec::new());
        for (i, (len, gap)) in captured.into_iter().enumerate() {
            tsc += if i == 0 { 0 } else { gap };
            let bytes: Vec<u8> = (0..len).map(|at| (at * 3 + i) as u8).collect();
            taps[0].look(&bytes, tsc);
            expected.push((tsc, bytes));
        }
        recorder.stop(tsc);
        let frames = read(&recorder.file(None)).unwrap();
        prop_assert_eq!(all(&frames), expected);
    }

    // Files with bytes changed, removed and duplicated give frames or an error, within the limits.
    #[test]
    fn no_file_can_hurt(
        kind in 0usize..6, changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..12),
        end in any::<prop::sample::Index>(), cut in any::<bool>(), pad in any::<bool>(),
        words in prop::collection::vec((any::<prop::sample::Index>(), prop::sample::select(
            vec![0u32, 1, 4, 8, 12, 28, 32, 0x7fff_ffff, 0x8000_0000, u32::MAX - 3, u32::MAX])), 0..3),
    ) {
        let order = if kind % 2 == 0 { LITTLE } else { BIG };
        let mut file = match kind / 2 {
            0 => order.pcap(kind % 2 == 0, 1, &[(1, 2, &[1; 60], 60), (3, 4, &[2; 99], 99)]),
            _ => [
                order.section(),
                order.interface(1, 0, &[(2, b"eth0"), (9, &[9]), (14, &[1; 8])]),
                order.enhanced(0, 77, &[3; 61], &[(1, b"comment"), (2, &[0; 4])]),
                order.simple(&[4; 62], 62),
                order.block(5, &[0; 20]),
                order.enhanced(0, 88, &[5; 70], &[]),
            ]
            .concat(),
        };
        for (place, value) in changes {
            let at = place.index(file.len());
            file[at] = value;
        }
        for (place, value) in words {
            let at = place.index(file.len() / 4) * 4;
            file[at..at + 4].copy_from_slice(&order.u32(value));
        }
        if cut {
            file.truncate(end.index(file.len()));
        }
        let truncated = if pad { Truncated::Pad } else { Truncated::Refuse };
        let limits = Limits { bytes: 100_000, frames: 3, truncated };
        if let Ok(frames) = read_within(&file, limits) {
            prop_assert!((1..=3).contains(&frames.len()) && frames.bytes() <= 100_000);
            let offsets = offsets(&frames);
            prop_assert!(offsets.is_sorted());
            let mut schedule = frames.schedule(Timing::Rate(FrameRate::new(5, 1).unwrap()), 1000).unwrap();
            for _ in 0..10 {
                prop_assert!(schedule.frame().len() >= MIN_FRAME);
                schedule.advance();
            }
        }
    }

    // Every due time is exact to a cycle, in every loop and at any distance.
    #[test]
    fn schedules_are_exact_to_a_cycle(
        gaps in prop::collection::vec(0u64..2_000_000_000, 1..20),
        hz in 1_000_000u64..6_000_000_000,
        // Speeds that are exact in binary, as fractions.
        (over, under) in prop::sample::select(vec![(1u64, 1u64), (2, 1), (1, 4), (3, 8), (1000, 1), (1, 65_536)]),
        far in 100u64..1 << 24,
    ) {
        let total: u64 = gaps.iter().sum();
        prop_assume!(total > 0);
        let bytes = [0; 60];
        let mut time = 0;
        let mut records = vec![(0, 0, &bytes[..], 60)];
        for gap in &gaps {
            time += gap;
            records.push(((time / 1_000_000_000) as u32, (time % 1_000_000_000) as u32, &bytes[..], 60));
        }
        let frames = read(&LITTLE.pcap(true, 1, &records)).unwrap();
        let n = frames.len() as u64;
        let mean = ((total as f64 / gaps.len() as f64).round() as u64).max(1);
        // Never late, and early by less than a cycle.
        let exact = |k: u64, over: u64, under: u64| {
            let ns = u128::from(k / n * (total + mean) + offsets(&frames)[(k % n) as usize]);
            ns * u128::from(hz) * u128::from(under) / (u128::from(over) * 1_000_000_000)
        };
        let speed = over as f64 / under as f64;
        let mut own = frames.schedule(Timing::Own, hz).unwrap();
        let mut scaled = frames.schedule(Timing::Scaled(speed), hz).unwrap();
        let rate = FrameRate::new(over, under).unwrap();
        let mut even = frames.schedule(Timing::Rate(rate), hz).unwrap();
        let close = |found: u64, exact: u128| {
            let exact = exact.min(u128::from(u64::MAX));
            (exact.saturating_sub(1)..=exact).contains(&u128::from(found))
        };
        for k in (0..3 * n + 2).chain([far]) {
            if k != far {
                prop_assert_eq!(own.slot(), own.due(k));
                prop_assert_eq!(scaled.slot(), scaled.due(k));
                prop_assert_eq!(even.slot(), even.due(k));
                prop_assert_eq!((own.passed(), own.index() as u64), (k, k % n));
                own.advance();
                scaled.advance();
                even.advance();
            }
            prop_assert!(close(own.due(k), exact(k, 1, 1)), "own {k}");
            prop_assert!(close(scaled.due(k), exact(k, over, under)), "scaled {k}");
            let at = u128::from(k) * u128::from(hz) * u128::from(under) / u128::from(over);
            prop_assert!(close(even.due(k), at), "even {k}");
        }
    }
}

#[test]
fn times_that_are_not_there_need_a_rate() {
    let frame = [0; 60];
    let rate = Timing::Rate(FrameRate::new(1000, 1).unwrap());
    for records in [vec![(7, 7, &frame[..], 60)], vec![(7, 7, &frame[..], 60); 3]] {
        let frames = read(&LITTLE.pcap(true, 1, &records)).unwrap();
        let own = frames.schedule(Timing::Own, 1_000_000_000);
        assert_eq!(own.err(), Some(ScheduleError::NoTimes));
        assert_eq!(frames.schedule(rate, 1_000_000_000).unwrap().due(5), 5_000_000);
        for speed in [0.0, -1.0, f64::NAN, f64::INFINITY, MIN_SPEED / 2.0, MAX_SPEED * 2.0] {
            let scaled = frames.schedule(Timing::Scaled(speed), 1_000_000_000);
            assert!(matches!(scaled, Err(ScheduleError::Speed(_))), "{speed}");
        }
    }
}

#[test]
fn frames_need_no_file() {
    let frames = Frames::of(&[vec![1; 60], vec![2; 14]], 500).unwrap();
    assert_eq!((frames.len(), frames.bytes(), frames.longest()), (2, 74, 60));
    assert_eq!(
        (frames.get(1), frames.offset(1), frames.gap(1)),
        (Some(&[2; 14][..]), Some(500), Some(500))
    );
    assert!(Frames::of(&[], 1).is_none() && Frames::of(&[vec![0; 13]], 1).is_none());
}
