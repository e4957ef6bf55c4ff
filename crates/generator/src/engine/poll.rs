// SPDX-License-Identifier: BSD-3-Clause
//! The loop of the engine's lcore: polls, looks for commands, and rests when nothing moves.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use dpdk::tsc;
use tokio::sync::oneshot;

use super::link::{Link, Queues};
use super::{Engine, FlowSetup, Settings};
use crate::books::Books;
use crate::mailbox::Mailbox;

/// How long nothing must move before the engine rests, in parts of a second.
const QUIET_PARTS: u64 = 100;
/// How long it rests between two looks. Nothing of ours can be under way then, so the ports' rings
/// only have to hold what strangers send in this time.
const REST: Duration = Duration::from_micros(500);

/// What the control plane wants of the engine.
pub enum Command<'eal> {
    /// Replace ports and flows.
    Load(Load<'eal>),
    /// Start flows.
    Start(Vec<usize>, oneshot::Sender<()>),
    /// Stop flows.
    Stop(Vec<usize>, oneshot::Sender<()>),
}

/// A port of the next configuration.
pub enum Source<'eal> {
    /// The port that has this index now.
    Keep(usize),
    /// Another.
    New(Link<'eal>),
}

/// The next configuration.
pub struct Load<'eal> {
    /// Its ports, in order.
    pub ports: Vec<Source<'eal>>,
    /// Its flows, in order.
    pub flows: Vec<FlowSetup>,
    /// Its books.
    pub books: Arc<Books>,
    /// Gets the ports that are not kept, when the engine has let go of them.
    pub done: oneshot::Sender<Vec<Link<'eal>>>,
}

/// Polls until `stop`. The ports that are left are stopped on return.
pub fn run<'eal>(settings: Settings, mailbox: &Mailbox<Command<'eal>>, stop: &AtomicBool) {
    let mut engine = Engine::new(settings);
    let mut ports: Vec<Link<'eal>> = Vec::new();
    let mut lens: Vec<Option<usize>> = Vec::new();
    loop {
        let mut queues: Vec<Queues<'_, 'eal>> =
            ports.iter_mut().zip(&lens).filter_map(|(port, len)| port.open(*len)).collect();
        let Some(load) = poll(&mut engine, &mut queues, mailbox, stop) else { return };
        drop(queues);
        let mut old: Vec<Option<Link<'eal>>> = ports.into_iter().map(Some).collect();
        let take = |source| match source {
            Source::Keep(index) => old.get_mut(index).and_then(Option::take),
            Source::New(link) => Some(link),
        };
        ports = load.ports.into_iter().filter_map(take).collect();
        lens = (0..ports.len()).map(|port| common_len(&load.flows, port)).collect();
        engine.load(load.flows, ports.len(), load.books);
        // A client that has gone does not wait for its answer; the ports are then stopped here.
        let _ = load.done.send(old.into_iter().flatten().collect());
    }
}

/// The length of a port's frames, if they all have the same.
fn common_len(flows: &[FlowSetup], port: usize) -> Option<usize> {
    let mut lens = flows.iter().filter(|flow| flow.port == port).map(|flow| flow.template.len());
    let first = lens.next()?;
    lens.all(|len| len == first).then_some(first)
}

/// Polls until there is another configuration, or the end (`None`).
fn poll<'eal>(
    engine: &mut Engine,
    queues: &mut [Queues<'_, 'eal>],
    mailbox: &Mailbox<Command<'eal>>,
    stop: &AtomicBool,
) -> Option<Load<'eal>> {
    let quiet = tsc::hz() / QUIET_PARTS;
    // When the present quiet began; 0 while something moves.
    let mut quiet_since = 0;
    while !stop.load(Ordering::Relaxed) {
        match mailbox.take() {
            None => {}
            Some(Command::Load(load)) => return Some(load),
            Some(Command::Start(flows, done)) => {
                engine.start(&flows, tsc::now());
                let _ = done.send(());
            }
            Some(Command::Stop(flows, done)) => {
                engine.stop(&flows, tsc::now());
                let _ = done.send(());
            }
        }
        if engine.step(queues, tsc::now) {
            quiet_since = 0;
        } else if quiet_since == 0 {
            quiet_since = tsc::now();
        } else if tsc::now().saturating_sub(quiet_since) > quiet {
            thread::sleep(REST);
        }
    }
    None
}
