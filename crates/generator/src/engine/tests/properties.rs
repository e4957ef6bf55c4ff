// SPDX-License-Identifier: BSD-3-Clause
//! Properties that hold for all flows at all times.

use proptest::prelude::*;

use super::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    // For any rates, durations, room and times of polling: all intended frames are attempted, and
    // every frame is in the books.
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
            // A peer that accepts a few frames now and then, so that a flood can end.
            if flood && step % 3 == 0 {
                bench.ports.iter_mut().for_each(|port| port.room += 5);
            }
            // Sent frames come back on the other port.
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

    // Starts, stops, pauses and changes at any time: nothing panics, and the books close in the
    // end.
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
