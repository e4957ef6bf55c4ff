// SPDX-License-Identifier: BSD-3-Clause
//! `impair [EAL options] -- [effects]`; see [`forwarders_dpdk::impair`].
#![forbid(unsafe_code)]

use std::process::ExitCode;

use forwarders_dpdk::impair;
use forwarders_dpdk::program::Program;

fn main() -> ExitCode {
    Program { name: "impair", run: impair::start }.main()
}
