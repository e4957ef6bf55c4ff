// SPDX-License-Identifier: BSD-3-Clause
//! The parts of l2fwd that do not depend on the kind of port: DPDK's example of that name, with its
//! command line and semantics.
//!
//! Ports are paired: frames received on one are sent on the other, with rewritten MAC addresses
//! ([`ethernet`](crate::ethernet)).

mod counters;
mod document;
mod options;
mod plan;
mod screen;

pub use counters::{Counted, Counts};
pub use document::{Document, PortFacts};
pub use options::{OPTIONS, Options, USAGE};
pub use plan::{Path, Plan, PlanError};
pub use screen::Screen;
