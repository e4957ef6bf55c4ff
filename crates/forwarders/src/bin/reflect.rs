// SPDX-License-Identifier: BSD-3-Clause
//! `reflect [EAL options] -- [-p PORTMASK] [-P]`; see [`forwarders::reflect`].
#![forbid(unsafe_code)]

use std::process::ExitCode;

use forwarders::program::Program;
use forwarders::reflect;

fn main() -> ExitCode {
    Program { name: "reflect", run: reflect::run }.main()
}
