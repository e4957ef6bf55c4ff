// SPDX-License-Identifier: BSD-3-Clause
//! `reflect [EAL options] -- [-p PORTMASK] [-P]`; see [`forwarders::reflect`].
#![forbid(unsafe_code)]

use std::process::ExitCode;

use dpdk::Eal;
use forwarders::reflect::{self, Options, USAGE};
use forwarders::stop::Stop;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("reflect: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let (eal, arguments) = Eal::init(std::env::args_os())?;
    let stop = Stop::on_signals()?;
    let options = Options::parse(arguments).inspect_err(|_| print!("{USAGE}"))?;
    reflect::run(&eal, &options, &stop)?;
    Ok(())
}
