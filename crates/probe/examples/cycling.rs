// SPDX-License-Identifier: BSD-3-Clause
//! Repeatedly starts and stops its first two ports, with one queue and with two, and from time to
//! time gives a port's slot to another device, while a worker forwards between the other two ports
//! (`tests/test_probe_lifecycle.py`).
//!
//! `cycling EAL-OPTIONS -- cycles=N`, with four ports and two lcores. It records every poll; the
//! probe must have seen the same polls.

mod support;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use dpdk::{Burst, Configured, Eal, Mempool, PoolConfig, Port, Queues};
use serde_json::json;
use support::{Books, Done, Options, await_probe, configured, malloced, tell};

/// Polls of a queue in a cycle, by the room that they offer.
const POLLS: usize = 20;
/// Cycles between two exchanges of a device.
const EXCHANGE: u64 = 5;
/// Cycles between two measurements of memory use.
const LOOK: u64 = 200;

fn main() -> Done {
    let (eal, words) = Eal::init(std::env::args_os())?;
    let cycles = Options::new(words)?.number("cycles")?;
    let pool = Mempool::packet_pool(&eal, &PoolConfig::named("packets"))?;
    let worker = *eal.workers().first().ok_or("two lcores are needed")?;
    let stop = AtomicBool::new(false);
    let theirs = Mutex::new(Books::default());
    let own = eal.scope(|scope| -> Done<_> {
        let (eal, pool) = (&eal, &pool);
        let (stop, theirs) = (Stop(&stop), &theirs);
        let asked = stop.0;
        scope.launch(worker, move || match beside(eal, pool, asked) {
            Ok(books) => theirs.lock().unwrap_or_else(|poison| poison.into_inner()).join(books),
            Err(error) => eprintln!("worker: {error}"),
        })?;
        cycle(eal, pool, cycles)
    })?;
    let theirs = theirs.into_inner().unwrap_or_else(|poison| poison.into_inner());
    tell(&json!({
        "books": [
            { "lcore": eal.main_lcore().id(), "queues": own.json() },
            { "lcore": worker.id(), "queues": theirs.json() },
        ],
    }))
}

/// Stops the worker when the cycles are over, or an error ends them.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The worker: forwards between ports 2 and 3 until it is to stop.
fn beside(eal: &Eal, pool: &Mempool<'_>, stop: &AtomicBool) -> Done<Books> {
    let mut books = Books::default();
    let mut one = configured(eal, pool, 2, 1)?.start()?;
    let mut two = configured(eal, pool, 3, 1)?.start()?;
    READY.store(true, Ordering::Release);
    // The test has seen the probe on them before it lets the cycles begin.
    while !GO.load(Ordering::Acquire) {
        std::thread::yield_now();
    }
    let (mut one, mut two) = (one.queues(), two.queues());
    while !stop.load(Ordering::Relaxed) {
        forward::<32>(&mut books, &mut one, &mut two);
        forward::<8>(&mut books, &mut two, &mut one);
    }
    Ok(books)
}

static READY: AtomicBool = AtomicBool::new(false);
static GO: AtomicBool = AtomicBool::new(false);

/// One poll of each queue, sent on the queue of the same number.
fn forward<const N: usize>(books: &mut Books, from: &mut Queues<'_>, to: &mut Queues<'_>) {
    for (rx, tx) in from.rx.iter_mut().zip(&mut to.tx) {
        let mut burst = Burst::<N>::new();
        books.receive(rx, &mut burst);
        tx.send(&mut burst);
    }
}

fn cycle<'eal>(eal: &'eal Eal, pool: &Mempool<'eal>, cycles: u64) -> Done<Books> {
    let mut books = Books::default();
    while !READY.load(Ordering::Acquire) {
        std::thread::yield_now();
    }
    let mut ports = [configured(eal, pool, 0, 1)?, configured(eal, pool, 1, 1)?];
    // The most queues that each port has had with its present device: the probe stays on those.
    let mut seen = [1, 1];
    await_probe(4)?;
    GO.store(true, Ordering::Release);
    for number in 1..=cycles {
        // A device is removed while it has fewer queues than before, and while it has as many as
        // ever.
        let queues = if matches!(number % 20, 3 | 4 | 8 | 13..=15) { 2 } else { 1 };
        if number % EXCHANGE == 0 {
            let [leaving, staying] = ports;
            ports = [exchanged(eal, pool, leaving, number)?, staying];
            seen[0] = 1;
            await_probe(seen.iter().sum::<usize>() + 2)?;
        }
        ports = reconfigured(eal, pool, ports, queues)?;
        if seen.iter().any(|had| *had < queues) {
            seen = seen.map(|had| had.max(queues));
            await_probe(seen.iter().sum::<usize>() + 2)?;
        }
        let [one, two] = ports;
        let (mut one, mut two) = (one.start()?, two.start()?);
        let mut queues = (one.queues(), two.queues());
        for _ in 0..POLLS {
            forward::<32>(&mut books, &mut queues.0, &mut queues.1);
            forward::<7>(&mut books, &mut queues.1, &mut queues.0);
            forward::<64>(&mut books, &mut queues.0, &mut queues.1);
        }
        drop(queues);
        ports = [one.stop()?, two.stop()?];
        if number % LOOK == 0 {
            tell(&json!({ "cycle": number, "malloced": malloced() }))?;
        }
    }
    Ok(books)
}

fn reconfigured<'eal>(
    eal: &'eal Eal,
    pool: &Mempool<'eal>,
    ports: [Port<'eal, Configured>; 2],
    queues: usize,
) -> Done<[Port<'eal, Configured>; 2]> {
    drop(ports);
    Ok([configured(eal, pool, 0, queues)?, configured(eal, pool, 1, queues)?])
}

/// Removes a port's device and puts another into its slot: one that receives, or one that does not.
fn exchanged<'eal>(
    eal: &'eal Eal,
    pool: &Mempool<'eal>,
    port: Port<'eal, Configured>,
    number: u64,
) -> Done<Port<'eal, Configured>> {
    let slot = port.id();
    eal.detach(port.unconfigure())?;
    let device = ["net_null7,size=64", "net_null8,no-rx=1"][usize::from(number % 2 == 0)];
    if eal.attach(device)? != [slot] {
        return Err(format!("{device} is not in slot {slot}").into());
    }
    configured(eal, pool, slot.index(), 1)
}
