// SPDX-License-Identifier: BSD-3-Clause
//! `l2fwd [EAL options] -- -p PORTMASK [options]`; see [`forwarders::l2fwd`].
#![forbid(unsafe_code)]

use std::process::ExitCode;

use forwarders::l2fwd::{self, Options, USAGE};
use forwarders::program::Program;

fn main() -> ExitCode {
    let parse = Options::parse::<Vec<_>>;
    Program { name: "l2fwd", usage: USAGE, parse, run: l2fwd::start }.main()
}
