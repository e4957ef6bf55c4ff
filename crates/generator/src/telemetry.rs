// SPDX-License-Identifier: BSD-3-Clause
//! The generator's commands on DPDK's telemetry socket.
//!
//! DPDK answers on its own threads; they ask the control plane and wait for at most 2 s. Values
//! that are not measured are missing from the answers, never zero.

use std::time::Duration;

use dpdk::telemetry::{RegisterError, Value};
use tokio::sync::mpsc;

/// Longest time that the control plane may take.
const TIMEOUT: Duration = Duration::from_secs(2);

/// The subject of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// The port of this name.
    Port(String),
    /// The flow of this name.
    Flow(String),
}

/// A distribution of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Histogram {
    /// One-way latency, in TSC cycles.
    Latency,
    /// Inter-packet delay variation (RFC 3393), its magnitude, in TSC cycles.
    Ipdv,
    /// Gaps between departures, in TSC cycles.
    Gap,
    /// Extents of reordered frames (RFC 4737, section 4.2.1), in arrivals.
    ReorderingExtent,
}

impl Histogram {
    /// All of them.
    pub const ALL: [Histogram; 4] =
        [Histogram::Latency, Histogram::Ipdv, Histogram::Gap, Histogram::ReorderingExtent];

    /// Its name in answers.
    pub fn name(self) -> &'static str {
        match self {
            Histogram::Latency => "latency_hdr",
            Histogram::Ipdv => "ipdv_hdr",
            Histogram::Gap => "gap_hdr",
            Histogram::ReorderingExtent => "reordering_extent_hdr",
        }
    }

    fn named(name: &str) -> Option<Self> {
        Histogram::ALL.into_iter().find(|histogram| histogram.name() == name)
    }
}

/// A question and the channel for its answer; `None` if there is no such port or flow.
#[derive(Debug)]
pub struct Question {
    /// Which port or flow.
    pub subject: Subject,
    /// Only this histogram.
    pub histogram: Option<Histogram>,
    /// Where the answer goes.
    pub answer: std::sync::mpsc::SyncSender<Option<Value>>,
}

/// Registers the commands; questions go to `control`.
///
/// # Errors
/// DPDK's, if it refuses a command.
pub fn register(eal: &dpdk::Eal, control: &mpsc::Sender<Question>) -> Result<(), RegisterError> {
    let commands = eal.telemetry();
    commands.register_clock()?;
    let port = control.clone();
    commands.register(
        "/linerate/generator/port",
        "Books of a port of the OTG configuration. Parameters: string name",
        move |name| ask(&port, Subject::Port(name.to_owned()), None),
    )?;
    let flow = control.clone();
    commands.register(
        "/linerate/generator/flow",
        "Books of a flow of the OTG configuration. Parameters: string name",
        move |name| ask(&flow, Subject::Flow(name.to_owned()), None),
    )?;
    let histogram = control.clone();
    commands.register(
        "/linerate/generator/histogram",
        "A distribution of a flow. Parameters: string name, latency_hdr or ipdv_hdr or gap_hdr or reordering_extent_hdr",
        move |parameters| {
            let (name, kind) = parameters.split_once(',')?;
            ask(&histogram, Subject::Flow(name.to_owned()), Some(Histogram::named(kind)?))
        },
    )?;
    Ok(())
}

fn ask(
    control: &mpsc::Sender<Question>,
    subject: Subject,
    histogram: Option<Histogram>,
) -> Option<Value> {
    let (answer, reply) = std::sync::mpsc::sync_channel(1);
    control.try_send(Question { subject, histogram, answer }).ok()?;
    reply.recv_timeout(TIMEOUT).ok()?
}
