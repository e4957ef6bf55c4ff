// SPDX-License-Identifier: BSD-3-Clause
//! `reflect [EAL options] -- [-p PORTMASK] [-P]`; see [`forwarders_dpdk::reflect`].
#![forbid(unsafe_code)]

use std::process::ExitCode;

use forwarders_dpdk::program::Program;
use forwarders_dpdk::reflect;

fn main() -> ExitCode {
    Program { name: "reflect", run: reflect::run }.main()
}
