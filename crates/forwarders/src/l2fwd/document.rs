// SPDX-License-Identifier: BSD-3-Clause
//! What `--json-stats` writes, and the thread that writes it each period.
//!
//! The figures are those of the statistics screen, of `rte_eth_stats_get` and of the telemetry
//! commands `/linerate/polling` and `/linerate/clock`. What a driver does not tell is absent, never
//! zero.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use dpdk::telemetry::Value;
use dpdk::{PortControl, Stats, tsc};

use super::counters::{Counters, Counts};
use super::plan::Plan;
use crate::console::complain;
use crate::polling::{self, QueueFigures};
use crate::stats_file::{StatsFile, StatsFileError};

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
        // None when the clock is before 1970: absent then.
        let time = SystemTime::now().duration_since(UNIX_EPOCH).ok();
        let mut entries = vec![
            ("schema", SCHEMA.into()),
            ("state", if ended { "ended" } else { "forwarding" }.into()),
            ("pid", u64::from(std::process::id()).into()),
        ];
        entries.extend(time.map(|time| ("unix_time_ns", (time.as_nanos() as u64).into())));
        let clock = [("tsc_hz", tsc::hz().into()), ("clock_cost_cycles", tsc::cost().into())];
        entries.extend([
            ("total", Value::dict(counts_entries(total))),
            ("ports", ports),
            ("polling", polling::entries(self.figures)),
            ("clock", Value::dict(clock)),
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

    /// Writes the file now and each `period`, until the other end of `ended` is gone. A write that
    /// fails is reported once and tried again.
    pub(super) fn keep(&self, file: &StatsFile, period: Option<Duration>, ended: &Receiver<()>) {
        let mut complained = false;
        loop {
            if let Err(error) = self.write(file, false) {
                if !complained {
                    complain!("l2fwd: {error} (forwarding goes on)");
                }
                complained = true;
            }
            let waited = match period {
                Some(period) => ended.recv_timeout(period),
                None => ended.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            if waited != Err(RecvTimeoutError::Timeout) {
                return;
            }
        }
    }

    /// Writes the file once.
    pub(super) fn write(&self, file: &StatsFile, ended: bool) -> Result<(), StatsFileError> {
        file.write(&self.value(ended))
    }
}

fn dict(entries: Vec<(&str, Value)>) -> Value {
    Value::Dict(entries.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

fn counts_entries(counts: Counts) -> [(&'static str, Value); 3] {
    [
        ("sent", counts.sent.into()),
        ("received", counts.received.into()),
        ("dropped", counts.dropped.into()),
    ]
}

fn ethdev(stats: &Stats) -> Value {
    Value::dict([
        ("ipackets", stats.ipackets.into()),
        ("opackets", stats.opackets.into()),
        ("ibytes", stats.ibytes.into()),
        ("obytes", stats.obytes.into()),
        ("imissed", stats.imissed.into()),
        ("ierrors", stats.ierrors.into()),
        ("oerrors", stats.oerrors.into()),
        ("rx_nombuf", stats.rx_nombuf.into()),
    ])
}
