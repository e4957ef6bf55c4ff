// SPDX-License-Identifier: BSD-3-Clause
//! The sender of the published test of PF_PACKET: it sends one frame, waits for its return, and
//! reads the time stamp counter before and after.
//!
//! There is one frame at a time. A returned frame is recognised by a token in it, whatever its
//! addresses: it is meant for forwarders that echo.

mod exchange;
mod options;
mod report;
mod request;

use std::io;
use std::process::ExitCode;

use forwarders_common::console::exit_code;
use forwarders_common::options::{CommandLine as _, OptionsError};
use forwarders_common::say_on;
use forwarders_common::stats_file::{StatsFile, StatsFileError};
use forwarders_common::stop::Stop;

use exchange::Exchange;
use options::Options;
use request::Request;

const NAME: &str = "af-packet-ping";

/// Why the program ended early.
#[derive(Debug, thiserror::Error)]
enum PingError {
    #[error("signals: {0}")]
    Signals(#[source] io::Error),
    #[error(transparent)]
    Options(#[from] OptionsError),
    #[error("--iface is missing: the network interface to send on")]
    NoInterface,
    #[error("--iface {0}: no such network interface in this network namespace; see ip -br link")]
    Missing(String),
    #[error("--iface {0}: it has no Ethernet address to send from")]
    NotEthernet(String),
    #[error("--iface {0}: it is down; ip link set {0} up")]
    Down(String),
    #[error("--size {size}: {iface} sends frames of at most {most} bytes with the FCS")]
    TooLong { iface: String, size: usize, most: usize },
    #[error(
        "packet sockets need the capability CAP_NET_RAW; run as root, or: setcap cap_net_raw+ep PROGRAM"
    )]
    NotAllowed,
    #[error("{iface}: {what}: {source}")]
    System { iface: String, what: &'static str, source: io::Error },
    #[error(transparent)]
    Out(#[from] StatsFileError),
}

/// Runs `af-packet-ping` with the process's arguments; returns 1 after any error.
#[must_use]
pub fn af_packet_ping() -> ExitCode {
    exit_code(NAME, start())
}

fn start() -> Result<(), PingError> {
    let stop = Stop::on_signals().map_err(PingError::Signals)?;
    let words = std::env::args_os().skip(1);
    let options = Options::parse(words).inspect_err(|_| say_on!("{}", Options::USAGE))?;
    let iface = options.iface.clone().ok_or(PingError::NoInterface)?;
    let system = |what| {
        let iface = iface.clone();
        move |source| PingError::System { iface, what, source }
    };
    let found = host::interface(&iface)
        .map_err(system("ask for it"))?
        .ok_or_else(|| PingError::Missing(iface.clone()))?;
    let mac = found.mac.filter(|mac| *mac != [0; 6]);
    let mac = mac.ok_or_else(|| PingError::NotEthernet(iface.clone()))?;
    if !found.is_up {
        return Err(PingError::Down(iface));
    }
    let most = found.mtu as usize + request::ETHERNET + request::FCS;
    if options.size > most {
        return Err(PingError::TooLong { iface, size: options.size, most });
    }
    let file = options.out.as_deref().map(|path| StatsFile::open_for("--out", path)).transpose()?;
    let request = Request::new(options.kind, mac, options.to, options.size);
    let mut exchange = Exchange::open(&iface, found.index, request)?;
    exchange.run(&options, &stop)?;
    let books = exchange.books();
    report::say(&options, &iface, books);
    if let Some(file) = file {
        file.write(&report::document(&options, &iface, books))?;
    }
    Ok(())
}
