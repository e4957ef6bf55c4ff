// SPDX-License-Identifier: BSD-3-Clause
//! A forwarder from its command line to its exit code.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use dpdk::{Eal, EalError, PdumpError, PortError};

use crate::error::RunError;
use crate::memif::Memif;
use crate::options::{CommandLine, OptionsError};
use crate::stop::Stop;
use forwarders_common::console::exit_code;
use forwarders_common::{complain, say_on};

/// A forwarder's name, and the function that runs it.
pub struct Program<O, P> {
    /// The program's name, with which errors begin.
    pub name: &'static str,
    /// Forwards until the flag is set.
    pub run: fn(&Eal, &O, &Stop) -> Result<(), RunError<P>>,
}

/// Why a program ended early.
#[derive(Debug, thiserror::Error)]
enum ProgramError<P: fmt::Debug + fmt::Display> {
    #[error(transparent)]
    Eal(#[from] EalError),
    #[error("signals: {0}")]
    Signals(#[from] io::Error),
    #[error(transparent)]
    Options(#[from] OptionsError),
    #[error("{0}")]
    Run(RunError<P>),
    #[error(
        "port {port}: no memif server listens on {}, of which {device} is a client; start the server first",
        .socket.display()
    )]
    NoMemifServer { port: u16, device: String, socket: PathBuf },
}

impl<O: CommandLine, P: fmt::Debug + fmt::Display> Program<O, P> {
    /// Runs the program with the process's arguments; returns 1 after any error, as the C examples
    /// do.
    #[must_use]
    pub fn main(&self) -> ExitCode {
        exit_code(self.name, self.start(std::env::args_os().collect()))
    }

    fn start(&self, arguments: Vec<OsString>) -> Result<(), ProgramError<P>> {
        let memifs = Memif::on_command_line(&arguments);
        for memif in &memifs {
            memif.remove_stale_socket();
        }
        // First, so that a signal while EAL starts also ends the program cleanly.
        let stop = Stop::on_signals()?;
        let (eal, arguments) = Eal::init(arguments)?;
        match eal.pdump() {
            // If no other process can capture here, that needs no message.
            Ok(()) | Err(PdumpError::NoHugepages | PdumpError::Alone) => {}
            Err(error) => complain!("{}: {error}; dpdk-dumpcap will see nothing", self.name),
        }
        let options = O::parse(arguments).inspect_err(|_| say_on!("{}", O::USAGE))?;
        (self.run)(&eal, &options, &stop).map_err(|error| explain(error, &memifs))
    }
}

/// The reason, where the driver only returns `EPERM`.
fn explain<P: fmt::Debug + fmt::Display>(error: RunError<P>, memifs: &[Memif]) -> ProgramError<P> {
    if let RunError::Port(PortError::Call { port, call: "rte_eth_dev_start", .. }) = &error {
        let name = port.name().unwrap_or_default();
        let client = memifs.iter().find(|memif| memif.name == name && !memif.server);
        if let Some(memif) = client.filter(|memif| !memif.is_served()) {
            return ProgramError::NoMemifServer {
                port: port.index(),
                device: name,
                socket: memif.socket.clone(),
            };
        }
    }
    ProgramError::Run(error)
}
