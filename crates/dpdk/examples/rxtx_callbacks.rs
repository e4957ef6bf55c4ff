// SPDX-License-Identifier: BSD-3-Clause
//! Measures how long packets stay in the program, like DPDK's `rxtx_callbacks`:
//! `rxtx_callbacks [EAL options] -- [--packets N]`
//!
//! A closure on each receive queue writes the time into a dynamic field of the packet; one on each
//! transmit queue reads it. The loop between them is not involved.
//!
//! ```text
//! $ rxtx_callbacks --no-pci --no-huge -m 128 -l 0 --vdev net_null0 -- --packets 1000000
//! 1000000 packets offered to drivers
//! latency: 48 cycles on average, 572 at most
//! ```

mod common;

use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use common::{Options, Result};
use dpdk::dynfield::DynField;
use dpdk::{Burst, Eal, Port, tsc};

/// Cycles that packets spent in the program. Written by one lcore.
#[derive(Default)]
struct Latency {
    packets: AtomicU64,
    sum: AtomicU64,
    max: AtomicU64,
}

impl Latency {
    fn record(&self, cycles: u64) {
        self.packets.fetch_add(1, Relaxed);
        self.sum.fetch_add(cycles, Relaxed);
        self.max.fetch_max(cycles, Relaxed);
    }
}

fn main() -> ExitCode {
    common::end(run())
}

fn run() -> Result<()> {
    let (eal, arguments) = Eal::init(std::env::args_os())?;
    let until = Options::new(arguments)?.until()?;
    let pool = common::pool(&eal, 1)?;
    let arrival = DynField::<u64>::register(&eal, "example_arrival_tsc")?;
    let latency = Latency::default(); // Before the ports: their queues' closures borrow it.
    let mut ports = common::start(&eal, &pool, 1)?;

    let mut queues: Vec<_> = ports.iter_mut().map(Port::queues).collect();
    for port in &mut queues {
        port.rx[0].add_callback(move |packets| {
            let now = tsc::now();
            for packet in packets.iter_mut() {
                arrival.write(packet, now);
            }
        })?;
        let latency = &latency;
        port.tx[0].add_callback(move |packets| {
            let now = tsc::now();
            for packet in packets.iter() {
                latency.record(now.saturating_sub(arrival.read(packet)));
            }
        })?;
    }
    while until.more() {
        for index in 0..queues.len() {
            let mut burst = Burst::<32>::new();
            until.count(queues[index].rx[0].receive(&mut burst));
            if !burst.is_empty() {
                let peer = common::peer(index, queues.len());
                queues[peer].tx[0].send(&mut burst);
            }
        }
    }
    drop(queues); // The closures go with their queues.

    for port in ports {
        port.stop()?;
    }
    let packets = latency.packets.load(Relaxed);
    println!("{packets} packets offered to drivers");
    if let Some(average) = latency.sum.load(Relaxed).checked_div(packets) {
        let max = latency.max.load(Relaxed);
        println!("latency: {average} cycles on average, {max} at most");
    }
    Ok(())
}
