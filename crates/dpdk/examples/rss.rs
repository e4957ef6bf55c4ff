// SPDX-License-Identifier: BSD-3-Clause
//! Spreads each port's flows over all lcores: `rss [EAL options] -- [--packets N]`
//!
//! Each port gets as many queues as there are lcores, or as the device supports, and each lcore
//! polls one queue of each port. The device chooses the queue by a hash of a packet's addresses and
//! ports (RSS), so that a flow stays on its lcore. Packets leave on the port on which they came,
//! with the addresses swapped.
//!
//! ```text
//! $ rss --no-pci --no-huge -m 128 -l 0,1 --vdev net_null0 -- --packets 1000000 # which has no flows: who polls more gets more
//! lcore 0: port 0 queue 0: 834688 received, 834688 sent
//! lcore 1: port 0 queue 1: 165312 received, 165312 sent
//! ```

mod common;

use std::process::ExitCode;
use std::sync::Mutex;

use common::{Options, Result, Until};
use dpdk::{Burst, Eal, Lcore, RxQueue, TxQueue};
use packet::ethernet::Ethernet;

/// A receive and a transmit queue of one port, and their counters.
struct Lane<'port> {
    rx: RxQueue<'port>,
    tx: TxQueue<'port>,
    received: u64,
    sent: u64,
}

/// Polls an lcore's lanes until the end.
fn poll(lanes: &mut [Lane<'_>], until: &Until) {
    while until.more() {
        for lane in lanes.iter_mut() {
            let mut burst = Burst::<32>::new();
            let received = lane.rx.receive(&mut burst);
            until.count(received);
            lane.received += received as u64;
            for packet in burst.iter_mut() {
                let frame = packet.data_mut().map(Ethernet::split_mut);
                if let Some(Ok((ethernet, _))) = frame {
                    ethernet.swap_addresses();
                }
            }
            if received > 0 {
                lane.sent += lane.tx.send(&mut burst) as u64;
            }
        }
    }
}

fn main() -> ExitCode {
    common::end(run())
}

fn run() -> Result<()> {
    let (eal, arguments) = Eal::init(std::env::args_os())?;
    let until = Options::new(arguments)?.until()?;
    let lcores = eal.lcores();
    let pool = common::pool(&eal, lcores.len())?;
    let mut ports = common::start(&eal, &pool, lcores.len())?;

    // Queue 0 of each port goes to the first lcore, queue 1 to the next, ...
    let mut jobs: Vec<(Lcore, Vec<Lane<'_>>)> = lcores.iter().map(|&l| (l, Vec::new())).collect();
    for port in &mut ports {
        for (job, (rx, tx)) in jobs.iter_mut().zip(port.queues().pairs()) {
            job.1.push(Lane { rx, tx, received: 0, sent: 0 });
        }
    }

    let done = Mutex::new(Vec::new());
    eal.scope(|scope| -> Result<()> {
        let mut own = None;
        for (lcore, mut lanes) in jobs {
            let (until, done) = (&until, &done);
            let work = move || {
                poll(&mut lanes, until);
                let counts: Vec<_> =
                    lanes.iter().map(|l| (l.rx.port(), l.rx.queue(), l.received, l.sent)).collect();
                done.lock().unwrap_or_else(|poison| poison.into_inner()).push((lcore, counts));
            };
            if lcore == eal.main_lcore() {
                own = Some(work); // This lcore is the one that launches: its own work comes last.
            } else {
                scope.launch(lcore, work).inspect_err(|_| until.end())?;
            }
        }
        own.into_iter().for_each(|mut work| work());
        Ok(()) // The end of the scope waits for the others.
    })?;

    let mut done = done.into_inner().unwrap_or_else(|poison| poison.into_inner());
    done.sort_by_key(|(lcore, _)| *lcore);
    for (lcore, lanes) in done {
        for (port, queue, received, sent) in lanes {
            let lcore = lcore.id();
            println!("lcore {lcore}: port {port} queue {queue}: {received} received, {sent} sent");
        }
    }
    for port in ports {
        port.stop()?;
    }
    Ok(())
}
