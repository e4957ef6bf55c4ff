// SPDX-License-Identifier: BSD-3-Clause
//! The commands of the telemetry socket: DPDK's commands about ports, and those that all forwarders
//! of this project have.

use std::sync::Arc;

use forwarders_common::document::clock;
use forwarders_common::ethernet::mac_text;
use forwarders_common::polling::{self, QueueFigures};
use measure::clock::hz;
use telemetry::{Commands, Value};

use crate::interface::Port;
use crate::stats::Told;
use crate::way::OwnCommand;

/// The data that the commands return.
pub(crate) struct Facts {
    pub(crate) ports: Vec<Port>,
    pub(crate) queues: u16,
    pub(crate) stats: Arc<dyn Told>,
    pub(crate) figures: Vec<Arc<QueueFigures>>,
    /// How frames are received and sent.
    pub(crate) driver: String,
}

/// The commands that a forwarder answers: these, and those in `own`.
pub(crate) fn commands(facts: Facts, own: Vec<OwnCommand>) -> Commands {
    let facts = Arc::new(facts);
    let with = |answer: fn(&Facts, &str) -> Option<Value>| {
        let facts = Arc::clone(&facts);
        move |parameters: &str| answer(&facts, parameters)
    };
    let version = concat!("linerate ", env!("CARGO_PKG_VERSION"));
    let commands = Commands::new(version)
        .with(
            "/ethdev/list",
            "Returns list of available ethdev ports. Takes no parameters",
            with(list),
        )
        .with(
            "/ethdev/stats",
            "Returns the common stats for a port. Parameters: int port_id",
            with(stats),
        )
        .with(
            "/ethdev/xstats",
            "Returns where the frames of a port went. Parameters: int port_id",
            with(xstats),
        )
        .with(
            "/ethdev/link_status",
            "Returns the link status for a port. Parameters: int port_id",
            with(link_status),
        )
        .with(
            "/ethdev/info",
            "Returns the device info for a port. Parameters: int port_id",
            with(info),
        )
        .with(polling::COMMAND, polling::HELP, with(polls))
        .with("/linerate/clock", "Rate of the TSC and cost of reading it", |_| Some(clock(hz())));
    let all = own.into_iter();
    all.fold(commands, |commands, each| commands.with(each.name, each.help, each.answer))
}

impl Facts {
    fn port(&self, parameters: &str) -> Option<&Port> {
        let id: u16 = parameters.trim().parse().ok()?;
        self.ports.iter().find(|port| port.id == id)
    }
}

fn list(facts: &Facts, _parameters: &str) -> Option<Value> {
    Some(Value::Numbers(facts.ports.iter().map(|port| port.id.into()).collect()))
}

fn stats(facts: &Facts, parameters: &str) -> Option<Value> {
    let port = facts.port(parameters)?.id;
    let Value::Dict(mut entries) = facts.stats.ethdev(port)? else { return None };
    let queues = facts.stats.by_queue(port).into_iter();
    entries.extend(queues.map(|(name, value)| (name.to_owned(), value)));
    Some(Value::Dict(entries))
}

fn xstats(facts: &Facts, parameters: &str) -> Option<Value> {
    facts.stats.xstats(facts.port(parameters)?.id)
}

/// Without a speed: virtual interfaces have none.
fn link_status(facts: &Facts, parameters: &str) -> Option<Value> {
    let port = facts.port(parameters)?;
    let up = port.now().is_some_and(|now| now.is_up && now.has_carrier);
    Some(Value::dict([("status", if up { "UP" } else { "DOWN" }.into())]))
}

fn info(facts: &Facts, parameters: &str) -> Option<Value> {
    let port = facts.port(parameters)?;
    Some(Value::dict([
        ("name", Value::String(port.device.clone())),
        ("interface", Value::String(port.iface.clone())),
        ("driver", Value::String(facts.driver.clone())),
        ("port_id", u64::from(port.id).into()),
        ("nb_rx_queues", u64::from(facts.queues).into()),
        ("nb_tx_queues", u64::from(facts.queues).into()),
        ("mac_addr", Value::String(mac_text(port.mac))),
        ("mtu", u64::from(port.now().map_or(port.mtu, |now| now.mtu)).into()),
    ]))
}

fn polls(facts: &Facts, parameters: &str) -> Option<Value> {
    polling::answer(&facts.figures, parameters)
}
