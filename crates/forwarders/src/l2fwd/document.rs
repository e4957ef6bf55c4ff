// SPDX-License-Identifier: BSD-3-Clause
//! What `--json-stats` writes: the figures of the statistics screen, of `rte_eth_stats_get` and of the
//! telemetry commands `/linerate/polling` and `/linerate/clock`.

use std::sync::Arc;

use dpdk::PortControl;
use dpdk::telemetry::Value;

use super::counters::{Counters, Counts};
use super::plan::Plan;
use crate::document::{clock, dict, ethdev, header};
use crate::polling::{self, QueueFigures};

/// Name and version of the format. The number goes up when a reader has to change.
const SCHEMA: &str = "linerate/l2fwd-stats-1";

/// Where the figures come from.
pub(super) struct Document<'r> {
    pub(super) plan: &'r Plan,
    pub(super) ports: &'r [PortControl<'r>],
    pub(super) counters: &'r Counters,
    pub(super) figures: &'r [Arc<QueueFigures>],
}

impl Document<'_> {
    /// The figures now.
    pub(super) fn value(&self, ended: bool) -> Value {
        let mut total = Counts::default();
        let ports = self.counters.iter().map(|(port, counters)| {
            let counts = counters.read();
            total.add(counts);
            self.port(*port, counts)
        });
        let ports = Value::List(ports.collect());
        let mut entries = header(SCHEMA, ended);
        entries.extend([
            ("total", Value::dict(counts_entries(total))),
            ("ports", ports),
            ("polling", polling::entries(self.figures)),
            ("clock", clock()),
        ]);
        dict(entries)
    }

    fn port(&self, port: u16, counts: Counts) -> Value {
        let mut entries: Vec<(&str, Value)> = vec![("port", u64::from(port).into())];
        let control = self.ports.iter().find(|control| control.id().index() == port);
        let name = control.and_then(|control| control.id().name());
        entries.extend(name.map(|name| ("name", Value::String(name))));
        let path = self.plan.paths.iter().find(|path| path.rx_port == port);
        entries.extend(path.map(|path| ("tx_port", u64::from(path.tx_port).into())));
        entries.extend(counts_entries(counts));
        let stats = control.and_then(|control| control.stats().ok());
        entries.extend(stats.map(|stats| ("ethdev", ethdev(&stats))));
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
