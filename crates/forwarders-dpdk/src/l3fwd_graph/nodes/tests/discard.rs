// SPDX-License-Identifier: BSD-3-Clause
//! Discard: all packets are dropped and counted.

use super::alone::{Bench, CAME, EXECUTORS, Feed, SIZES, run};
use super::frames::Ip4;
use crate::l3fwd_graph::nodes::Discard;

graph::topology! {
    struct Alone<'port> for dpdk::Mbuf<'port> {
        source discard_left: Feed<'port> => { Packets => discard },
        source discard_right: Feed<'port> => { Packets => discard },
        node discard: Discard,
    }
}

pub fn alone(bench: Bench<'_>) {
    let frame = Ip4::to([198, 18, 0, 1]).frame();
    for executor in EXECUTORS {
        for size in SIZES {
            let packets = (0..size).map(|_| bench.packet(&frame, CAME)).collect();
            let (seen, stats) = run(bench.eal, executor, packets, |[left, right], _| Alone {
                discard_left: left,
                discard_right: right,
                discard: Discard,
            });
            assert!(seen.is_empty());
            assert_eq!(stats.dropped, size as u64);
        }
    }
}
