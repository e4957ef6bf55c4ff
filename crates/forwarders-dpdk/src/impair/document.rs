// SPDX-License-Identifier: BSD-3-Clause
//! What `--json-stats` writes and `/linerate/impair` answers.

use std::sync::Arc;

use dpdk::PortControl;
use dpdk::telemetry::Value;

use super::counters::{PathCounters, entries, total};
use crate::document::{clock, dict, ethdev, header};
use crate::polling::{self, QueueFigures};

/// Name and version of the format. The number is increased when readers must be changed.
const SCHEMA: &str = "linerate/impair-stats-1";

/// Where the figures come from.
pub(super) struct Document<'r> {
    pub(super) ports: &'r [PortControl<'r>],
    pub(super) counters: &'r [Arc<PathCounters>],
    pub(super) figures: &'r [Arc<QueueFigures>],
}

impl Document<'_> {
    /// The figures now.
    pub(super) fn value(&self, ended: bool) -> Value {
        let paths = self.counters.iter().map(|counters| self.path(counters));
        let paths = Value::List(paths.collect());
        let mut all = header(SCHEMA, ended);
        all.extend([
            ("total", dict(entries(total_of(self.counters)).collect())),
            ("paths", paths),
            ("polling", polling::entries(self.figures)),
            ("clock", clock()),
        ]);
        dict(all)
    }

    fn path(&self, counters: &PathCounters) -> Value {
        let mut all = path_entries(counters);
        let control = self.ports.iter().find(|port| port.id().index() == counters.rx_port);
        let name = control.and_then(|control| control.id().name());
        all.extend(name.map(|name| ("name", Value::String(name))));
        let stats = control.and_then(|control| control.stats().ok());
        all.extend(stats.map(|stats| ("ethdev", ethdev(&stats))));
        dict(all)
    }
}

/// The answer to `/linerate/impair`: the sums, or with a port's number the counts of the path that
/// receives on it. `None` if there is none. (DPDK 22.11 does not support nested dictionaries.)
pub(super) fn answer(counters: &[Arc<PathCounters>], parameter: &str) -> Option<Value> {
    if parameter.is_empty() {
        return Some(dict(entries(total_of(counters)).collect()));
    }
    let port: u16 = parameter.parse().ok()?;
    let path = counters.iter().find(|path| path.rx_port == port)?;
    Some(dict(path_entries(path)))
}

fn total_of(counters: &[Arc<PathCounters>]) -> super::counters::Values {
    total(counters.iter().map(Arc::as_ref))
}

fn path_entries(counters: &PathCounters) -> Vec<(&'static str, Value)> {
    let ports = [("rx_port", counters.rx_port), ("tx_port", counters.tx_port)];
    let ports = ports.map(|(name, port)| (name, u64::from(port).into()));
    ports.into_iter().chain(entries(counters.read())).collect()
}
