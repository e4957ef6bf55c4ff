// SPDX-License-Identifier: BSD-3-Clause
//! The statistics of flows and ports at one moment, from OTG's metrics and telemetry.

use std::time::Instant;

use measure::histogram::Summary;
use serde_json::Value;

use super::client::Client;
use crate::otg::ApiError;
use crate::plan::{Mark, Plan, Source};
use crate::telemetry::{Histogram, Subject};

/// All statistics at one moment.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The time.
    pub at: Instant,
    /// In the order of the plan, as many as were requested.
    pub flows: Vec<Flow>,
    /// In the order of the plan.
    pub ports: Vec<Port>,
}

/// The present rate.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pace {
    /// Frames per second.
    pub frames: f64,
    /// Bits per second on layer 1.
    pub bits: f64,
}

/// A flow's statistics. Unknown values are `None`.
#[derive(Clone, Debug, Default)]
pub struct Flow {
    /// Its name.
    pub name: String,
    /// The port that sends it.
    pub from: String,
    /// The ports that it should arrive at; none means any.
    pub to: Vec<String>,
    /// True for a replayed file, whose frames are not recognised when they return.
    pub replay: bool,
    /// How its frames are recognised when they arrive.
    pub mark: Mark,
    /// Frames that are to be sent, or were.
    pub intended: Option<u64>,
    /// Frames offered to the port.
    pub attempted: u64,
    /// Frames that the port accepted.
    pub accepted: u64,
    /// Frames lost because the port's ring was full.
    pub lost_at_ingress: u64,
    /// In a flood: offers that the port refused.
    pub refused: u64,
    /// Frames offered too late.
    pub late: u64,
    /// Frames that a pause of the generator delayed.
    pub disturbed: Disturbed,
    /// From the first offer to the last.
    pub duration_s: Option<f64>,
    /// By how much that differs from the schedule, in millionths.
    pub pacing_error_ppm: Option<u64>,
    /// Bytes of the accepted frames, with FCS.
    pub tx_bytes: u64,
    /// Frames that were received.
    pub received: Option<u64>,
    /// Their bytes, with FCS.
    pub rx_bytes: Option<u64>,
    /// Those among them whose payload was changed.
    pub corrupt: Option<u64>,
    /// Received frames that had been received before.
    pub duplicates: Option<u64>,
    /// Received frames that arrived after a later one.
    pub reordered: Option<u64>,
    /// Received frames for which neither is known.
    pub unknown: Option<u64>,
    /// The largest extent of a reordered frame, in frames (RFC 4737).
    pub max_extent: Option<u64>,
    /// The present sending rate.
    pub tx: Pace,
    /// The present receiving rate.
    pub rx: Option<Pace>,
    /// Minimum, mean and maximum latency in nanoseconds.
    pub latency: Option<[f64; 3]>,
    /// Latency in cycles.
    pub latencies: Option<Summary>,
    /// Differences of successive frames' latencies in cycles (RFC 3393).
    pub ipdv: Option<Summary>,
    /// Gaps between departures in cycles.
    pub gaps: Option<Summary>,
    /// Smoothed jitter (RFC 3550).
    pub jitter_ns: Option<u64>,
}

/// Frames of a flow that a pause of the generator affected: they left late or soon after a late
/// frame, or were received late.
#[derive(Clone, Copy, Debug, Default)]
pub struct Disturbed {
    /// Frames that the port accepted.
    pub accepted: u64,
    /// Frames lost because the port's ring was full.
    pub lost_at_ingress: u64,
    /// Frames that were received; they are in no latency.
    pub received: u64,
    /// Frames that were not received.
    pub missing: u64,
}

impl Flow {
    /// Frames that the port accepted and that were not received, not counting copies.
    pub fn lost(&self) -> Option<u64> {
        let once = self.received?.saturating_sub(self.duplicates.unwrap_or(0));
        Some(self.accepted.saturating_sub(once))
    }

    /// The same in percent; none while nothing was sent.
    pub fn loss_percent(&self) -> Option<f64> {
        (self.accepted > 0).then_some(())?;
        Some(self.lost()? as f64 * 100.0 / self.accepted as f64)
    }
}

/// A port's statistics.
#[derive(Clone, Debug, Default)]
pub struct Port {
    /// Its name.
    pub name: String,
    /// Its location.
    pub location: String,
    /// True if its link is up.
    pub up: bool,
    /// True if one of its flows transmits.
    pub transmitting: bool,
    /// The reason why frames do not pass there.
    pub obstacle: Option<String>,
    /// Frames sent.
    pub sent: u64,
    /// Frames received, of any origin.
    pub received: u64,
    /// The present sending rate.
    pub tx: Pace,
    /// The present receiving rate.
    pub rx: Pace,
    /// Frames that are not from this generator.
    pub foreign: u64,
    /// Frames of an earlier run.
    pub stale: u64,
    /// Frames that belong to other ports.
    pub misdirected: u64,
    /// Frames that were changed.
    pub corrupt: u64,
    /// Counts of captured frames.
    pub capture: Option<Capture>,
}

/// A capture's statistics.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capture {
    /// Frames that the filter matched.
    pub matched: u64,
    /// Frames that are in the file.
    pub stored: u64,
    /// Frames lost because the file was written too slowly.
    pub dropped: u64,
    /// Frames that arrived when the file was full.
    pub refused: u64,
    /// Why the file is not complete.
    pub error: Option<String>,
}

/// A number in OTG's metrics, which may be a string.
fn number(metric: &Value, key: &str) -> f64 {
    match metric.get(key) {
        Some(Value::String(text)) => text.parse().unwrap_or(0.0),
        Some(value) => value.as_f64().unwrap_or(0.0),
        None => 0.0,
    }
}

fn count(metric: &Value, key: &str) -> u64 {
    match metric.get(key) {
        Some(Value::String(text)) => text.parse().unwrap_or(0),
        Some(value) => value.as_u64().unwrap_or(0),
        None => 0,
    }
}

/// The rate of a port or flow in OTG's metrics; bytes there do not include layer 1.
fn port_pace(metric: &Value, way: &str) -> Pace {
    let frames = number(metric, &format!("frames_{way}_rate"));
    let bytes = number(metric, &format!("bytes_{way}_rate"));
    Pace { frames, bits: (bytes + frames * packet::L1_OVERHEAD as f64) * 8.0 }
}

fn flow_pace(metric: &Value, way: &str) -> Pace {
    Pace {
        frames: number(metric, &format!("frames_{way}_rate")),
        bits: number(metric, &format!("{way}_l1_rate_bps")),
    }
}

/// Collects statistics.
pub struct Observer<'a> {
    client: &'a Client,
    plan: &'a Plan,
    hz: u64,
    /// The sent frames of replayed flows at the previous time.
    before: Option<(Instant, Vec<u64>)>,
}

impl<'a> Observer<'a> {
    /// For a plan in force, with `hz` cycles per second.
    pub fn new(client: &'a Client, plan: &'a Plan, hz: u64) -> Self {
        Observer { client, plan, hz, before: Some((Instant::now(), vec![0; plan.flows.len()])) }
    }

    /// Collects the statistics of the ports and the first `most` flows. Distributions of gaps and
    /// IPDV are only included if `all` is true.
    ///
    /// # Errors
    /// The control plane's, if it does not answer.
    pub fn look(&mut self, most: usize, all: bool) -> Result<Snapshot, ApiError> {
        let at = Instant::now();
        let metrics = self.client.metrics("flow")?;
        let flows = self.plan.flows.iter().take(most).enumerate();
        let flows: Vec<Flow> =
            flows.map(|(index, _)| self.flow(index, &metrics, at, all)).collect();
        self.before = Some((at, flows.iter().map(|flow| flow.accepted).collect()));
        Ok(Snapshot { at, flows, ports: self.ports()? })
    }

    /// Collects the statistics of the ports only.
    ///
    /// # Errors
    /// The control plane's, if it does not answer.
    pub fn ports(&self) -> Result<Vec<Port>, ApiError> {
        let metrics = self.client.metrics("port")?;
        let ports = self.plan.ports.iter().zip(&metrics);
        Ok(ports.map(|(port, metric)| self.port(&port.name, metric)).collect())
    }

    fn port(&self, name: &str, metric: &Value) -> Port {
        let told = self.client.ask(Subject::Port(name.to_owned()));
        let number = |name: &str| told.number(name).unwrap_or(0);
        let text = |key: &str| metric.get(key).and_then(Value::as_str).unwrap_or_default();
        Port {
            name: name.to_owned(),
            location: text("location").to_owned(),
            up: text("link") == "up",
            transmitting: text("transmit") == "started",
            obstacle: told.text("obstacle").map(str::to_owned),
            sent: count(metric, "frames_tx"),
            received: count(metric, "frames_rx"),
            tx: port_pace(metric, "tx"),
            rx: port_pace(metric, "rx"),
            foreign: number("foreign"),
            stale: number("stale"),
            misdirected: number("misdirected"),
            corrupt: number("corrupt"),
            capture: told.number("capture_matched").map(|matched| Capture {
                matched,
                stored: number("capture_stored"),
                dropped: number("capture_dropped"),
                refused: number("capture_refused"),
                error: told.text("capture_error").map(str::to_owned),
            }),
        }
    }

    fn flow(&self, index: usize, metrics: &[Value], at: Instant, all: bool) -> Flow {
        let Some(plan) = self.plan.flows.get(index) else { return Flow::default() };
        let told = self.client.ask(Subject::Flow(plan.name.clone()));
        let number = |name: &str| told.number(name).unwrap_or(0);
        let port = |index: &usize| self.plan.ports.get(*index).map_or("", |port| &port.name);
        let mut flow = Flow {
            name: plan.name.clone(),
            from: port(&plan.tx).to_owned(),
            to: plan.rx.iter().map(|index| port(index).to_owned()).collect(),
            replay: matches!(plan.source, Source::Replay(..)),
            mark: plan.mark(),
            intended: told.number("intended"),
            attempted: number("attempted"),
            accepted: number("accepted"),
            lost_at_ingress: number("lost_at_ingress"),
            refused: number("refused"),
            late: number("late"),
            disturbed: Disturbed {
                accepted: number("accepted_disturbed"),
                lost_at_ingress: number("lost_disturbed"),
                received: number("received_disturbed"),
                missing: number("missing_disturbed"),
            },
            duration_s: told.number("tx_duration_tsc").map(|tsc| tsc as f64 / self.hz as f64),
            pacing_error_ppm: told.number("pacing_error_ppm"),
            ..Flow::default()
        };
        if all {
            flow.gaps = self.client.histogram(&plan.name, Histogram::Gap);
        }
        let own = |metric: &&Value| {
            metric.get("name").and_then(Value::as_str).is_some_and(|name| name == plan.name)
        };
        let Some(metric) = metrics.iter().find(own) else {
            let mean = plan.source.mean_with_fcs();
            flow.tx_bytes = (flow.accepted as f64 * mean).round() as u64;
            flow.tx = self.replay_pace(index, flow.accepted, mean, at);
            return flow;
        };
        flow.tx_bytes = count(metric, "bytes_tx");
        flow.rx_bytes = Some(count(metric, "bytes_rx"));
        flow.received = told.number("received");
        flow.corrupt = told.number("corrupt").filter(|_| self.plan.integrity);
        flow.duplicates = told.number("duplicates");
        flow.reordered = told.number("reordered");
        flow.unknown = told.number("reordered_or_duplicate");
        flow.max_extent = told.number("max_reordering_extent");
        flow.jitter_ns = told.number("jitter_rfc3550_ns");
        (flow.tx, flow.rx) = (flow_pace(metric, "tx"), Some(flow_pace(metric, "rx")));
        flow.latency = metric.get("latency").map(|latency| {
            ["minimum_ns", "average_ns", "maximum_ns"].map(|key| self::number(latency, key))
        });
        if flow.latency.is_some() {
            flow.latencies = self.client.histogram(&plan.name, Histogram::Latency);
        }
        if all {
            flow.ipdv = self.client.histogram(&plan.name, Histogram::Ipdv);
        }
        flow
    }

    /// The rate of a replayed flow, for which OTG has no metrics.
    fn replay_pace(&self, index: usize, accepted: u64, mean_with_fcs: f64, at: Instant) -> Pace {
        let Some((before, counts)) = &self.before else { return Pace::default() };
        let passed = at.saturating_duration_since(*before).as_secs_f64();
        let frames = accepted.saturating_sub(counts.get(index).copied().unwrap_or(0)) as f64;
        let frames = if passed > 0.0 { frames / passed } else { 0.0 };
        Pace { frames, bits: frames * (mean_with_fcs + packet::L1_OVERHEAD as f64) * 8.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_do_not_hide_losses() {
        let flow =
            Flow { accepted: 100, received: Some(98), duplicates: Some(3), ..Flow::default() };
        assert_eq!((flow.lost(), flow.loss_percent()), (Some(5), Some(5.0)));
        let none = Flow { received: Some(0), ..Flow::default() };
        assert_eq!((none.lost(), none.loss_percent()), (Some(0), None));
        assert_eq!(Flow { accepted: 5, ..Flow::default() }.lost(), None, "a replay");
    }

    #[test]
    fn counters_are_strings_or_numbers() {
        let metric = serde_json::json!({"a": "18446744073709551615", "b": 7, "c": 1.5});
        assert_eq!(
            (count(&metric, "a"), count(&metric, "b"), count(&metric, "x")),
            (u64::MAX, 7, 0)
        );
        assert_eq!((number(&metric, "c"), number(&metric, "b")), (1.5, 7.0));
    }
}
