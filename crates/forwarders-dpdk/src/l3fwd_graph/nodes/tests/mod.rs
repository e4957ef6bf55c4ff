// SPDX-License-Identifier: BSD-3-Clause
//! Tests each node alone, on both executors: its input, the edge of each packet, and the packets'
//! contents then.

mod alone;
mod classify;
mod discard;
mod filter;
mod frames;
mod lookup;
mod receive;
mod rewrite;
mod transmit;

use dpdk::{Eal, Mempool, PoolConfig};

use alone::Bench;

/// All in one test, because there is one Eal per process.
#[test]
fn nodes_alone() {
    let cpu = host::allowed_cpus().first().unwrap().to_string();
    let arguments = format!(
        "test -l {cpu} --no-pci --no-huge --no-shconf -m 512 --file-prefix linerate-nodes-{} \
         --vdev net_ring0 --vdev net_ring1 --vdev net_ring2",
        std::process::id()
    );
    let (eal, _) = Eal::init(arguments.split(' ')).unwrap();
    let pool = Mempool::packet_pool(&eal, &PoolConfig::named("nodes")).unwrap();
    let bench = Bench { eal: &eal, pool };
    for node in [
        classify::alone,
        lookup::of_ipv4,
        lookup::of_ipv6,
        rewrite::of_ipv4,
        rewrite::of_ipv6,
        discard::alone,
        receive::alone,
        transmit::alone,
        filter::alone,
    ] {
        node(bench);
        assert!(bench.pool.is_full(), "{} mbufs are missing", bench.pool.in_use());
    }
}
