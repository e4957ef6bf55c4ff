// SPDX-License-Identifier: BSD-3-Clause
//! Receive: each walk polls one queue, in turn, for as many packets as a node gets at once.

use std::sync::Arc;

use super::alone::{Bench, EXECUTORS, Keep, Out, Seen};
use super::frames::numbered;
use crate::l3fwd_graph::nodes::{BURST, Receive};
use crate::l3fwd_graph::topology;
use crate::polling::{QueueFigures, entries};
use dpdk::telemetry::Value;
use dpdk::{Burst, Mempool, Port, PortConfig, RxConfig, Started, TxConfig, TxQueue};

graph::topology! {
    #[allow(non_snake_case)]
    struct Alone<'port> for dpdk::Mbuf<'port> {
        source receive: Receive<'port> => { Packets => Packets },
        node Packets: Keep,
    }
}

/// A ring port: frames sent to it come back.
pub fn ring<'eal>(bench: Bench<'eal>, number: usize) -> Port<'eal, Started> {
    let config = |pool: &Mempool<'eal>| PortConfig {
        rx: vec![RxConfig::new(pool)],
        tx: vec![TxConfig::default()],
        ..PortConfig::default()
    };
    let port = bench.eal.take_port(bench.eal.ports()[number]).unwrap();
    port.configure(&config(&bench.pool)).unwrap().start().unwrap()
}

/// Sends frames with these numbers to a ring.
fn offer(bench: Bench<'_>, queue: &mut TxQueue<'_>, numbers: std::ops::Range<usize>) {
    let mut burst = Burst::<BURST>::new();
    for number in numbers {
        assert!(burst.push(bench.packet(&numbered(number), 0)).is_ok());
        if burst.is_full() {
            queue.send(&mut burst);
        }
    }
    queue.send(&mut burst);
    assert!(burst.is_empty());
}

pub fn alone(bench: Bench<'_>) {
    for executor in EXECUTORS {
        let [mut one, mut other] = [0, 1].map(|number| ring(bench, number));
        {
            let (mut one, mut other) = (one.queues(), other.queues());
            let figures = [0, 1].map(|port| Arc::new(QueueFigures::with_limit(0, port, 0, BURST)));
            let queues = vec![(one.rx.remove(0), &*figures[0]), (other.rx.remove(0), &*figures[1])];
            let seen = Seen::default();
            let nodes =
                Alone { receive: Receive::new(queues), Packets: Keep::new("Packets", &seen) };
            let mut graph = topology::make(bench.eal, executor, "receive", nodes).unwrap();
            // A walk polls one queue, so that two walks receive from both.
            let mut two_walks = || {
                let [first, second] = [(); 2].map(|()| {
                    graph.walk();
                    seen.by_edge().remove("Packets").unwrap_or_default()
                });
                [first, second].map(|frames| numbers(&frames))
            };
            assert_eq!(two_walks(), [Vec::new(), Vec::new()] as [Vec<usize>; 2]);
            offer(bench, &mut one.tx[0], 0..1);
            offer(bench, &mut other.tx[0], 1..BURST);
            // The second queue is the first that is polled.
            assert_eq!(two_walks(), [(1..BURST).collect(), vec![0]]);
            offer(bench, &mut one.tx[0], 0..BURST);
            offer(bench, &mut other.tx[0], 0..BURST + 1);
            let all: Vec<usize> = (0..BURST).collect();
            assert_eq!(two_walks(), [all.clone(), all]);
            assert_eq!(two_walks(), [vec![BURST], vec![]]);
            let stats = graph.stats().swap_remove(0);
            assert_eq!((stats.calls, stats.objects), (Some(8), Some(3 * BURST as u64 + 1)));
            assert_eq!(polls(&figures[0]), counted(&[0, 1, BURST, 0]));
            assert_eq!(polls(&figures[1]), counted(&[0, BURST - 1, BURST, 1]));
        }
        [one, other].into_iter().for_each(|port| drop(port.stop().unwrap()));
        nothing_to_poll(bench, executor);
    }
}

/// Numbers of polls that found none, one, two and so on, as telemetry reports them.
fn polls(figures: &Arc<QueueFigures>) -> Vec<u64> {
    let Value::List(queues) = entries(&[Arc::clone(figures)]) else { panic!("no list") };
    let [Value::Dict(queue)] = &queues[..] else { panic!("{queues:?}") };
    let found = queue.iter().find(|(name, _)| name == "burst_histogram");
    let Some((_, Value::Numbers(polls))) = found else { panic!("{queue:?}") };
    polls.clone()
}

/// The same for polls that found these.
fn counted(packets: &[usize]) -> Vec<u64> {
    let mut polls = vec![0; BURST + 1];
    packets.iter().for_each(|packets| polls[*packets] += 1);
    polls
}

fn numbers(frames: &[Out]) -> Vec<usize> {
    let number = |(frame, _): &Out| usize::from(frame[32]) << 8 | usize::from(frame[33]);
    frames.iter().map(number).collect()
}

/// An lcore without queues receives nothing.
fn nothing_to_poll(bench: Bench<'_>, executor: crate::l3fwd_graph::options::Executor) {
    let seen = Seen::default();
    let nodes = Alone { receive: Receive::new(vec![]), Packets: Keep::new("Packets", &seen) };
    let mut graph = topology::make(bench.eal, executor, "receive", nodes).unwrap();
    graph.walk();
    graph.walk();
    assert!(seen.by_edge().is_empty());
}
