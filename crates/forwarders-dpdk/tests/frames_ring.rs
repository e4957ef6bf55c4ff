// SPDX-License-Identifier: BSD-3-Clause
//! Our l2fwd with ring ports, in this process: it sends the same bytes as the C l2fwd in the same
//! order, and every pool is full at the end.
//!
//! A ring port returns the frames sent to it. Frames put into port 0's ring circulate: to port 1
//! with its addresses, and back to port 0 with that one's. When l2fwd has stopped, each frame is in
//! the ring of the port that sent it last.
//!
//! `LINERATE_RING_FRAMES` sets the number of frames to forward (`make soak`: 10^9). For any number,
//! l2fwd's counters and the ports' are equal, and no frame is dropped.
#![allow(clippy::unwrap_used, clippy::expect_used)] // A test may.

mod support;

use std::fs;
use std::thread;
use std::time::Instant;

use dpdk::{Burst, Eal, Mbuf, Mempool};
use forwarders_dpdk::l2fwd::{self, Options};
use forwarders_dpdk::stop::Stop;
use support::{RaiseAtEnd, frames, runtime_dir, start, wait_while_growing};

/// Index of the shared frame: within a run of frames that can all be written in place.
const SHARED: usize = 70;

#[test]
fn frames_go_round_unharmed() {
    let _cleanup = support::Cleanup;
    let eal = support::eal(&["net_ring0", "net_ring1"]);
    let pool = l2fwd::packet_pool(&eal).unwrap();
    let goal = goal();
    for burst_forwarding in [false, true] {
        let begin = Instant::now();
        let forwarded = round(&eal, &pool, burst_forwarding, goal);
        println!(
            "burst forwarding {burst_forwarding}: {forwarded} frames in {:.1} s, none lost, {} of {} \
             mbufs back",
            begin.elapsed().as_secs_f64(),
            pool.available(),
            pool.capacity()
        );
    }
}

fn goal() -> u64 {
    match std::env::var("LINERATE_RING_FRAMES") {
        Ok(text) => text.parse().expect("LINERATE_RING_FRAMES is a number of frames"),
        Err(_) => 20_000_000,
    }
}

/// Forwards at least that many frames; returns how many.
fn round<'eal>(eal: &'eal Eal, pool: &Mempool<'eal>, burst_forwarding: bool, goal: u64) -> u64 {
    let ids = eal.ports();
    let sent = frames();
    // One full-size frame has a second owner, for whom it must not change.
    let original = {
        let mut port = start(eal, ids[0], pool);
        let mut burst = Burst::<500>::new();
        pool.fill(&mut burst, sent.len()).unwrap();
        for (mbuf, frame) in burst.iter_mut().zip(&sent) {
            mbuf.resize(frame.len()).unwrap().copy_from_slice(frame);
        }
        let mut packets: Vec<Mbuf<'_>> = burst.drain().collect();
        let original = packets.remove(SHARED).share();
        packets.insert(SHARED, original.clone_into(pool).unwrap());
        for mbuf in packets {
            assert!(burst.push(mbuf).is_ok());
        }
        assert_eq!(port.queues().tx[0].send(&mut burst), sent.len());
        original
    };

    let controls: Vec<_> = ids.iter().map(|id| eal.take_port(*id).unwrap().control()).collect();
    // A port that has not been configured yet has no statistics.
    let received =
        || controls.iter().map(|port| port.stats().map_or(0, |it| it.ipackets)).sum::<u64>();
    let before = received();
    // The main lcore forwards; another thread stops it when enough frames have been forwarded.
    let stop = Stop::on_signals().unwrap();
    let file = runtime_dir().join("s.json");
    let options = Options {
        port_mask: 3,
        ports_per_lcore: 2,
        period: 0,
        burst_forwarding,
        json_stats: Some(file.clone()),
        ..Options::default()
    };
    thread::scope(|threads| {
        threads.spawn(|| {
            let _raise = RaiseAtEnd(&stop);
            wait_while_growing("frames forwarded", before + goal, received);
        });
        l2fwd::run(eal, pool, &options, &stop).unwrap();
    });
    let text = fs::read_to_string(file).unwrap();
    let total = &serde_json::from_str::<serde_json::Value>(&text).unwrap()["total"];
    let forwarded = total["received"].as_u64().unwrap();
    assert_eq!(forwarded, received() - before);
    assert_eq!(total["sent"], total["received"]);
    assert_eq!(total["dropped"], 0);
    assert!(forwarded >= goal);

    let mut back = 0;
    for id in &ids {
        let mut port = start(eal, *id, pool);
        let mut burst = Burst::<64>::new();
        let mac = port.control().mac().unwrap();
        let mut queues = port.queues();
        while queues.rx[0].receive(&mut burst) > 0 {
            for mbuf in burst.drain() {
                // 02:00:00:00:00:PORT, then the port's own address.
                let header = [&[2, 0, 0, 0, 0, id.index() as u8], &mac[..]].concat();
                let original = find(&sent, mbuf.data());
                let head = original.len().min(12);
                assert_eq!(mbuf.data()[..head], header[..head]);
                assert_eq!(mbuf.data()[head..], original[head..]);
                back += 1;
            }
        }
    }
    assert_eq!(back, sent.len());
    assert_eq!(original.data(), sent[SHARED]);
    drop(original);
    assert!(pool.is_full(), "{} mbufs are missing", pool.in_use());
    forwarded
}

/// The frame with this length and these bytes after the addresses.
fn find<'f>(sent: &'f [Vec<u8>], data: &[u8]) -> &'f [u8] {
    sent.iter()
        .find(|frame| frame.len() == data.len() && frame.iter().skip(12).eq(data.iter().skip(12)))
        .expect("a frame that nobody sent")
}
