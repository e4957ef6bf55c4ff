// SPDX-License-Identifier: BSD-3-Clause
//! Why a forwarder did not start or failed at its end.

use dpdk::telemetry::RegisterError;
use dpdk::{LaunchError, MempoolError, PortError};

use crate::stats_file::StatsFileError;

/// Errors after the options were read. `P` is the error if they do not fit the ports and lcores.
#[derive(Debug, thiserror::Error)]
pub enum RunError<P> {
    /// The options do not fit.
    #[error("{0}")]
    Plan(P),
    /// The pool could not be made.
    #[error("Cannot init mbuf pool: {0}; give DPDK more memory (-m) or use fewer ports")]
    Pool(#[from] MempoolError),
    /// A port failed.
    #[error(transparent)]
    Port(#[from] PortError),
    /// Telemetry refused a command.
    #[error(transparent)]
    Telemetry(#[from] RegisterError),
    /// An lcore did not start.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// A queue was taken already: two paths need it.
    #[error("ports {0} to {1}: a queue is in use on another path")]
    Unwired(u16, u16),
    /// The statistics could not be written.
    #[error(transparent)]
    Stats(#[from] StatsFileError),
}
