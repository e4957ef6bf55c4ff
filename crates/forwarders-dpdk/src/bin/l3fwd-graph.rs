// SPDX-License-Identifier: BSD-3-Clause
//! `l3fwd-graph [EAL options] -- -p PORTMASK [options]`; see [`forwarders_dpdk::l3fwd_graph`].
#![forbid(unsafe_code)]

use std::process::ExitCode;

use forwarders_dpdk::l3fwd_graph;
use forwarders_dpdk::program::Program;

fn main() -> ExitCode {
    Program { name: "l3fwd-graph", run: l3fwd_graph::start }.main()
}
