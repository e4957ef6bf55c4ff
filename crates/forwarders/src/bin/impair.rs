// SPDX-License-Identifier: BSD-3-Clause
//! `impair [EAL options] -- [effects]`; see [`forwarders::impair`].
#![forbid(unsafe_code)]

use std::process::ExitCode;

use forwarders::impair::{self, Options, USAGE};
use forwarders::program::Program;

fn main() -> ExitCode {
    let parse = Options::parse::<Vec<_>>;
    Program { name: "impair", usage: USAGE, parse, run: impair::start }.main()
}
