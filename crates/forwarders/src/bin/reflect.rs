// SPDX-License-Identifier: BSD-3-Clause
//! `reflect [EAL options] -- [-p PORTMASK] [-P]`; see [`forwarders::reflect`].
#![forbid(unsafe_code)]

use std::process::ExitCode;

use forwarders::program::Program;
use forwarders::reflect::{self, Options, USAGE};

fn main() -> ExitCode {
    let parse = Options::parse::<Vec<_>>;
    Program { name: "reflect", usage: USAGE, parse, run: reflect::run }.main()
}
