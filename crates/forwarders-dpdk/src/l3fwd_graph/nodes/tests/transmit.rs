// SPDX-License-Identifier: BSD-3-Clause
//! Transmit: each packet leaves on the port of its number, in order per port.

use dpdk::{Burst, RxQueue};

use super::alone::{Bench, EXECUTORS, Out, SIZES, alone, mixed, run};
use super::frames::numbered;
use super::receive::ring;
use crate::l3fwd_graph::nodes::{BURST, Transmit};
use crate::l3fwd_graph::options::Executor;

alone!(Alone<'port>:
    transmit_left, transmit_right => node transmit: Transmit<'port> => Unsent);

/// Capacity of a ring.
const RING: usize = 1023;

/// A number that is no port's.
const NONE: u16 = u16::MAX;

pub fn alone(bench: Bench<'_>) {
    for executor in EXECUTORS {
        for ports in [&[0][..], &[2], &[0, 2], &[0, 1, 2, 3, NONE], &[1], &[NONE]] {
            for size in SIZES {
                let ports: Vec<u16> = mixed(ports).copied().take(size).collect();
                send(bench, executor, 0, &ports);
            }
        }
        // Rings with room for some of the packets: those that do not fit are not lost.
        for room in [0, 1, 32, BURST - 1] {
            send(bench, executor, RING - room, &[0; BURST]);
            let both: Vec<u16> = mixed(&[0, 2]).copied().take(2 * BURST).collect();
            send(bench, executor, RING - room, &both);
        }
    }
}

/// Sends packets with these port numbers on ports 0 and 2, whose rings already hold some. Each one
/// is either in its port's ring, in order, or was passed on.
fn send(bench: Bench<'_>, executor: Executor, waiting: usize, ports: &[u16]) {
    let mut rings = [0, 2].map(|port| ring(bench, port));
    {
        let [first, last] = &mut rings;
        let [mut first, mut last] = [first.queues(), last.queues()];
        for queues in [&mut first, &mut last] {
            for _ in 0..waiting {
                let mut burst = Burst::<1>::new();
                assert!(burst.push(bench.packet(&[0; 60], 0)).is_ok());
                assert_eq!(queues.tx[0].send(&mut burst), 1);
            }
        }
        let queues = [(0, first.tx.remove(0)), (2, last.tx.remove(0))].into();
        let mut expected = [Vec::new(), Vec::new()];
        let mut unsent = Vec::new();
        let mut packets = Vec::new();
        for (number, port) in ports.iter().enumerate() {
            let frame = numbered(number);
            packets.push(bench.packet(&frame, *port));
            let ring = [0, 2].iter().position(|enabled| enabled == port);
            match ring.map(|ring| &mut expected[ring]) {
                Some(sent) if waiting + sent.len() < RING => sent.push(frame),
                _ => unsent.push((frame, (*port != NONE).then_some(*port))),
            }
        }
        let node = Transmit::new(queues);
        let (mut seen, stats) =
            run(bench.eal, executor, packets, |feeds, seen| Alone::of(node, feeds, seen));
        let left = seen.remove("Unsent").unwrap_or_default();
        let context = format!("{executor:?}: {} packets, {waiting} wait", ports.len());
        // Those of several ports are passed on port by port.
        assert!(sorted(left) == sorted(unsent), "{context}: unsent");
        for (queue, expected) in [&mut first.rx[0], &mut last.rx[0]].into_iter().zip(expected) {
            let sent = emptied(queue);
            assert!(sent[..waiting].iter().all(|frame| *frame == [0; 60]));
            assert!(sent[waiting..] == expected[..], "{context}: sent");
        }
        assert_eq!(stats.dropped, 0);
    }
    rings.into_iter().for_each(|port| drop(port.stop().unwrap()));
}

fn sorted(mut packets: Vec<Out>) -> Vec<Out> {
    packets.sort();
    packets
}

/// The packets in a ring.
fn emptied(queue: &mut RxQueue<'_>) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    let mut burst = Burst::<64>::new();
    while queue.receive(&mut burst) > 0 {
        frames.extend(burst.drain().map(|packet| packet.data().to_vec()));
    }
    frames
}
