// SPDX-License-Identifier: BSD-3-Clause
//! `impair` with ring ports, in this process: frames circulate through every effect; at the end the
//! counters balance and every mbuf is free, including those of duplicates and held frames.
#![allow(clippy::unwrap_used, clippy::expect_used)] // A test may.

mod support;

use std::fs;
use std::thread;

use dpdk::{Burst, Eal, Mempool, PortControl};
use forwarders_dpdk::impair::{self, Options};
use forwarders_dpdk::options::CommandLine;
use forwarders_dpdk::stop::Stop;
use support::{RaiseAtEnd, frames, runtime_dir, start, wait_while_growing};

#[test]
fn every_mbuf_comes_back() {
    let _cleanup = support::Cleanup;
    let eal = support::eal(&["net_ring0", "net_ring1"]);
    let parse = |line: &str| Options::parse(line.split_whitespace()).unwrap();
    let pool = impair::packet_pool(&eal, &parse("--delay 1 --reorder 1:100")).unwrap();
    // Twice as many duplicates as drops: the ring fills, and refuses frames.
    for ports in ["-p 1", "-p 3"] {
        for line in [
            "--drop 4 --duplicate 2 --reorder 7:100",
            "--drop 4 --duplicate 2 --corrupt 3 --delay 100:50 --hold 300",
            "--drop 4 --duplicate 2 --corrupt 3 --reorder 7:100 --delay 10 --random 1",
        ] {
            round(&eal, &pool, &parse(&format!("{ports} {line}")));
            assert!(pool.is_full(), "{ports} {line}: {} mbufs are missing", pool.in_use());
        }
    }
    each_third_pass_is_the_last(&eal, &pool);
    assert!(pool.is_full());
}

/// Puts 500 frames into port 0's ring and impairs until that many frames have been received;
/// returns the totals.
fn impaired(eal: &Eal, pool: &Mempool<'_>, options: &Options, goal: u64) -> serde_json::Value {
    let ids = eal.ports();
    {
        let mut port = start(eal, ids[0], pool);
        let sent = frames();
        let mut burst = Burst::<500>::new();
        pool.fill(&mut burst, sent.len()).unwrap();
        for (mbuf, frame) in burst.iter_mut().zip(&sent) {
            mbuf.resize(frame.len()).unwrap().copy_from_slice(frame);
        }
        assert_eq!(port.queues().tx[0].send(&mut burst), 500);
    }
    let controls: Vec<PortControl<'_>> =
        ids.iter().map(|id| eal.take_port(*id).unwrap().control()).collect();
    // A port that has not been configured yet has no statistics.
    let received =
        || controls.iter().map(|port| port.stats().map_or(0, |it| it.ipackets)).sum::<u64>();
    let goal = received() + goal;
    let stop = Stop::on_signals().unwrap();
    let file = runtime_dir().join("s.json");
    let options = Options { period: 0, json_stats: Some(file.clone()), ..options.clone() };
    thread::scope(|threads| {
        threads.spawn(|| {
            let _raise = RaiseAtEnd(&stop);
            wait_while_growing("frames received", goal, received);
        });
        impair::run(eal, pool, &options, &stop).unwrap();
    });
    let text = fs::read_to_string(file).unwrap();
    serde_json::from_str::<serde_json::Value>(&text).unwrap()["total"].take()
}

/// Empties the rings and returns how many frames were in them.
fn left(eal: &Eal, pool: &Mempool<'_>) -> u64 {
    let mut left = 0;
    for id in eal.ports() {
        let mut port = start(eal, id, pool);
        let mut burst = Burst::<64>::new();
        let mut queues = port.queues();
        loop {
            match queues.rx[0].receive(&mut burst) {
                0 => break,
                received => left += received as u64,
            }
            burst.clear();
        }
    }
    left
}

fn round(eal: &Eal, pool: &Mempool<'_>, options: &Options) {
    let total = impaired(eal, pool, options, 200_000);
    let count = |name: &str| total[name].as_u64().unwrap();
    let gone = count("dropped") + count("tx_refused") + count("discarded_at_stop");
    assert_eq!(count("received") + count("duplicated"), count("sent") + gone, "{total}");
    assert_eq!(500 + count("duplicated"), gone + left(eal, pool), "{total}");
    for (asked, name) in [
        (true, "dropped_on_purpose"),
        (true, "duplicated"),
        (options.corrupt.is_some(), "corrupted"),
        (options.reorder.is_some(), "reordered"),
        (options.delay.is_some(), "delayed"),
        (options.hold == 300, "dropped_delay_full"),
    ] {
        assert_eq!(count(name) > 0, asked, "{name}: {total}");
    }
    assert_eq!(count("dropped_no_mbuf"), 0);
}

/// Without other effects, each N received frames are one less: 500 frames are gone after 1500
/// passes.
fn each_third_pass_is_the_last(eal: &Eal, pool: &Mempool<'_>) {
    let options = Options { port_mask: Some(1), drop: Some(3), ..Options::default() };
    let total = impaired(eal, pool, &options, 1500);
    assert_eq!((&total["received"], &total["dropped"]), (&1500.into(), &500.into()));
    assert_eq!((&total["sent"], left(eal, pool)), (&1000.into(), 0));
}
