// SPDX-License-Identifier: BSD-3-Clause
//! From configuration to configuration: deals ports out to the lcores and has them work.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use dpdk::{Eal, LaunchError, Lcore, RxQueue, TxQueue};
use packet::writer::FrameWriter;
use tokio::sync::oneshot;

use super::layout::{Queue, Share};
use super::link::{Link, RxLane, TxLane};
use super::receiver::{Expectations, Receiver};
use super::sender::Sender;
use super::source::FrameSource;
use super::worker::{Command, Ends, Worker};
use super::{FlowSetup, Settings};
use crate::books::Books;
use crate::mailbox::Mailbox;

/// A port of the next configuration.
pub enum Source<'eal> {
    /// The port that has this index now.
    Keep(usize),
    /// Another.
    New(Link<'eal>),
}

/// The next configuration.
pub struct Load<'eal> {
    /// How frames leave from now on.
    pub settings: Settings,
    /// Its ports, in order.
    pub ports: Vec<Source<'eal>>,
    /// The work of each lcore.
    pub work: Vec<Work>,
    /// Its flows as receivers see them.
    pub expected: Expectations,
    /// Its books.
    pub books: Arc<Books>,
    /// Gets the ports that are not kept, when the engine has let go of them.
    pub done: oneshot::Sender<Vec<Link<'eal>>>,
}

/// What an lcore is to do.
#[derive(Clone, Debug, Default)]
pub struct Work {
    /// Its queues.
    pub share: Share,
    /// The flows that it sends.
    pub flows: Vec<FlowSetup>,
    /// Which of the receiving threads it is, if it is one.
    pub receiver: Option<usize>,
}

/// Where the control plane leaves what it wants.
pub struct Desk<'eal> {
    /// Orders for each lcore.
    pub orders: Box<[Mailbox<Command>]>,
    loads: Mailbox<Load<'eal>>,
    reload: AtomicBool,
    transmitting: Box<[AtomicBool]>,
}

impl<'eal> Desk<'eal> {
    /// A desk for so many lcores.
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

/// Works until `stop`, on the main lcore (the caller's thread) and all others. The ports that are left
/// are stopped on return.
///
/// # Errors
/// [`LaunchError`] when an lcore cannot be started.
pub fn run<'eal>(
    eal: &'eal Eal,
    settings: Settings,
    desk: &Desk<'eal>,
    stop: &AtomicBool,
) -> Result<(), LaunchError> {
    let mut settings = settings;
    let lcores = eal.workers();
    let mut ports: Vec<Link<'eal>> = Vec::new();
    let mut work: Vec<Work> = vec![Work::default(); lcores.len() + 1];
    let (mut expected, mut books) = (Expectations::default(), Arc::<Books>::default());
    while !stop.load(Ordering::Relaxed) {
        let mut queues: Vec<Open<'_, 'eal>> = ports.iter_mut().map(Open::new).collect();
        let senders = senders_of(&work, queues.len());
        let nothing = Expectations::default();
        let workers: Vec<_> = work
            .drain(..)
            .zip(&desk.orders)
            .enumerate()
            .map(|(number, (work, orders))| {
                let receives: Vec<Queue> = work.share.receives.clone();
                let rx = receives.iter().filter_map(|queue| queues.get_mut(queue.port)?.rx(*queue));
                let rx: Vec<RxLane<'_>> = rx.collect();
                let tx = work.share.sends.iter().enumerate().filter_map(|(lane, queue)| {
                    queues.get_mut(queue.port)?.tx(*queue, &writers(&work.flows, lane))
                });
                let tx: Vec<TxLane<'_, 'eal>> = tx.collect();
                Worker {
                    number,
                    receiver: Receiver::new(
                        &settings,
                        if work.receiver.is_some() { &expected } else { &nothing },
                        receives.iter().map(|queue| queue.port).collect(),
                        books.clone(),
                        // One that is no receiver polls nothing.
                        work.receiver.unwrap_or(usize::MAX),
                    ),
                    sender: Sender::new(
                        settings,
                        work.flows,
                        whole_ports(&work.share, &senders),
                        books.clone(),
                    ),
                    receives: rx,
                    sends: tx,
                    orders,
                    settings,
                }
            })
            .collect();
        let ends = Ends { stop, reload: &desk.reload, transmitting: &desk.transmitting };
        work_together(eal, &lcores, workers, &ends)?;
        drop(queues);
        desk.reload.store(false, Ordering::Relaxed);
        let Some(load) = desk.loads.take() else {
            work = vec![Work::default(); lcores.len() + 1];
            continue;
        };
        for flow in &books.tx {
            flow.set_state(crate::books::State::Stopped);
        }
        let mut old: Vec<Option<Link<'eal>>> = ports.into_iter().map(Some).collect();
        let take = |source| match source {
            Source::Keep(index) => old.get_mut(index).and_then(Option::take),
            Source::New(link) => Some(link),
        };
        ports = load.ports.into_iter().filter_map(take).collect();
        (work, expected, books) = (load.work, load.expected, load.books);
        settings = load.settings;
        // A client that has gone does not wait for its answer; the ports are then stopped here.
        let _ = load.done.send(old.into_iter().flatten().collect());
    }
    Ok(())
}

/// Has all lcores work until the end.
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
                // Those that run already end with the program.
                ends.stop.store(true, Ordering::Relaxed);
            })?;
        }
        first.work(ends);
        Ok(())
    })
}

/// How many queues each port is sent on.
fn senders_of(work: &[Work], ports: usize) -> Vec<usize> {
    let mut senders = vec![0; ports];
    for queue in work.iter().flat_map(|work| &work.share.sends) {
        if let Some(senders) = senders.get_mut(queue.port) {
            *senders += 1;
        }
    }
    senders
}

/// Of each queue of a share the port, if it is the port's only one.
fn whole_ports(share: &Share, senders: &[usize]) -> Vec<Option<usize>> {
    let only = |queue: &Queue| (senders.get(queue.port) == Some(&1)).then_some(queue.port);
    share.sends.iter().map(only).collect()
}

/// The writers of the flows that are sent on a lane.
fn writers(flows: &[FlowSetup], lane: usize) -> Vec<Option<&FrameWriter>> {
    let own = flows.iter().filter(|flow| flow.lane == lane);
    own.map(|flow| match &flow.source {
        FrameSource::Writer(writer) => Some(&**writer),
        FrameSource::Player { .. } => None,
    })
    .collect()
}

/// The queues of a port that are not given out yet.
struct Open<'port, 'eal> {
    rx: Vec<Option<RxQueue<'port>>>,
    tx: Vec<Option<TxQueue<'port>>>,
    pools: &'port [dpdk::Mempool<'eal>],
}

impl<'port, 'eal> Open<'port, 'eal> {
    fn new(link: &'port mut Link<'eal>) -> Self {
        let queues = link.port.queues();
        Open {
            rx: queues.rx.into_iter().map(Some).collect(),
            tx: queues.tx.into_iter().map(Some).collect(),
            pools: &link.tx_pools,
        }
    }

    fn rx(&mut self, queue: Queue) -> Option<RxLane<'port>> {
        self.rx.get_mut(usize::from(queue.queue))?.take().map(RxLane::new)
    }

    fn tx(
        &mut self,
        queue: Queue,
        writers: &[Option<&FrameWriter>],
    ) -> Option<TxLane<'port, 'eal>> {
        let number = usize::from(queue.queue);
        let pool = *self.pools.get(number)?;
        Some(TxLane::new(self.tx.get_mut(number)?.take()?, pool, writers))
    }
}
