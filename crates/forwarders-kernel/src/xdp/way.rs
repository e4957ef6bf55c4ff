// SPDX-License-Identifier: BSD-3-Clause
//! `xdp-fwd`.

use std::ffi::OsString;
use std::sync::Arc;

use forwarders_common::l2fwd;
use forwarders_common::options::CommandLine as _;
use forwarders_common::{complain, say_on};
use telemetry::Value;

use super::drops::Drops;
use super::forwarder::Forwarder;
use super::options::{Action, Options};
use super::stats::XdpStats;
use crate::eal::{Device, MAX_PORTS};
use crate::interface::Port;
use crate::lane::Place;
use crate::program::ProgramError;
use crate::way::{Opened, OwnCommand, Way};

pub(crate) struct Xdp {
    options: Options,
}

impl Way for Xdp {
    const NAME: &'static str = "xdp-fwd";
    const DRIVER: &'static str = "net_xdp";
    const HAS_LCORES: bool = false;

    fn read(devices: &[Device], words: Vec<OsString>) -> Result<Self, ProgramError> {
        let mut options = Options::parse(words).inspect_err(|_| say_on!("{}", Options::USAGE))?;
        devices.iter().try_for_each(|device| device.only(&[]))?;
        // No lcore of the program polls any port.
        options.l2fwd.ports_per_lcore = MAX_PORTS;
        Ok(Self { options })
    }

    fn l2fwd(&self) -> &l2fwd::Options {
        &self.options.l2fwd
    }

    fn driver(&self) -> String {
        "xdp".to_owned()
    }

    fn open(&self, ports: &[Port], places: &[Place]) -> Result<Opened, ProgramError> {
        let action = self.options.action;
        let forwarder = Forwarder::start(ports, places, &self.options)?;
        let drops = Drops::of(ports)
            .inspect_err(|error| {
                complain!(
                    "{}: warning: frames that a driver refuses count as sent here ({error})",
                    Self::NAME
                );
            })
            .ok();
        let told = |told: String| format!("{told}, action {}", action.name());
        let negotiated =
            forwarder.running().map(|(port, running)| (port, told(running.told))).collect();
        let forwarder = Arc::new(forwarder);
        let commands = own_commands(&forwarder);
        let ports = places.iter().map(|place| place.rx_port).collect();
        let stats = Arc::new(XdpStats { ports, forwarder, drops });
        Ok(Opened { lanes: Vec::new(), stats, negotiated, commands })
    }
}

fn own_commands(forwarder: &Arc<Forwarder>) -> Vec<OwnCommand> {
    let (told, replaced) = (Arc::clone(forwarder), Arc::clone(forwarder));
    vec![
        OwnCommand {
            name: "/linerate/xdp",
            help: "Action of the XDP programs and mode of each port. Takes no parameters",
            answer: Box::new(move |_| Some(describe(&told))),
        },
        OwnCommand {
            name: "/linerate/xdp/replace",
            help: "Changes the action between two frames. Parameters: redirect, tx, fib or pass",
            answer: Box::new(move |parameters| {
                let action = Action::named(parameters.trim())?;
                match replaced.replace(action) {
                    Ok(()) => Some(describe(&replaced)),
                    Err(error) => Some(Value::dict([("error", Value::String(error.to_string()))])),
                }
            }),
        },
    ]
}

fn describe(forwarder: &Forwarder) -> Value {
    let modes = forwarder.running().map(|(port, running)| {
        Value::dict([("port", u64::from(port).into()), ("mode", running.mode.name().into())])
    });
    Value::dict([
        ("action", forwarder.action().name().into()),
        ("ports", Value::List(modes.collect())),
    ])
}
