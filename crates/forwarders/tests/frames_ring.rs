// SPDX-License-Identifier: BSD-3-Clause
//! Our l2fwd over ring ports, in this process: the same bytes that the C l2fwd sends, in the same
//! order, and every pool whole at the end.
//!
//! A ring port gives back what is sent to it. Frames put into port 0's ring go round: to port 1 with
//! its addresses, back to port 0 with that one's. When l2fwd has stopped, each frame is in the ring of
//! the port that sent it last.
#![allow(clippy::unwrap_used, clippy::expect_used)] // A test may.

mod support;

use std::thread;

use dpdk::{Burst, Eal, Mempool, Port, PortConfig, PortId, RxConfig, Started, TxConfig};
use forwarders::l2fwd::{self, Options};
use forwarders::stop::Stop;
use support::{frames, wait_until};

#[test]
fn frames_go_round_unharmed() {
    let _cleanup = support::Cleanup;
    let eal = support::eal(&["net_ring0", "net_ring1"]);
    let pool = l2fwd::packet_pool(&eal).unwrap();
    for burst_forwarding in [false, true] {
        round(&eal, &pool, burst_forwarding);
    }
}

fn start<'eal>(eal: &'eal Eal, id: PortId, pool: &Mempool<'eal>) -> Port<'eal, Started> {
    let config = PortConfig {
        rx: vec![RxConfig::new(pool)],
        tx: vec![TxConfig::default()],
        ..PortConfig::default()
    };
    eal.take_port(id).unwrap().configure(&config).unwrap().start().unwrap()
}

fn round<'eal>(eal: &'eal Eal, pool: &Mempool<'eal>, burst_forwarding: bool) {
    let ids = eal.ports();
    let sent = frames();
    {
        let mut port = start(eal, ids[0], pool);
        let mut burst = Burst::<500>::new();
        pool.fill(&mut burst, sent.len()).unwrap();
        for (mbuf, frame) in burst.iter_mut().zip(&sent) {
            mbuf.resize(frame.len()).unwrap().copy_from_slice(frame);
        }
        assert_eq!(port.queues().tx[0].send(&mut burst), sent.len());
    }

    let controls: Vec<_> = ids.iter().map(|id| eal.take_port(*id).unwrap().control()).collect();
    let received = || controls.iter().map(|port| port.stats().unwrap().ipackets).sum::<u64>();
    let before = received();
    // The main lcore forwards; another thread stops it when every frame has gone round a few times.
    let stop = Stop::on_signals().unwrap();
    let options = Options {
        port_mask: 3,
        ports_per_lcore: 2,
        period: 0,
        burst_forwarding,
        ..Options::default()
    };
    thread::scope(|threads| {
        threads.spawn(|| {
            wait_until("packets", || received() > before + 10 * sent.len() as u64);
            stop.raise();
        });
        l2fwd::run(eal, pool, &options, &stop).unwrap();
    });

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
    assert!(pool.is_full(), "{} mbufs are missing", pool.in_use());
}

/// The frame whose length and bytes behind the addresses these are.
fn find<'f>(sent: &'f [Vec<u8>], data: &[u8]) -> &'f [u8] {
    sent.iter()
        .find(|frame| frame.len() == data.len() && frame.iter().skip(12).eq(data.iter().skip(12)))
        .expect("a frame that nobody sent")
}
