// SPDX-License-Identifier: BSD-3-Clause
//! A forwarder with its own telemetry commands: `telemetry [EAL options] -- [--packets N]`
//!
//! On the process's telemetry socket, `/example/packets` returns packets by port,
//! `/example/packets,PORT` those of one port. `dpdk-telemetry.py` can ask for them, and for all of
//! DPDK's own commands (`/ethdev/stats,0`). Ports are forwarded in pairs; a single port echoes.
//!
//! ```text
//! $ telemetry --no-pci --no-huge -m 128 -l 0 --vdev net_null0 &
//! $ echo /example/packets,0 | dpdk-telemetry.py
//! {"/example/packets": {"received": 175811456, "sent": 175811456}}
//! $ kill %1
//! port 0: 175842784 received, 175842784 sent
//! ```

mod common;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use common::{Options, Result};
use dpdk::telemetry::Value;
use dpdk::{Burst, Eal, Port};

/// The counters of one port. The lcore writes, DPDK's telemetry threads read.
#[derive(Default)]
#[repr(align(64))] // A line of its own: readers disturb no other port.
struct Counts {
    received: AtomicU64,
    sent: AtomicU64,
}

impl Counts {
    fn value(&self) -> Value {
        let figures = [("received", &self.received), ("sent", &self.sent)];
        Value::dict(figures.map(|(name, count)| (name, count.load(Relaxed).into())))
    }
}

/// There is one writer, so a load and a store suffice; an atomic addition costs some 20 cycles.
fn add(count: &AtomicU64, packets: usize) {
    count.store(count.load(Relaxed) + packets as u64, Relaxed);
}

fn main() -> ExitCode {
    common::end(run())
}

fn run() -> Result<()> {
    let (eal, arguments) = Eal::init(std::env::args_os())?;
    let until = Options::new(arguments)?.until()?;
    let pool = common::pool(&eal, 1)?;
    let mut ports = common::start(&eal, &pool, 1)?;
    // A handler lives as long as the process, so it shares ownership of the counters.
    let counts: Arc<[Counts]> = ports.iter().map(|_| Counts::default()).collect();
    let shared = Arc::clone(&counts);
    let help = "Packets by port; parameter: a port (an index), or none for all";
    eal.telemetry().register("/example/packets", help, move |port| match port {
        "" => Some(Value::List(shared.iter().map(Counts::value).collect())),
        port => shared.get(port.parse::<usize>().ok()?).map(Counts::value),
    })?;

    let mut queues: Vec<_> = ports.iter_mut().map(Port::queues).collect();
    while until.more() {
        for index in 0..queues.len() {
            let mut burst = Burst::<32>::new();
            let received = queues[index].rx[0].receive(&mut burst);
            if received > 0 {
                until.count(received);
                add(&counts[index].received, received);
                let peer = common::peer(index, queues.len());
                add(&counts[peer].sent, queues[peer].tx[0].send(&mut burst));
            }
        }
    }
    drop(queues);

    for (port, counts) in ports.into_iter().zip(counts.iter()) {
        let (received, sent) = (counts.received.load(Relaxed), counts.sent.load(Relaxed));
        println!("port {}: {received} received, {sent} sent", port.id().index());
        port.stop()?;
    }
    Ok(())
}
