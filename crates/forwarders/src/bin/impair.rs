// SPDX-License-Identifier: BSD-3-Clause
//! `impair [EAL options] -- [effects]`; see [`forwarders::impair`].
#![forbid(unsafe_code)]

use std::process::ExitCode;

use forwarders::impair;
use forwarders::program::Program;

fn main() -> ExitCode {
    Program { name: "impair", run: impair::start }.main()
}
