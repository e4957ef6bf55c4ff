// SPDX-License-Identifier: BSD-3-Clause
//! Writes frames to a file instead of sending them on a port: without DPDK and without waiting.
//!
//! The file contains what the port's flows would send, in the order of their slots, with these as
//! time stamps: pcap with nanoseconds, from the epoch on. Flows must end by themselves.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde_json::Value;

use super::SpecError;
use crate::control;
use crate::engine::source::FrameSource;
use crate::engine::timetable::Timetable;
use crate::engine::{FlowSetup, Limit};
use crate::otg::{ApiError, config};
use crate::pacing::LineRate;
use crate::plan::Plan;
use crate::replay::Limits;

/// pcap's magic number for nanosecond time stamps.
const MAGIC: u32 = 0xa1b2_3c4d;
const VERSION: (u16, u16) = (2, 4);
const ETHERNET: u32 = 1;
/// The most bytes of a frame that readers must expect.
const SNAP: u32 = 65_535;
const NANOSECONDS: u64 = 1_000_000_000;
/// The most bytes of a configuration file. A device may have no end.
const MOST_CONFIGURATION: u64 = 64 << 20;

/// A file for a port's frames: `PORT=FILE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteSpec {
    /// Name of the port.
    pub port: String,
    /// The file.
    pub path: PathBuf,
}

impl FromStr for WriteSpec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let value = |wanted: &str| SpecError::Value {
            key: "write".to_owned(),
            text: text.to_owned(),
            wanted: wanted.to_owned(),
        };
        let (port, path) = text.split_once('=').ok_or_else(|| value("PORT=FILE"))?;
        let path = PathBuf::from(path);
        match path.extension().and_then(|ending| ending.to_str()) {
            Some("pcap") => Ok(WriteSpec { port: port.to_owned(), path }),
            _ => Err(value("a file that ends in .pcap")),
        }
    }
}

/// Why nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The port does not exist.
    #[error("--write {port}: there is no port of this name; the ports are {known}")]
    NoPort {
        /// The port that was named.
        port: String,
        /// All ports.
        known: String,
    },
    /// No flow sends on the port.
    #[error("--write {0}: no flow is sent from this port")]
    NoFlow(String),
    /// A flow does not end.
    #[error(
        "flow {0:?} has no end; give it a number of frames or a time (--duration 100000frames)"
    )]
    Endless(String),
    /// One file for two ports, or two files for one.
    #[error("--write {port}={path}: the port or the file is given twice")]
    Twice {
        /// The port.
        port: String,
        /// The file.
        path: PathBuf,
    },
    /// Too many frames or bytes.
    #[error(
        "--write {port}: more than {limit} {what}, which is the limit; --write-limit cuts flows there"
    )]
    TooMuch {
        /// The port.
        port: String,
        /// The limit.
        limit: usize,
        /// What it counts.
        what: &'static str,
    },
    /// Errors in rates or patterns.
    #[error("{}", .0.errors.join("\n"))]
    Plan(#[from] ApiError),
    /// The kernel's error.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// The ports and flows of an OTG configuration in a file (JSON).
///
/// # Errors
/// [`WriteError`], which names the file.
pub fn read_plan(file: &Path, limits: &config::Limits) -> Result<Plan, WriteError> {
    let failed = |source| WriteError::Io { path: file.to_owned(), source };
    let text = host::files::read(file, MOST_CONFIGURATION).map_err(failed)?;
    let config: Value = serde_json::from_slice(&text).map_err(|error| failed(error.into()))?;
    let (plan, warnings) = config::validate(&config, limits)?;
    for warning in warnings {
        eprintln!("generator: warning: {warning}");
    }
    Ok(plan)
}

/// Writes files, each as a whole or not at all; with a `limit` at most that many frames into each.
/// Returns the number of frames in each.
///
/// # Errors
/// [`WriteError`].
pub fn write(
    plan: &Plan,
    specs: &[WriteSpec],
    line: Option<LineRate>,
    limit: Option<usize>,
) -> Result<Vec<usize>, WriteError> {
    for (at, spec) in specs.iter().enumerate() {
        let same = |other: &WriteSpec| other.port == spec.port || other.path == spec.path;
        if specs.iter().take(at).any(same) {
            return Err(WriteError::Twice { port: spec.port.clone(), path: spec.path.clone() });
        }
    }
    let mut flows = control::flow_setups(plan, line, NANOSECONDS)?;
    let mut contents = Vec::new();
    for spec in specs {
        let known =
            || plan.ports.iter().map(|port| port.name.as_str()).collect::<Vec<_>>().join(", ");
        let port = plan.ports.iter().position(|port| port.name == spec.port);
        let port =
            port.ok_or_else(|| WriteError::NoPort { port: spec.port.clone(), known: known() })?;
        let mine: Vec<&mut FlowSetup> = flows
            .iter_mut()
            .filter(|setup| plan.flows.get(usize::from(setup.index)).is_some_and(|f| f.tx == port))
            .collect();
        contents.push(capture(plan, &spec.port, mine, limit)?);
    }
    for (spec, (bytes, _)) in specs.iter().zip(&contents) {
        host::files::write(&spec.path, bytes)
            .map_err(|source| WriteError::Io { path: spec.path.clone(), source })?;
    }
    Ok(contents.into_iter().map(|(_, frames)| frames).collect())
}

/// A flow and when its next frame is due.
struct Due<'a> {
    setup: &'a mut FlowSetup,
    slots: Timetable,
    /// Frames that are left, and the latest due time.
    left: u64,
    end: u64,
}

/// A capture file of the frames that these flows send, and their number.
fn capture(
    plan: &Plan,
    port: &str,
    flows: Vec<&mut FlowSetup>,
    limit: Option<usize>,
) -> Result<(Vec<u8>, usize), WriteError> {
    if flows.is_empty() {
        return Err(WriteError::NoFlow(port.to_owned()));
    }
    let parts = flows.len() as u64;
    let mut due = Vec::new();
    for (part, setup) in (0..).zip(flows) {
        let slots = setup.pace.from(0, part, parts);
        let begin = setup.pace.delay.whole_cycles();
        let (left, end) = match setup.limit {
            Limit::Frames(frames) => (frames, u64::MAX),
            Limit::Nanoseconds(time) => match setup.pace.slots_in(time) {
                Some(slots) => (slots, u64::MAX),
                None => (u64::MAX, begin.saturating_add(time)),
            },
            Limit::Endless if limit.is_some() => (u64::MAX, u64::MAX),
            Limit::Endless => {
                let name = plan.flows.get(usize::from(setup.index)).map(|flow| flow.name.clone());
                return Err(WriteError::Endless(name.unwrap_or_default()));
            }
        };
        due.push(Due { setup, slots, left, end });
    }
    let mut heap: BinaryHeap<_> =
        due.iter().enumerate().map(|(at, flow)| Reverse((flow.slots.slot(), at))).collect();
    let limits = Limits::default();
    let too_much = |limit, what| WriteError::TooMuch { port: port.to_owned(), limit, what };
    let (mut bytes, mut frames, mut frame) = (header(), 0, Vec::new());
    while let Some(Reverse((slot, at))) = heap.pop() {
        if limit.is_some_and(|limit| frames >= limit) {
            break;
        }
        let Some(flow) = due.get_mut(at) else { continue };
        if flow.left == 0 || slot >= flow.end {
            continue;
        }
        next(&mut flow.setup.source, &mut frame);
        record(&mut bytes, slot, &frame);
        frames += 1;
        if frames > limits.frames {
            return Err(too_much(limits.frames, "frames"));
        }
        if bytes.len() > limits.bytes {
            return Err(too_much(limits.bytes, "bytes"));
        }
        flow.left -= 1;
        flow.slots.advance();
        heap.push(Reverse((flow.slots.slot(), at)));
    }
    Ok((bytes, frames))
}

fn next(source: &mut FrameSource, frame: &mut Vec<u8>) {
    match source {
        FrameSource::Writer(writer) => writer.write(std::slice::from_mut(frame), 0, false),
        FrameSource::Player { frames, next } => {
            frame.clear();
            frame.extend_from_slice(frames.get(*next).unwrap_or_default());
            *next = if *next + 1 < frames.len() { *next + 1 } else { 0 };
        }
    }
}

fn header() -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend(MAGIC.to_le_bytes());
    bytes.extend(VERSION.0.to_le_bytes());
    bytes.extend(VERSION.1.to_le_bytes());
    // The time zone and the accuracy of times, which are always 0.
    bytes.extend([0; 8]);
    bytes.extend(SNAP.to_le_bytes());
    bytes.extend(ETHERNET.to_le_bytes());
    bytes
}

fn record(bytes: &mut Vec<u8>, at: u64, frame: &[u8]) {
    let seconds = u32::try_from(at / NANOSECONDS).unwrap_or(u32::MAX);
    bytes.extend(seconds.to_le_bytes());
    bytes.extend(((at % NANOSECONDS) as u32).to_le_bytes());
    bytes.extend((frame.len() as u32).to_le_bytes());
    bytes.extend((frame.len() as u32).to_le_bytes());
    bytes.extend_from_slice(frame);
}

#[cfg(test)]
mod tests;
