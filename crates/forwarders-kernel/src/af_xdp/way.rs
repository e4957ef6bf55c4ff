// SPDX-License-Identifier: BSD-3-Clause
//! `af-xdp-fwd`.

use std::ffi::OsString;

use forwarders_common::l2fwd;
use forwarders_common::options::CommandLine as _;
use forwarders_common::say_on;

use super::lanes::{Settings, open};
use super::options::Options;
use super::program::MAX_QUEUES;
use super::socket::Copying;
use crate::eal::{Device, EalError, agreed};
use crate::interface::Port;
use crate::lane::Place;
use crate::program::ProgramError;
use crate::way::{Opened, Way};

pub(crate) struct AfXdp {
    options: Options,
    settings: Settings,
}

impl Way for AfXdp {
    const NAME: &'static str = "af-xdp-fwd";
    const DRIVER: &'static str = "net_af_xdp";

    fn read(devices: &[Device], words: Vec<OsString>) -> Result<Self, ProgramError> {
        let options = Options::parse(words).inspect_err(|_| say_on!("{}", Options::USAGE))?;
        let settings = agreed(devices, Self::DRIVER, |device| settings(device, &options))?;
        Ok(Self { options, settings })
    }

    fn l2fwd(&self) -> &l2fwd::Options {
        &self.options.l2fwd
    }

    fn queues(&self) -> u16 {
        self.settings.queues
    }

    fn spins(&self) -> bool {
        self.options.spin
    }

    fn driver(&self) -> String {
        "af_xdp".to_owned()
    }

    fn open(&self, ports: &[Port], places: &[Place]) -> Result<Opened, ProgramError> {
        Ok(open(ports, places, &self.settings)?)
    }
}

fn settings(device: &Device, options: &Options) -> Result<Settings, EalError> {
    device.only(&["start_queue", "queue_count", "force_copy", "busy_budget"])?;
    let first_queue = device.number("start_queue", 0, 0..=MAX_QUEUES - 1)?;
    let queues = device.number("queue_count", 1, 1..=MAX_QUEUES - first_queue)?;
    let force_copy = device.number("force_copy", 0, 0..=1)? == 1;
    if force_copy && options.copying == Copying::ZeroCopy {
        return Err(device.wrong("force_copy", "and --copy zero exclude each other"));
    }
    let budget = device.number("busy_budget", 0, 0..=u16::MAX.into())?;
    Ok(Settings {
        first_queue: first_queue as u16,
        queues: queues as u16,
        copying: if force_copy { Copying::Copy } else { options.copying },
        mode: options.mode,
        busy_budget: (budget > 0).then_some(budget as u16),
        promiscuous: options.l2fwd.promiscuous,
        mac_updating: options.l2fwd.mac_updating,
        spans: options.spans,
    })
}
