// SPDX-License-Identifier: BSD-3-Clause
//! DPDK's part of the files of `--json-stats`: its drivers' counters and its time stamp counter.

use dpdk::telemetry::Value;
use dpdk::{Stats, tsc};
pub(crate) use forwarders_common::document::{Kept, dict, header};

/// The answer to `/linerate/clock`.
pub(crate) fn clock() -> Value {
    forwarders_common::document::clock(tsc::hz())
}

/// A driver's counters.
pub(crate) fn ethdev(stats: &Stats) -> Value {
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
