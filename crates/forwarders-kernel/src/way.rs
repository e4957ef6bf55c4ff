// SPDX-License-Identifier: BSD-3-Clause
//! What makes the programs of this crate different from each other.

use std::ffi::OsString;
use std::sync::Arc;

use forwarders_common::l2fwd;
use telemetry::Value;

use crate::eal::Device;
use crate::interface::Port;
use crate::lane::{Lane, Place};
use crate::program::ProgramError;
use crate::stats::Told;

/// A way of frames through the kernel, and the program that takes it.
pub(crate) trait Way: Sized {
    /// The program.
    const NAME: &'static str;
    /// What names of its devices begin with.
    const DRIVER: &'static str;
    /// Whether lcores forward; otherwise the kernel does, on CPUs of its choice.
    const HAS_LCORES: bool = true;

    /// Reads the settings of devices and the words behind `--`.
    fn read(devices: &[Device], words: Vec<OsString>) -> Result<Self, ProgramError>;

    /// What l2fwd is told.
    fn l2fwd(&self) -> &l2fwd::Options;

    /// Receive queues of a port.
    fn queues(&self) -> u16 {
        1
    }

    /// Whether lcores ask for frames all the time.
    fn spins(&self) -> bool {
        false
    }

    /// How frames are received and sent, for `/ethdev/info`.
    fn driver(&self) -> String;

    /// Lets frames in, on these ports, all of which are of a place.
    fn open(&self, ports: &[Port], places: &[Place]) -> Result<Opened, ProgramError>;
}

/// What forwards, until this is dropped.
pub(crate) struct Opened {
    /// One for each place, in their order; none where the kernel forwards alone.
    pub(crate) lanes: Vec<Box<dyn Lane>>,
    /// What is counted.
    pub(crate) stats: Arc<dyn Told>,
    /// What was negotiated for a port, by its number.
    pub(crate) negotiated: Vec<(u16, String)>,
    /// Telemetry commands of the program's own.
    pub(crate) commands: Vec<OwnCommand>,
}

/// A telemetry command: its name, its help and what answers it.
pub(crate) struct OwnCommand {
    pub(crate) name: &'static str,
    pub(crate) help: &'static str,
    pub(crate) answer: Answer,
}

type Answer = Box<dyn Fn(&str) -> Option<Value> + Send + Sync>;
