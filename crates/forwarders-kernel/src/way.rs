// SPDX-License-Identifier: BSD-3-Clause
//! The differences between the programs of this crate.

use std::ffi::OsString;
use std::sync::Arc;

use forwarders_common::l2fwd;
use telemetry::Value;

use crate::eal::Device;
use crate::interface::Port;
use crate::lane::{Lane, Place};
use crate::program::ProgramError;
use crate::stats::Told;

/// A path of frames through the kernel, and the program that uses it.
pub(crate) trait Way: Sized {
    /// The program's name.
    const NAME: &'static str;
    /// The prefix of its device names.
    const DRIVER: &'static str;
    /// True if lcores forward; otherwise the kernel does, on CPUs of its choice.
    const HAS_LCORES: bool = true;

    /// Parses the settings of devices and the words after `--`.
    fn read(devices: &[Device], words: Vec<OsString>) -> Result<Self, ProgramError>;

    /// The options of l2fwd.
    fn l2fwd(&self) -> &l2fwd::Options;

    /// Receive queues of a port.
    fn queues(&self) -> u16 {
        1
    }

    /// True if lcores poll all the time.
    fn spins(&self) -> bool {
        false
    }

    /// How frames are received and sent, for `/ethdev/info`.
    fn driver(&self) -> String;

    /// Starts to receive frames on these ports, each of which is in a place.
    fn open(&self, ports: &[Port], places: &[Place]) -> Result<Opened, ProgramError>;
}

/// What forwards, until this is dropped.
pub(crate) struct Opened {
    /// One for each place, in order; none if the kernel forwards alone.
    pub(crate) lanes: Vec<Box<dyn Lane>>,
    /// What is counted.
    pub(crate) stats: Arc<dyn Told>,
    /// What was negotiated for a port, by its number.
    pub(crate) negotiated: Vec<(u16, String)>,
    /// The program's own telemetry commands.
    pub(crate) commands: Vec<OwnCommand>,
}

/// A telemetry command: its name, its help and what answers it.
pub(crate) struct OwnCommand {
    pub(crate) name: &'static str,
    pub(crate) help: &'static str,
    pub(crate) answer: Answer,
}

type Answer = Box<dyn Fn(&str) -> Option<Value> + Send + Sync>;
