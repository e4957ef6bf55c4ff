// SPDX-License-Identifier: BSD-3-Clause
//! Forwarders on DPDK, and what they share: ports, lcores, and the program from its command line to
//! its end. Code that does not depend on DPDK is in `linerate-forwarders-common`.
//!
//! Every forwarder is run as DPDK's C examples are, `prog [EAL options] -- [options]`, answers the
//! telemetry commands `/linerate/polling` and `/linerate/clock`, and ends cleanly on SIGINT and
//! SIGTERM. There is no `unsafe` here.
#![forbid(unsafe_code)]

mod document;
pub mod error;
pub mod ethernet;
pub mod impair;
pub mod l2fwd;
pub mod l3fwd_graph;
mod lcores;
pub mod memif;
pub mod polling;
pub mod ports;
pub mod program;
pub mod reflect;

pub use forwarders_common::{getopt, options, stats_file, stop};
