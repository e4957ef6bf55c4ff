// SPDX-License-Identifier: BSD-3-Clause
//! Telemetry of a polling core's statistics.

use std::sync::Arc;

use dpdk::Eal;
use dpdk::telemetry::RegisterError;
pub use forwarders_common::polling::{BURST, Meter, QueueFigures, entries};
use forwarders_common::polling::{COMMAND, HELP, answer};

/// Answers `/linerate/polling` with these statistics, and `/linerate/clock`.
///
/// # Errors
/// See [`RegisterError`].
pub fn register(eal: &Eal, figures: Vec<Arc<QueueFigures>>) -> Result<(), RegisterError> {
    let telemetry = eal.telemetry();
    telemetry.register_clock()?;
    telemetry.register(COMMAND, HELP, move |parameters| answer(&figures, parameters))
}
