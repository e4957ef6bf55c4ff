// SPDX-License-Identifier: BSD-3-Clause
//! The loop of an lcore: receives, sends, checks for orders, and rests when idle.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use measure::clock;
use tokio::sync::oneshot;

use super::io::{Receive, Transmit};
use super::sender::{Change, NewWriter};
use super::station::Station;
use super::watch::Watch;
use crate::capture::Tap;
use crate::mailbox::Mailbox;
use crate::neighbors::Ear;

/// How long it rests between two polls. The ports' rings have to hold what arrives in this time:
/// foreign frames, and those that were on their way for longer than the idle time before it.
const REST: Duration = Duration::from_micros(500);

/// An order of the control plane to an lcore. Flows are indices into the configuration; those that
/// do not belong to the lcore are ignored.
///
/// An lcore does not create or drop objects and clears no histogram: the caller brings new objects
/// in the order, and gets it back with those that were replaced. The control plane clears the books
/// of flows that are to start again between [`Order::Forget`] and [`Order::Expect`], while nothing
/// else writes to them.
#[derive(Debug)]
pub enum Order {
    /// Stop these flows, and do not touch their books.
    Forget(Arc<[usize]>),
    /// Expect a new run of these flows, which were forgotten and whose books are empty.
    Expect {
        /// The flows.
        flows: Arc<[usize]>,
        /// Number of the run.
        run: u8,
        /// True if nothing else is sending: then the counters of ports are cleared.
        from_rest: bool,
    },
    /// Start these flows, which were forgotten and whose books are empty.
    Start {
        /// The flows.
        flows: Arc<[usize]>,
        /// Number of the run.
        run: u8,
        /// When to start, in TSC cycles; `None` for now.
        at: Option<u64>,
    },
    /// Stop these flows.
    Stop(Arc<[usize]>),
    /// Pause these flows.
    Pause(Arc<[usize]>),
    /// Resume these flows.
    Resume(Arc<[usize]>),
    /// Change rates and sizes.
    Change(Vec<Change>),
    /// Have these flows, which were forgotten, write their frames by other writers, which differ only in header fields.
    Rewrite(Vec<NewWriter>),
    /// Set the tap of the lcore's n-th receive queue, or remove it. Afterwards, the previous one.
    Tap(usize, Option<Box<Tap>>),
    /// Set the ear of the lcore's n-th receive queue, or remove it. Afterwards, the previous one.
    Ear(usize, Option<Box<Ear>>),
    /// Send these frames, which belong to no flow, on the lcore's n-th transmit queue.
    Emit(usize, Vec<Vec<u8>>),
}

/// An order, and where to report that it is done.
#[derive(Debug)]
pub struct Command {
    /// The order.
    pub order: Order,
    /// Receives the order when it is done.
    pub done: oneshot::Sender<Order>,
}

/// What ends the loops of all lcores.
#[derive(Debug)]
pub(super) struct Ends<'a> {
    /// The program ends.
    pub stop: &'a AtomicBool,
    /// There is another configuration.
    pub reload: &'a AtomicBool,
    /// Whether each lcore is sending: while any one is, none rests.
    pub transmitting: &'a [AtomicBool],
}

impl Ends<'_> {
    fn is_here(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.reload.load(Ordering::Relaxed)
    }

    fn anybody_transmits(&self) -> bool {
        self.transmitting.iter().any(|one| one.load(Ordering::Relaxed))
    }
}

/// An lcore's flows, queues and orders.
pub(super) struct Worker<'a, R, T> {
    pub number: usize,
    pub station: &'a mut Station,
    pub receives: Vec<R>,
    pub sends: Vec<T>,
    pub orders: &'a Mailbox<Command>,
}

impl<R: Receive, T: Transmit> Worker<'_, R, T> {
    /// Polls until the end.
    pub fn work(mut self, ends: &Ends<'_>) {
        let watch = Watch::new(self.station.settings.late_after);
        // When the present idle time began; 0 while there is work.
        let mut quiet_since = 0;
        while !ends.is_here() {
            let mut busy = false;
            if let Some(mut command) = self.orders.take() {
                self.obey(&mut command.order);
                self.publish(ends);
                // Only at the end of the program nobody waits for it.
                let _ = command.done.send(command.order);
                busy = true;
            }
            busy |= self.station.receiver.drain(&mut self.receives, clock::now, &watch);
            busy |= self.station.sender.transmit(&mut self.sends, || watch.see(clock::now()));
            if busy {
                quiet_since = 0;
                continue;
            }
            if quiet_since == 0 {
                self.publish(ends);
                quiet_since = watch.see(clock::now());
            } else {
                self.rest(watch.see(clock::now()).saturating_sub(quiet_since), &watch, ends);
            }
        }
    }

    /// Rests a little after enough idle time: 10 ms, or a second while stamped frames may still be
    /// on their way. Unnecessary polls are also a risk, because some drivers crash when a peer
    /// leaves while they are polled.
    fn rest(&self, quiet: u64, watch: &Watch, ends: &Ends<'_>) {
        let hz = self.station.settings.hz;
        if quiet > hz / 100
            && !ends.anybody_transmits()
            && (quiet > hz || !self.station.receiver.expects_stamps())
        {
            thread::sleep(REST);
            watch.rest();
        }
    }

    fn publish(&self, ends: &Ends<'_>) {
        if let Some(own) = ends.transmitting.get(self.number) {
            own.store(self.station.sender.is_transmitting(), Ordering::Relaxed);
        }
    }

    fn obey(&mut self, order: &mut Order) {
        let now = clock::now();
        let Station { receiver, sender, .. } = &mut *self.station;
        match order {
            Order::Forget(flows) => {
                sender.forget(flows, now);
                receiver.forget(flows);
            }
            Order::Expect { flows, run, from_rest } => receiver.expect(flows, *run, *from_rest),
            Order::Start { flows, run, at } => sender.start(flows, *run, at.unwrap_or(now)),
            Order::Stop(flows) => sender.stop(flows, now),
            Order::Pause(flows) => sender.pause(flows, now),
            Order::Resume(flows) => sender.resume(flows, now),
            Order::Change(changes) => {
                if changes.iter().any(|change| change.writer.is_some()) {
                    self.sends.iter_mut().for_each(Transmit::forget_resident);
                }
                sender.change(changes, now);
            }
            Order::Rewrite(writers) => sender.rewrite(writers),
            Order::Tap(lane, tap) => receiver.swap_tap(*lane, tap),
            Order::Ear(lane, ear) => receiver.swap_ear(*lane, ear),
            Order::Emit(lane, frames) => {
                if let Some(queue) = self.sends.get_mut(*lane) {
                    // What is lost is asked for again.
                    frames.iter().for_each(|frame| _ = queue.emit(frame));
                }
            }
        }
    }
}
