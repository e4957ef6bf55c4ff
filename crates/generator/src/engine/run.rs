// SPDX-License-Identifier: BSD-3-Clause
//! Runs one configuration after another: distributes ports over the lcores and starts their work.

use std::sync::atomic::{AtomicBool, Ordering};

use dpdk::{Eal, LaunchError, Lcore, RxQueue, TxQueue};
use packet::writer::FrameWriter;
use tokio::sync::oneshot;

use super::Settings;
use super::layout::Queue;
use super::link::{Link, RxLane, TxLane};
use super::station::Station;
use super::worker::{Command, Ends, Worker};
use crate::mailbox::Mailbox;

/// A port of the next configuration.
pub enum Source<'eal> {
    /// The port that now has this index.
    Keep(usize),
    /// A new port.
    New(Box<Link<'eal>>),
}

/// The next configuration.
pub struct Load<'eal> {
    /// Its ports, in order.
    pub ports: Vec<Source<'eal>>,
    /// What each lcore works with.
    pub stations: Vec<Station>,
    /// Receives what belonged to the previous configuration, after the engine has released it.
    pub done: oneshot::Sender<GivenUp<'eal>>,
}

/// What the engine does not need any more, for others to close and drop.
pub struct GivenUp<'eal> {
    /// The ports that are not kept.
    pub ports: Vec<Link<'eal>>,
    /// What the lcores worked with.
    pub stations: Vec<Station>,
}

/// Where the control plane leaves orders and configurations.
pub struct Desk<'eal> {
    /// Orders for each lcore.
    pub orders: Box<[Mailbox<Command>]>,
    loads: Mailbox<Load<'eal>>,
    reload: AtomicBool,
    transmitting: Box<[AtomicBool]>,
}

impl<'eal> Desk<'eal> {
    /// A desk for that many lcores.
    pub fn new(lcores: usize) -> Self {
        Desk {
            orders: std::iter::repeat_with(Mailbox::default).take(lcores).collect(),
            loads: Mailbox::default(),
            reload: AtomicBool::new(false),
            transmitting: std::iter::repeat_with(AtomicBool::default).take(lcores).collect(),
        }
    }

    /// Leaves the next configuration.
    pub fn load(&self, load: Load<'eal>) {
        self.loads.post(load);
        self.reload.store(true, Ordering::Release);
    }
}

/// Runs until `stop`, on the main lcore (the caller's thread) and all others. The remaining ports
/// are stopped on return.
///
/// # Errors
/// [`LaunchError`] if an lcore cannot be started.
pub fn run<'eal>(
    eal: &'eal Eal,
    settings: Settings,
    desk: &Desk<'eal>,
    stop: &AtomicBool,
) -> Result<(), LaunchError> {
    let lcores = eal.workers();
    let mut ports: Vec<Link<'eal>> = Vec::new();
    let mut stations = Station::idle(settings, lcores.len() + 1);
    while !stop.load(Ordering::Relaxed) {
        let mut queues: Vec<Open<'_, 'eal>> = ports.iter_mut().map(Open::new).collect();
        let workers: Vec<_> = stations
            .iter_mut()
            .zip(&desk.orders)
            .enumerate()
            .map(|(number, (station, orders))| {
                let receives = station.share.receives.iter();
                let rx: Vec<RxLane<'_>> =
                    receives.filter_map(|queue| queues.get_mut(queue.port)?.rx(*queue)).collect();
                let sends = station.share.sends.iter().enumerate();
                let tx: Vec<TxLane<'_, 'eal>> = sends
                    .filter_map(|(lane, queue)| {
                        queues.get_mut(queue.port)?.tx(*queue, station.still(lane))
                    })
                    .collect();
                Worker { number, station, receives: rx, sends: tx, orders }
            })
            .collect();
        let ends = Ends { stop, reload: &desk.reload, transmitting: &desk.transmitting };
        work_together(eal, &lcores, workers, &ends)?;
        drop(queues);
        desk.reload.store(false, Ordering::Relaxed);
        let Some(load) = desk.loads.take() else { continue };
        let mut old: Vec<Option<Link<'eal>>> = ports.into_iter().map(Some).collect();
        let take = |source| match source {
            Source::Keep(index) => old.get_mut(index).and_then(Option::take),
            Source::New(link) => Some(*link),
        };
        ports = load.ports.into_iter().filter_map(take).collect();
        let given_up = GivenUp {
            stations: std::mem::replace(&mut stations, load.stations),
            ports: old.into_iter().flatten().collect(),
        };
        // At the end nobody waits for it; the ports are then stopped here.
        let _ = load.done.send(given_up);
    }
    Ok(())
}

/// Runs all lcores until the end.
fn work_together<'a, 'port, 'eal>(
    eal: &Eal,
    lcores: &[Lcore],
    workers: Vec<Worker<'a, RxLane<'port>, TxLane<'port, 'eal>>>,
    ends: &'a Ends<'a>,
) -> Result<(), LaunchError> {
    let mut workers = workers.into_iter();
    let Some(first) = workers.next() else { return Ok(()) };
    eal.scope(|scope| {
        for (lcore, worker) in lcores.iter().zip(workers) {
            scope.launch(*lcore, move || worker.work(ends)).inspect_err(|_| {
                // Ends those that are already running.
                ends.stop.store(true, Ordering::Relaxed);
            })?;
        }
        first.work(ends);
        Ok(())
    })
}

/// The queues of a port that are not assigned yet.
struct Open<'port, 'eal> {
    rx: Vec<Option<RxQueue<'port>>>,
    tx: Vec<Option<TxQueue<'port>>>,
    pools: &'port [dpdk::Mempool<'eal>],
    spare_pool: dpdk::Mempool<'eal>,
}

impl<'port, 'eal> Open<'port, 'eal> {
    fn new(link: &'port mut Link<'eal>) -> Self {
        let queues = link.port.queues();
        Open {
            rx: queues.rx.into_iter().map(Some).collect(),
            tx: queues.tx.into_iter().map(Some).collect(),
            pools: &link.tx_pools,
            spare_pool: link.spare_pool,
        }
    }

    fn rx(&mut self, queue: Queue) -> Option<RxLane<'port>> {
        self.rx.get_mut(usize::from(queue.queue))?.take().map(RxLane::new)
    }

    fn tx(&mut self, queue: Queue, writer: Option<&FrameWriter>) -> Option<TxLane<'port, 'eal>> {
        let number = usize::from(queue.queue);
        let pool = *self.pools.get(number)?;
        Some(TxLane::new(self.tx.get_mut(number)?.take()?, pool, self.spare_pool, writer))
    }
}
