// SPDX-License-Identifier: BSD-3-Clause
//! `l2fwd [EAL options] -- -p PORTMASK [options]`; see [`forwarders::l2fwd`].
#![forbid(unsafe_code)]

use std::process::ExitCode;

use dpdk::Eal;
use forwarders::l2fwd::{self, Options, USAGE};
use forwarders::stop::Stop;

fn main() -> ExitCode {
    match run() {
        Ok(()) => {
            println!("Bye...");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("l2fwd: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let (eal, arguments) = Eal::init(std::env::args_os())?;
    let stop = Stop::on_signals()?;
    let options = Options::parse(arguments).inspect_err(|_| print!("{USAGE}"))?;
    let pool =
        l2fwd::packet_pool(&eal).map_err(|error| format!("Cannot init mbuf pool: {error}"))?;
    l2fwd::run(&eal, &pool, &options, &stop)?;
    Ok(())
}
