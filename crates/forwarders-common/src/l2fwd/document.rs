// SPDX-License-Identifier: BSD-3-Clause
//! The content of `--json-stats`: the counts of the statistics screen, the ports' own counters and
//! the answers of the telemetry commands `/linerate/polling` and `/linerate/clock`.

use std::sync::Arc;

use telemetry::Value;

use super::counters::{Counted, Counts};
use super::plan::Plan;
use crate::document::{clock, dict, header};
use crate::polling::{self, QueueFigures};

/// Name and version of the format. The number is increased when readers must be changed.
const SCHEMA: &str = "linerate/l2fwd-stats-1";

/// What a port itself reports. A value that it does not report is absent, never zero.
#[derive(Default)]
pub struct PortFacts {
    /// Its name.
    pub name: Option<String>,
    /// The counters of `/ethdev/stats`.
    pub ethdev: Option<Value>,
}

/// Where the values come from.
pub struct Document<'r, F> {
    /// The pairs of ports.
    pub plan: &'r Plan,
    /// The counts of the lcores.
    pub counters: &'r dyn Counted,
    /// The statistics of their polls.
    pub figures: &'r [Arc<QueueFigures>],
    /// Cycles of the time stamp counter per second.
    pub tsc_hz: u64,
    /// What a port itself reports.
    pub facts: F,
}

impl<F: Fn(u16) -> PortFacts> Document<'_, F> {
    /// The present values; `ended` is true for the last ones.
    pub fn value(&self, ended: bool) -> Value {
        let mut total = Counts::default();
        let ports = self.counters.read().into_iter().map(|(port, counts)| {
            total.add(counts);
            self.port(port, counts)
        });
        let ports = Value::List(ports.collect());
        let mut entries = header(SCHEMA, ended);
        entries.extend([
            ("total", Value::dict(counts_entries(total))),
            ("ports", ports),
            ("polling", polling::entries(self.figures)),
            ("clock", clock(self.tsc_hz)),
        ]);
        dict(entries)
    }

    fn port(&self, port: u16, counts: Counts) -> Value {
        let facts = (self.facts)(port);
        let mut entries: Vec<(&str, Value)> = vec![("port", u64::from(port).into())];
        entries.extend(facts.name.map(|name| ("name", Value::String(name))));
        let path = self.plan.paths.iter().find(|path| path.rx_port == port);
        entries.extend(path.map(|path| ("tx_port", u64::from(path.tx_port).into())));
        entries.extend(counts_entries(counts));
        entries.extend(facts.ethdev.map(|stats| ("ethdev", stats)));
        dict(entries)
    }
}

fn counts_entries(counts: Counts) -> [(&'static str, Value); 3] {
    [
        ("sent", counts.sent.into()),
        ("received", counts.received.into()),
        ("dropped", counts.dropped.into()),
    ]
}
