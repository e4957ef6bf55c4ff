// SPDX-License-Identifier: BSD-3-Clause
//! Turns a command line into a plan for the control plane: an OTG configuration, read by the usual
//! reader, to which anything that OTG cannot express is added afterwards.

use serde_json::{Value, json};

use super::SpecError;
use super::flow::{FlowSpec, ReplaySpec};
use super::port::{CaptureSpec, PortSpec};
use super::quantity::{Rate, Span};
use crate::capture::FileTarget;
use crate::otg::size::too_long;
use crate::otg::{ApiError, config};
use crate::pacing::FrameRate;
use crate::plan::{self, FlowPlan, MAX_FLOWS, Metrics, Plan, Source, Wait};
use crate::replay::{Frames, Limits, Timing, Truncated};

/// Defaults for flows.
#[derive(Clone, Debug)]
pub struct Defaults {
    /// The rate; if not given, a file has its own times.
    pub rate: Option<Rate>,
    /// The duration; if not given, a file is sent once.
    pub duration: Option<Span>,
    /// Sizes in OTG's model.
    pub size: Value,
}

/// The default rate.
const RATE: Rate = Rate::Frames(10_000);
/// The default duration.
const DURATION: Span = Span::Nanoseconds(10_000_000_000);

/// What is to be sent and captured.
#[derive(Clone, Debug)]
pub struct Job {
    /// Ports, flows and captures.
    pub plan: Plan,
    /// The same in OTG's form, without what that cannot express.
    pub config: Value,
    /// By flow: nanoseconds after which it must be stopped, if it does not end by itself.
    pub stops: Vec<Option<u64>>,
    /// True if anything is captured.
    pub captures: bool,
}

/// Why the command line is invalid.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// An error in a flow.
    #[error("--flow {flow:?}: {source}")]
    Flow {
        /// Its name.
        flow: String,
        /// The reason.
        source: SpecError,
    },
    /// A flow names an unknown port.
    #[error("--flow {flow:?}: {key}: there is no port {port:?}; the ports are {known}")]
    NoPort {
        /// The flow's name.
        flow: String,
        /// `from` or `to`.
        key: &'static str,
        /// The port that it names.
        port: String,
        /// All ports.
        known: String,
    },
    /// A file has frames that are too long.
    #[error("--flow {flow:?}: pcap: {what}")]
    TooLong {
        /// The flow's name.
        flow: String,
        /// Their length, and what to do.
        what: String,
    },
    /// Two flows of one name.
    #[error("--flow {0:?}: another flow has this name; give one of them another by name=")]
    SameName(String),
    /// Too many flows.
    #[error("--flow: {0} flows; at most {MAX_FLOWS} are supported")]
    TooMany(usize),
    /// A capture names an unknown port.
    #[error("--capture {port:?}: there is no port of this name; the ports are {known}")]
    Capture {
        /// The port that it names.
        port: String,
        /// All ports.
        known: String,
    },
    /// An error of the configuration's reader.
    #[error("{}", .0.join("\n"))]
    Config(Vec<String>),
}

/// Makes a job.
///
/// # Errors
/// [`JobError`], which names the flow and its key.
pub fn job(
    ports: &[PortSpec],
    flows: &[FlowSpec],
    captures: &[CaptureSpec],
    capture_limit: u64,
    defaults: &Defaults,
    limits: &config::Limits,
) -> Result<Job, JobError> {
    if flows.len() > MAX_FLOWS {
        return Err(JobError::TooMany(flows.len()));
    }
    let one = [FlowSpec::default_flow()];
    let flows = if flows.is_empty() { &one[..] } else { flows };
    let names = Names::of(ports);
    let mut otg_flows = Vec::new();
    let mut replays = Vec::new();
    let mut stops = Vec::new();
    let mut flow_names = Vec::new();
    for (index, spec) in flows.iter().enumerate() {
        let name = spec.name.clone().unwrap_or_else(|| format!("f{index}"));
        if flow_names.contains(&name) {
            return Err(JobError::SameName(name));
        }
        let ends = names.ends(&name, spec)?;
        let at_fault = |source| JobError::Flow { flow: name.clone(), source };
        match &spec.replay {
            Some(replay) => {
                let plan = replay_plan(&name, ends, spec, replay, defaults, limits)?;
                replays.push((index, plan));
                stops.push(None);
            }
            None => {
                let (duration, stop) = duration(spec, defaults).map_err(at_fault)?;
                otg_flows.push(otg_flow(&name, &names, &ends, spec, &duration, defaults));
                stops.push(stop);
            }
        }
        flow_names.push(name);
    }
    let config = json!({
        "ports": names.otg(ports),
        "flows": otg_flows,
        "captures": names.captures(captures)?,
        "options": {
            "port_options": { "data_integrity": flows.iter().any(|flow| flow.integrity) }
        },
    });
    let (mut plan, _) = config::validate(&config, limits).map_err(|error| {
        let own = |index: usize| {
            flows.iter().zip(&flow_names).filter(|(flow, _)| flow.replay.is_none()).nth(index)
        };
        JobError::Config(
            error.errors.iter().map(|error| named(error, |i| Some(own(i)?.1.clone()))).collect(),
        )
    })?;
    for (index, replay) in replays {
        plan.flows.insert(index.min(plan.flows.len()), replay);
    }
    for (flow, spec) in plan.flows.iter_mut().zip(flows) {
        let rate = spec.rate.or(defaults.rate).unwrap_or(RATE);
        if let (Rate::Bits { bits, layer1: false }, plan::Rate::Bits { .. }) = (rate, flow.rate) {
            flow.rate = plan::Rate::Bits { bits, overhead: 0 };
        }
    }
    for (capture, spec) in plan.captures.iter_mut().zip(captures) {
        capture.file = Some(FileTarget { path: spec.path.clone(), max_bytes: capture_limit });
    }
    Ok(Job { plan, config, stops, captures: !captures.is_empty() })
}

impl FlowSpec {
    /// The flow if none is given: the same as a flow without any key.
    fn default_flow() -> Self {
        let packet = super::stack::Stack::default().to_otg().unwrap_or_default();
        FlowSpec { packet, ..FlowSpec::default() }
    }
}

/// Replaces the flow's index in an error by its name.
fn named(error: &str, name: impl Fn(usize) -> Option<String>) -> String {
    let split = error.strip_prefix("flows[").and_then(|rest| rest.split_once("]."));
    let flow = split.and_then(|(index, rest)| Some((name(index.parse().ok()?)?, rest)));
    match flow {
        Some((name, rest)) => format!("--flow {name:?}: {rest}"),
        None => error.to_owned(),
    }
}

impl From<ApiError> for JobError {
    fn from(error: ApiError) -> Self {
        JobError::Config(error.errors)
    }
}

/// The names of the ports.
struct Names(Vec<String>);

impl Names {
    fn of(ports: &[PortSpec]) -> Self {
        let name = |(index, port): (usize, &PortSpec)| {
            port.name.clone().unwrap_or_else(|| format!("p{index}"))
        };
        Names(ports.iter().enumerate().map(name).collect())
    }

    fn otg(&self, ports: &[PortSpec]) -> Value {
        let port =
            |(name, port): (&String, &PortSpec)| json!({ "name": name, "location": port.location });
        self.0.iter().zip(ports).map(port).collect()
    }

    fn index(&self, flow: &str, key: &'static str, name: &str) -> Result<usize, JobError> {
        self.0.iter().position(|port| port == name).ok_or_else(|| JobError::NoPort {
            flow: flow.to_owned(),
            key,
            port: name.to_owned(),
            known: self.0.join(", "),
        })
    }

    /// The sending port and the receiving ones.
    fn ends(&self, flow: &str, spec: &FlowSpec) -> Result<(usize, Vec<usize>), JobError> {
        let tx = spec.from.as_deref().map_or(Ok(0), |name| self.index(flow, "from", name))?;
        let rx = spec.to.iter().map(|name| self.index(flow, "to", name));
        Ok((tx, rx.collect::<Result<_, _>>()?))
    }

    fn captures(&self, captures: &[CaptureSpec]) -> Result<Value, JobError> {
        let capture = |(index, spec): (usize, &CaptureSpec)| {
            if !self.0.contains(&spec.port) {
                let (port, known) = (spec.port.clone(), self.0.join(", "));
                return Err(JobError::Capture { port, known });
            }
            let format = match spec.path.extension().is_some_and(|ending| ending == "pcapng") {
                true => "pcapng",
                false => "pcap",
            };
            let mut entry = json!({
                "name": format!("capture{index}"),
                "port_names": [spec.port],
                "filters": spec.filters,
                "format": format,
            });
            if let (Some(snap), Some(entry)) = (spec.snap, entry.as_object_mut()) {
                entry.insert("packet_size".to_owned(), json!(snap));
            }
            Ok(entry)
        };
        captures.iter().enumerate().map(capture).collect()
    }
}

fn otg_flow(
    name: &str,
    names: &Names,
    (tx, rx): &(usize, Vec<usize>),
    spec: &FlowSpec,
    duration: &Value,
    defaults: &Defaults,
) -> Value {
    let port = |index: &usize| names.0.get(*index).cloned().unwrap_or_default();
    let rx: Vec<String> = rx.iter().map(port).collect();
    let mut flow = json!({
        "name": name,
        "tx_rx": { "choice": "port", "port": { "tx_name": port(tx), "rx_names": rx } },
        "packet": spec.packet,
        "size": spec.size.as_ref().unwrap_or(&defaults.size),
        "rate": spec.rate.or(defaults.rate).unwrap_or(RATE).to_otg(),
        "duration": duration,
        "metrics": {
            "enable": true,
            "loss": true,
            "timestamps": true,
            "latency": { "enable": spec.latency.unwrap_or(true), "mode": "cut_through" },
        },
    });
    if let (Some(payload), Some(flow)) = (&spec.payload, flow.as_object_mut()) {
        flow.insert("payload".to_owned(), payload.clone());
    }
    flow
}

/// The duration in OTG's model, and when to stop the flow if the model cannot express that.
fn duration(spec: &FlowSpec, defaults: &Defaults) -> Result<(Value, Option<u64>), SpecError> {
    let span = spec.duration.or(defaults.duration).unwrap_or(DURATION);
    let Some(burst) = spec.burst else {
        let duration = match span {
            Span::Continuous => json!({ "continuous": {} }),
            Span::Frames(frames) => json!({ "fixed_packets": { "packets": frames } }),
            Span::Nanoseconds(time) => json!({ "fixed_seconds": { "seconds": time as f64 / 1e9 } }),
        };
        return Ok((duration, None));
    };
    let (bursts, stop) = match (burst.bursts, span) {
        (Some(bursts), _) => (bursts, None),
        (None, Span::Frames(frames)) if frames % burst.frames == 0 => (frames / burst.frames, None),
        (None, Span::Frames(frames)) => {
            let wanted = format!("a number of whole bursts of {} frames", burst.frames);
            return Err(SpecError::value("frames", &frames.to_string(), wanted));
        }
        (None, Span::Continuous) => (0, None),
        // The model's bursts cannot be limited by time.
        (None, Span::Nanoseconds(time)) => (0, Some(time)),
    };
    let gap = json!({ "choice": "nanoseconds", "nanoseconds": burst.gap });
    let burst = json!({ "bursts": bursts, "packets": burst.frames, "inter_burst_gap": gap });
    Ok((json!({ "burst": burst }), stop))
}

/// A flow of a file, which OTG cannot express.
fn replay_plan(
    name: &str,
    (tx, rx): (usize, Vec<usize>),
    spec: &FlowSpec,
    replay: &ReplaySpec,
    defaults: &Defaults,
    limits: &config::Limits,
) -> Result<FlowPlan, JobError> {
    let truncated = if replay.pad { Truncated::Pad } else { Truncated::Refuse };
    let frames = Frames::open(&replay.path, Limits { truncated, ..Limits::default() })
        .map_err(|error| JobError::Flow { flow: name.to_owned(), source: error.into() })?;
    let longest = frames.longest() + packet::FCS_LEN;
    if longest > limits.max_frame {
        let what = too_long(longest, limits.max_frame);
        return Err(JobError::TooLong { flow: name.to_owned(), what });
    }
    let wanted = match replay.speed {
        Some(_) => spec.rate,
        None => spec.rate.or(defaults.rate),
    };
    let rate = match wanted {
        None => plan::Rate::Own,
        Some(Rate::Frames(rate)) => {
            FrameRate::new(rate, 1).map_or(plan::Rate::Own, plan::Rate::Frames)
        }
        Some(Rate::Bits { bits, layer1 }) => {
            let overhead = if layer1 { packet::L1_OVERHEAD } else { 0 };
            plan::Rate::Bits { bits, overhead }
        }
        Some(Rate::Percent(percent)) => plan::Rate::Percent(percent),
    };
    let once = frames.len() as u64;
    let duration = match (replay.loops, spec.duration.or(defaults.duration)) {
        (Some(loops), _) => plan::Duration::Packets(once.saturating_mul(loops)),
        (None, None) => plan::Duration::Packets(once),
        (None, Some(Span::Continuous)) => plan::Duration::Continuous,
        (None, Some(Span::Frames(frames))) => plan::Duration::Packets(frames),
        (None, Some(Span::Nanoseconds(time))) => plan::Duration::Nanoseconds(time),
    };
    let timing = replay.speed.unwrap_or(Timing::Own);
    Ok(FlowPlan {
        name: name.to_owned(),
        tx,
        rx,
        source: Source::Replay(frames, timing),
        hops: Vec::new(),
        rate,
        duration,
        delay: Wait::NONE,
        metrics: Metrics::default(),
        tags: None,
    })
}

#[cfg(test)]
mod tests;
