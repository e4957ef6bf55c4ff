// SPDX-License-Identifier: BSD-3-Clause
//! The final statistics: tables, and one JSON document (schema `linerate/generator-1`).

use measure::histogram::Summary;
use serde_json::{Map, Value, json};

use super::figures::{Capture, Disturbed, Flow, Pace, Port, Snapshot};
use super::table::{self, Table, micros, or_dash};
use crate::engine::{Mode, Settings};
use crate::plan::Mark;

/// Name and version of the document's schema.
pub const SCHEMA: &str = "linerate/generator-1";

/// What ended the traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// All of it was sent.
    Finished,
    /// This signal.
    Signal(i32),
}

/// The content of the final report.
pub struct Report<'a> {
    /// The last statistics.
    pub snapshot: &'a Snapshot,
    /// The engine's settings.
    pub settings: &'a Settings,
    /// What ended the traffic.
    pub ended: Ended,
    /// By flow: the measured rate of 100 percent, in frames per second.
    pub ceilings: &'a [Option<f64>],
    /// Warnings.
    pub warnings: &'a [String],
}

/// Quantiles and names of the percentiles.
const PERCENTILES: [(f64, &str); 3] = [(0.5, "p50"), (0.99, "p99"), (0.999, "p99_9")];

impl Report<'_> {
    fn nanoseconds(&self, cycles: f64) -> f64 {
        cycles * 1e9 / self.settings.hz.max(1) as f64
    }

    /// As text.
    pub fn text(&self) -> String {
        let snapshot = self.snapshot;
        let mut lines = frames(&snapshot.flows).lines();
        lines.extend(marks(&snapshot.flows));
        for table in [self.sending(), self.latency()] {
            if table.has_rows() {
                lines.push(String::new());
                lines.extend(table.lines());
            }
        }
        lines.push(String::new());
        lines.extend(table::ports(&snapshot.ports).lines());
        lines.extend(snapshot.ports.iter().flat_map(strangers));
        if snapshot.flows.iter().any(|flow| flow.latency.is_some()) {
            lines.push(format!(
                "Latency: from the send call to the return of the receive call, by the TSC ({:.0} MHz); the {:.0} ns that reading it takes are subtracted.",
                self.settings.hz as f64 / 1e6,
                self.nanoseconds(self.settings.clock_cost as f64)
            ));
            let timed = snapshot.flows.iter().filter(|flow| flow.latency.is_some());
            let left_out: u64 = timed.map(|flow| flow.disturbed.received).sum();
            if left_out > 0 {
                lines.push(format!(
                    "{left_out} frames have no latency: the generator had lost its CPU when they were due or came back."
                ));
            }
        }
        lines.join("\n") + "\n"
    }

    fn sending(&self) -> Table {
        let mut table = Table::new(&[
            "sending",
            "intended",
            "offered",
            "refused",
            "late",
            "error ppm",
            "gap p50 us",
            "p99",
            "p99.9",
            "max",
        ]);
        for flow in &self.snapshot.flows {
            let gap = |of: &dyn Fn(&Summary) -> u64| {
                or_dash(flow.gaps.as_ref(), |gaps| micros(self.nanoseconds(of(gaps) as f64)))
            };
            table.row([
                flow.name.clone(),
                or_dash(flow.intended, |intended| intended.to_string()),
                flow.attempted.to_string(),
                flow.refused.to_string(),
                flow.late.to_string(),
                or_dash(flow.pacing_error_ppm, |ppm| ppm.to_string()),
                gap(&|gaps| gaps.quantile(0.5)),
                gap(&|gaps| gaps.quantile(0.99)),
                gap(&|gaps| gaps.quantile(0.999)),
                gap(&Summary::max),
            ]);
        }
        table
    }

    fn latency(&self) -> Table {
        let mut table = Table::new(&[
            "latency, us",
            "min",
            "mean",
            "p50",
            "p99",
            "p99.9",
            "max",
            "PDV p99.9",
            "IPDV p99",
            "jitter",
        ]);
        for flow in &self.snapshot.flows {
            let (Some([min, mean, max]), Some(all)) = (flow.latency, &flow.latencies) else {
                continue;
            };
            let at = |share: f64| self.nanoseconds(all.quantile(share) as f64);
            let ipdv = flow.ipdv.as_ref().map(|ipdv| self.nanoseconds(ipdv.quantile(0.99) as f64));
            table.row([
                flow.name.clone(),
                micros(min),
                micros(mean),
                micros(at(0.5)),
                micros(at(0.99)),
                micros(at(0.999)),
                micros(max),
                micros((at(0.999) - min).max(0.0)),
                or_dash(ipdv, micros),
                or_dash(flow.jitter_ns, |jitter| micros(jitter as f64)),
            ]);
        }
        table
    }

    /// As a document.
    pub fn json(&self) -> Value {
        let (ended, signal) = match self.ended {
            Ended::Finished => ("finished", None),
            Ended::Signal(signal) => ("signal", Some(signal)),
        };
        let flows = self.snapshot.flows.iter().enumerate();
        json!({
            "schema": SCHEMA,
            "version": env!("CARGO_PKG_VERSION"),
            "ended": ended,
            "signal": signal,
            "pacing": match self.settings.mode { Mode::Paced => "paced", Mode::Flood => "flood" },
            "tsc_hz": self.settings.hz,
            "clock_cost_ns": self.nanoseconds(self.settings.clock_cost as f64),
            "late_after_ns": self.settings.nanoseconds(self.settings.late_after),
            "warnings": self.warnings,
            "flows": flows.map(|(index, flow)| self.flow(index, flow)).collect::<Vec<_>>(),
            "ports": self.snapshot.ports.iter().map(port).collect::<Vec<_>>(),
        })
    }

    fn flow(&self, index: usize, flow: &Flow) -> Value {
        let mut object = Map::new();
        let mut add = |key: &str, value: Option<Value>| {
            object.extend(value.map(|value| (key.to_owned(), value)));
        };
        let count = |value: Option<u64>| value.map(Value::from);
        add("name", Some(json!(flow.name)));
        add("from", Some(json!(flow.from)));
        add("to", Some(json!(flow.to)));
        add("replay", Some(json!(flow.replay)));
        add("mark", Some(json!(flow.mark.name())));
        add("intended", count(flow.intended));
        add("attempted", count(Some(flow.attempted)));
        add("accepted", count(Some(flow.accepted)));
        add("lost_at_ingress", count(Some(flow.lost_at_ingress)));
        add("refused", count(Some(flow.refused)));
        add("late", count(Some(flow.late)));
        let Disturbed { accepted, lost_at_ingress, received, missing } = flow.disturbed;
        add("accepted_disturbed", count(Some(accepted)));
        add("lost_disturbed", count(Some(lost_at_ingress)));
        // Frames without numbers are not followed.
        let followed = flow.received.filter(|_| flow.mark.is_numbered());
        add("received_disturbed", count(followed.map(|_| received)));
        add("missing_disturbed", count(followed.map(|_| missing)));
        add("tx_bytes", count(Some(flow.tx_bytes)));
        add("rx_bytes", count(flow.rx_bytes));
        add("duration_s", flow.duration_s.map(Value::from));
        add("pacing_error_ppm", count(flow.pacing_error_ppm));
        add("ceiling_fps", self.ceilings.get(index).copied().flatten().map(Value::from));
        add("received", count(flow.received));
        add("lost", count(flow.lost()));
        add("loss_percent", flow.loss_percent().map(Value::from));
        add("duplicates", count(flow.duplicates));
        add("reordered", count(flow.reordered));
        add("reordered_or_duplicate", count(flow.unknown));
        add("max_reordering_extent", count(flow.max_extent));
        add("corrupt", count(flow.corrupt));
        add("gap_ns", flow.gaps.as_ref().map(|gaps| self.distribution(gaps, None)));
        if let (Some(range), Some(all)) = (flow.latency, &flow.latencies) {
            add("latency_ns", Some(self.distribution(all, Some(range))));
            let pdv = PERCENTILES.map(|(share, name)| {
                let value = self.nanoseconds(all.quantile(share) as f64) - range[0];
                (name.to_owned(), json!(value.max(0.0)))
            });
            add("pdv_ns", Some(Value::Object(Map::from_iter(pdv))));
        }
        add("ipdv_ns", flow.ipdv.as_ref().map(|ipdv| self.distribution(ipdv, None)));
        add("jitter_rfc3550_ns", count(flow.jitter_ns));
        Value::Object(object)
    }

    /// Count, minimum, mean, percentiles and maximum, in nanoseconds; `range` has exact values.
    fn distribution(&self, all: &Summary, range: Option<[f64; 3]>) -> Value {
        let read = [all.min() as f64, all.mean(), all.max() as f64].map(|n| self.nanoseconds(n));
        let [min, mean, max] = range.unwrap_or(read);
        let mut object = json!({ "count": all.count(), "min": min, "mean": mean, "max": max });
        for (share, name) in PERCENTILES {
            object[name] = json!(self.nanoseconds(all.quantile(share) as f64));
        }
        object
    }
}

/// The frames of each flow, with mean rates over the time from the first offer to the last.
fn frames(flows: &[Flow]) -> Table {
    let mean = |flow: &Flow| {
        let mut flow = flow.clone();
        let seconds = flow.duration_s.filter(|seconds| *seconds > 0.0 && flow.attempted > 1);
        // The last frame begins an interval that does not count.
        let part = |seconds: f64| (flow.attempted - 1) as f64 / flow.attempted as f64 / seconds;
        let per_second = seconds.map_or(0.0, part);
        let pace = |frames: u64, bytes: u64| {
            let bits = (bytes as f64 + frames as f64 * packet::L1_OVERHEAD as f64) * 8.0;
            Pace { frames: frames as f64 * per_second, bits: bits * per_second }
        };
        let tx = pace(flow.accepted, flow.tx_bytes);
        flow.rx = flow.received.zip(flow.rx_bytes).map(|(frames, bytes)| pace(frames, bytes));
        flow.tx = tx;
        flow
    };
    table::frames(&flows.iter().map(mean).collect::<Vec<_>>(), table::LOST)
}

/// Flows without a full mark, and what is not known about them therefore.
fn marks(flows: &[Flow]) -> Vec<String> {
    let kinds = [
        (
            Mark::Short,
            "have no room for the full mark, but for a short one: their damage is not seen",
        ),
        (
            Mark::Fields,
            "have no room for a mark and are known by header fields: their order and duplicates are not known",
        ),
    ];
    let line = |(mark, what): (Mark, &str)| {
        let names = flows.iter().filter(|flow| flow.mark == mark).map(|flow| flow.name.as_str());
        let names = names.collect::<Vec<_>>().join(", ");
        (!names.is_empty()).then(|| format!("Frames of {names} {what}."))
    };
    kinds.into_iter().filter_map(line).collect()
}

/// Frames that a port received and that belong to no flow.
fn strangers(port: &Port) -> Vec<String> {
    let mut lines = Vec::new();
    for (count, what) in [
        (port.stale, "frames from before the start, or of another generator"),
        (port.misdirected, "frames of this generator that belong to other ports"),
        (port.corrupt, "frames of this generator that were altered"),
    ] {
        if count > 0 {
            lines.push(format!("port {}: {count} {what}", port.name));
        }
    }
    if let Some(Capture { matched, stored, dropped, refused, .. }) = &port.capture {
        if dropped + refused > 0 {
            lines.push(format!(
                "port {}: {matched} frames to capture: {stored} are in the file, {dropped} were dropped because writing was too slow, {refused} because the file was full",
                port.name
            ));
        }
    }
    lines
}

fn port(port: &Port) -> Value {
    let mut value = json!({
        "name": port.name,
        "location": port.location,
        "link": if port.up { "up" } else { "down" },
        "sent": port.sent,
        "received": port.received,
        "foreign": port.foreign,
        "stale": port.stale,
        "misdirected": port.misdirected,
        "corrupt": port.corrupt,
    });
    if let Some(obstacle) = &port.obstacle {
        value["obstacle"] = json!(obstacle);
    }
    if let Some(capture) = &port.capture {
        value["capture"] = json!({
            "matched": capture.matched,
            "stored": capture.stored,
            "dropped": capture.dropped,
            "refused": capture.refused,
            "error": capture.error,
        });
    }
    value
}
