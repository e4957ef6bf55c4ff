// SPDX-License-Identifier: BSD-3-Clause
//! The generator's commands on DPDK's telemetry socket.
//!
//! DPDK answers on threads of its own; they ask the control plane and wait a bounded time. What
//! this release does not measure is absent from the answers, never zero.

use std::time::Duration;

use dpdk::telemetry::{RegisterError, Value};
use tokio::sync::mpsc;

/// Longest time that the control plane may take.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Whose figures are wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// The port of this name.
    Port(String),
    /// The flow of this name.
    Flow(String),
}

/// A question and the place for its answer; `None` when there is no such thing.
#[derive(Debug)]
pub struct Question {
    /// Whose figures are wanted.
    pub subject: Subject,
    /// Where the answer goes.
    pub answer: std::sync::mpsc::SyncSender<Option<Value>>,
}

/// Registers the commands; questions go to `control`.
///
/// # Errors
/// DPDK's, when it does not take a command.
pub fn register(eal: &dpdk::Eal, control: &mpsc::Sender<Question>) -> Result<(), RegisterError> {
    let commands = eal.telemetry();
    commands.register_clock()?;
    let port = control.clone();
    commands.register(
        "/linerate/generator/port",
        "Books of a port of the OTG configuration. Parameters: string name",
        move |name| ask(&port, Subject::Port(name.to_owned())),
    )?;
    let flow = control.clone();
    commands.register(
        "/linerate/generator/flow",
        "Books of a flow of the OTG configuration. Parameters: string name",
        move |name| ask(&flow, Subject::Flow(name.to_owned())),
    )?;
    Ok(())
}

fn ask(control: &mpsc::Sender<Question>, subject: Subject) -> Option<Value> {
    let (answer, reply) = std::sync::mpsc::sync_channel(1);
    control.try_send(Question { subject, answer }).ok()?;
    reply.recv_timeout(TIMEOUT).ok()?
}
