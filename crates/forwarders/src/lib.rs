// SPDX-License-Identifier: BSD-3-Clause
//! What the forwarders share: their command lines, their ports, their figures and their end.
//!
//! Every forwarder is run as DPDK's C examples are, `prog [EAL options] -- [options]`, answers the
//! telemetry commands `/linerate/polling` and `/linerate/clock`, and ends cleanly on SIGINT and
//! SIGTERM. There is no `unsafe` here.
#![forbid(unsafe_code)]

mod console;
mod document;
pub mod error;
pub mod ethernet;
pub mod getopt;
pub mod impair;
mod json;
pub mod l2fwd;
mod lcores;
pub mod memif;
pub mod options;
pub mod polling;
pub mod ports;
pub mod program;
pub mod reflect;
pub mod stats_file;
pub mod stop;
