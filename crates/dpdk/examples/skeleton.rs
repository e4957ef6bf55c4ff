// SPDX-License-Identifier: BSD-3-Clause
//! The simplest forwarder, like DPDK's `skeleton`: `skeleton [EAL options] -- [--packets N]`
//!
//! Ports are forwarded in pairs: packets received on one leave on the other. A single port echoes.
//!
//! ```text
//! $ skeleton --no-pci --no-huge -m 128 -l 0 --vdev net_null0 -- --packets 1000000
//! port 0: 1000000 received, 1000000 sent
//! ```

mod common;

use std::process::ExitCode;

use common::{Options, Result};
use dpdk::{Burst, Eal, Port};

fn main() -> ExitCode {
    common::end(run())
}

fn run() -> Result<()> {
    let (eal, arguments) = Eal::init(std::env::args_os())?;
    let until = Options::new(arguments)?.until()?;
    let pool = common::pool(&eal, 1)?;
    let mut ports = common::start(&eal, &pool, 1)?;

    let mut queues: Vec<_> = ports.iter_mut().map(Port::queues).collect();
    let mut counts = vec![(0, 0); queues.len()];
    while until.more() {
        for index in 0..queues.len() {
            let mut burst = Burst::<32>::new();
            let received = queues[index].rx[0].receive(&mut burst);
            if received == 0 {
                continue;
            }
            until.count(received);
            counts[index].0 += received;
            let peer = common::peer(index, queues.len());
            counts[peer].1 += queues[peer].tx[0].send(&mut burst);
            // Packets that the driver did not accept are freed here, with the burst.
        }
    }
    drop(queues); // The compiler wants it: no queue outlives its port's start.

    for (port, (received, sent)) in ports.into_iter().zip(counts) {
        println!("port {}: {received} received, {sent} sent", port.id().index());
        port.stop()?;
    }
    Ok(())
}
