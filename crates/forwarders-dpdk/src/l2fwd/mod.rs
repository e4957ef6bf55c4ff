// SPDX-License-Identifier: BSD-3-Clause
//! Layer 2 forwarding: DPDK's l2fwd example, with its command line and its semantics.
//!
//! Ports are paired: packets received on one are sent on the other, with the destination MAC
//! address replaced by `02:00:00:00:00:PORT` and the source address by the sending port's, through
//! a TX buffer of 32 packets that is drained every 100 us. `--burst-forwarding` sends each received
//! burst at once instead. `--json-stats` writes the counters to a file (`docs/run-l2fwd.md`
//! describes it).
//!
//! The main lcore starts the ports, launches the other lcores and polls its own share; an ordinary
//! thread writes the file. All of them end when the [`Stop`](crate::stop::Stop) is set.

mod counters;
mod error;
mod forward;
mod run;
mod wiring;

pub use error::RunError;
pub use forwarders_common::l2fwd::{Options, Path, Plan, PlanError};
pub use run::{packet_pool, run, start};
