// SPDX-License-Identifier: BSD-3-Clause
//! `l2fwd [EAL options] -- -p PORTMASK [options]`; see [`forwarders_dpdk::l2fwd`].
#![forbid(unsafe_code)]

use std::process::ExitCode;

use forwarders_dpdk::l2fwd;
use forwarders_dpdk::program::Program;

fn main() -> ExitCode {
    Program { name: "l2fwd", run: l2fwd::start }.main()
}
