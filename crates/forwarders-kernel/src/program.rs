// SPDX-License-Identifier: BSD-3-Clause
//! A forwarder from its command line to its exit code.

use std::ffi::OsString;
use std::io;
use std::process::ExitCode;
use std::sync::Arc;

use forwarders_common::console::exit_code;
use forwarders_common::document::Kept;
use forwarders_common::ethernet::mac_text;
use forwarders_common::l2fwd::{self, Document, Plan, PlanError, PortFacts, Screen};
use forwarders_common::options::OptionsError;
use forwarders_common::polling::QueueFigures;
use forwarders_common::stats_file::{StatsFile, StatsFileError};
use forwarders_common::stop::Stop;
use forwarders_common::{complain, say};
use measure::clock;
use telemetry::{Server, ServerError};

use crate::af_packet::{self, AfPacket};
use crate::af_xdp::{self, AfXdp};
use crate::commands::{Facts, commands};
use crate::eal::{Arguments, EalError};
use crate::interface::{InterfaceError, Port};
use crate::lane::{Lane, LaneError, Place, deal};
use crate::lcores;
use crate::run::{ForwardError, Work, forward, watch};
use crate::stats::Told;
use crate::way::{Opened, Way};
use crate::xdp::{self, Xdp};

/// Why a program ended early.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProgramError {
    #[error(transparent)]
    Eal(#[from] EalError),
    #[error("signals: {0}")]
    Signals(#[source] io::Error),
    #[error(transparent)]
    Options(#[from] OptionsError),
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    #[error(transparent)]
    AfPacket(#[from] af_packet::OpenError),
    #[error(transparent)]
    AfXdp(#[from] af_xdp::OpenError),
    #[error(transparent)]
    Xdp(#[from] xdp::OpenError),
    #[error(transparent)]
    Telemetry(#[from] ServerError),
    #[error(transparent)]
    Stats(#[from] StatsFileError),
    #[error(transparent)]
    Forward(#[from] ForwardError),
    #[error(transparent)]
    Lane(#[from] LaneError),
}

/// Runs `af-packet-fwd` with the process's arguments; returns 1 after any error, as the C examples
/// do.
#[must_use]
pub fn af_packet_fwd() -> ExitCode {
    run::<AfPacket>()
}

/// Runs `af-xdp-fwd` in the same way.
#[must_use]
pub fn af_xdp_fwd() -> ExitCode {
    run::<AfXdp>()
}

/// Runs `xdp-fwd` in the same way.
#[must_use]
pub fn xdp_fwd() -> ExitCode {
    run::<Xdp>()
}

fn run<W: Way>() -> ExitCode {
    exit_code(W::NAME, start::<W>(std::env::args_os().skip(1).collect()))
}

fn start<W: Way>(words: Vec<OsString>) -> Result<(), ProgramError> {
    // First, so that a signal in between also ends the program cleanly.
    let stop = Stop::on_signals().map_err(ProgramError::Signals)?;
    let (arguments, rest) = Arguments::read(words, W::DRIVER, &lcores::allowed())?;
    let way = W::read(&arguments.devices, rest)?;
    let period_s = way.l2fwd().period;
    let ports = Port::all(&arguments.devices)?;
    let file = way.l2fwd().json_stats.as_deref().map(StatsFile::open).transpose()?;
    let plan = plan(&arguments, way.l2fwd(), &ports)?;
    let places = deal(&plan, way.queues(), &arguments.lcores, way.l2fwd().ports_per_lcore);
    say_places::<W>(&places, way.queues());
    // Nothing is received on the other ports, and nothing is sent on them.
    let used: Vec<Port> = ports
        .iter()
        .filter(|port| places.iter().any(|place| place.rx_port == port.id))
        .cloned()
        .collect();
    let opened = way.open(&used, &places)?;
    say_ports::<W>(&ports, &plan, &opened);
    let Opened { lanes, stats, commands: own, .. } = opened;

    let figures: Vec<Arc<QueueFigures>> = places
        .iter()
        .filter(|_| W::HAS_LCORES)
        .map(|place| Arc::new(QueueFigures::new(place.lcore, place.rx_port, place.queue)))
        .collect();
    // The telemetry thread may run on any CPU: it is started before this thread is pinned.
    let _server = arguments
        .telemetry
        .then(|| {
            let facts = Facts {
                ports: ports.clone(),
                queues: way.queues(),
                stats: Arc::clone(&stats),
                figures: figures.clone(),
                driver: way.driver(),
            };
            Server::start(&arguments.prefix, commands(facts, own))
        })
        .transpose()?;
    let work = work(&arguments.lcores, &places, lanes, &figures, way.spins());
    let hz = clock::hz();
    let screen = Screen::new(period_s, hz, stats.counted());
    let mut notes = refusals(W::NAME, &used, &*stats);
    let has_left = |port: &Port| stats.has_left(port.id);
    let forward = || match W::HAS_LCORES {
        true => forward(work, arguments.main, screen, &stop).map_err(ProgramError::from),
        false => watch(&used, has_left, &mut notes, screen, &stop).map_err(ProgramError::from),
    };
    let outcome = match &file {
        None => forward(),
        Some(file) => {
            let facts = |id| facts(&ports, &*stats, id);
            let document = Document {
                plan: &plan,
                counters: stats.counted(),
                figures: &figures,
                tsc_hz: hz,
                facts,
            };
            let value = |ended| document.value(ended);
            Kept { program: W::NAME, file, period_s, value }.during(forward)
        }
    };
    stop.announce();
    outcome?;
    say!("Bye...");
    Ok(())
}

/// Assigns ports to lcores.
fn plan(
    arguments: &Arguments,
    options: &l2fwd::Options,
    ports: &[Port],
) -> Result<Plan, PlanError> {
    say!("MAC updating {}", if options.mac_updating { "enabled" } else { "disabled" });
    let present: Vec<u16> = ports.iter().map(|port| port.id).collect();
    let plan = Plan::new(options, &present, &arguments.lcores)?;
    if plan.odd {
        say!("Notice: odd number of ports in portmask.");
    }
    Ok(plan)
}

/// Printed as the C example prints it.
fn say_places<W: Way>(places: &[Place], queues: u16) {
    for Place { lcore, rx_port, tx_port, queue } in places {
        let queue = if queues > 1 { format!(" queue {queue}") } else { String::new() };
        let lcore = if W::HAS_LCORES { format!("Lcore {lcore}: ") } else { String::new() };
        say!("{lcore}RX port {rx_port}{queue} TX port {tx_port}");
    }
}

fn say_ports<W: Way>(ports: &[Port], plan: &Plan, opened: &Opened) {
    for port in ports {
        let Port { id, iface, .. } = port;
        if !plan.paths.iter().any(|path| path.rx_port == *id) {
            say!("Skipping disabled port {id}");
            continue;
        }
        say!("Initializing port {id}... done: ");
        say!("Port {id}, MAC address: {}\n", mac_text(port.mac));
        for (_, told) in opened.negotiated.iter().filter(|(of, _)| of == id) {
            say!("Port {id}: {told}");
        }
        if !port.now().is_some_and(|now| now.is_up) {
            complain!("{}: warning: {iface} is down; ip link set {iface} up", W::NAME);
        }
    }
}

/// Reports, once for each port, that its driver refuses frames.
fn refusals<'s>(
    program: &'static str,
    ports: &'s [Port],
    stats: &'s dyn Told,
) -> impl FnMut() -> Option<String> {
    let mut told = Vec::new();
    move || {
        stats.refresh();
        let refuses = |port: &&Port| stats.refused(port.id) > 0 && !told.contains(&port.id);
        let Port { id, iface, .. } = ports.iter().find(refuses)?;
        told.push(*id);
        Some(format!(
            "{program}: warning: {iface} refuses frames (tx_refused). Those longer than its MTU; all while it \
             is down; some when it has no room. A veth refuses all unless its other end polls: ethtool -K PEER gro on"
        ))
    }
}

/// The data that DPDK reports about its ports.
fn facts(ports: &[Port], stats: &dyn Told, id: u16) -> PortFacts {
    let port = ports.iter().find(|port| port.id == id);
    PortFacts { name: port.map(|port| port.device.clone()), ethdev: stats.ethdev(id) }
}

/// Lanes, by the lcore that works on them.
fn work(
    lcores: &[u32],
    places: &[Place],
    lanes: Vec<Box<dyn Lane>>,
    figures: &[Arc<QueueFigures>],
    spin: bool,
) -> Vec<Work> {
    let mut all: Vec<Work> =
        lcores.iter().map(|lcore| Work { lcore: *lcore, lanes: Vec::new(), spin }).collect();
    for ((place, lane), figures) in places.iter().zip(lanes).zip(figures) {
        if let Some(work) = all.iter_mut().find(|work| work.lcore == place.lcore) {
            work.lanes.push((lane, Arc::clone(figures)));
        }
    }
    all.retain(|work| !work.lanes.is_empty());
    all
}
