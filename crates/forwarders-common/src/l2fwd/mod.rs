// SPDX-License-Identifier: BSD-3-Clause
//! What l2fwd is on any kind of port: DPDK's example of that name, with its command line and its
//! semantics.
//!
//! Ports are paired; what comes in on one goes out on the other, its addresses rewritten
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
