// SPDX-License-Identifier: BSD-3-Clause
//! A forwarder from its command line to its exit code.

use std::ffi::OsString;
use std::io;
use std::process::ExitCode;
use std::sync::Arc;

use forwarding::document::Kept;
use forwarding::ethernet::mac_text;
use forwarding::l2fwd::{Document, Plan, PlanError, PortFacts, Screen};
use forwarding::options::{CommandLine, OptionsError};
use forwarding::polling::QueueFigures;
use forwarding::stats_file::{StatsFile, StatsFileError};
use forwarding::stop::Stop;
use forwarding::{complain, say, say_on};
use measure::clock;
use telemetry::{Server, ServerError};

use crate::af_packet::{self, Io, OpenError, Opened, Settings};
use crate::commands::{Facts, commands};
use crate::eal::{Arguments, Device, EalError};
use crate::interface::{InterfaceError, Port};
use crate::lane::{Lane, Place, deal};
use crate::lcores;
use crate::options::Options;
use crate::run::{ForwardError, Work, forward};
use crate::stats::PortStats;

/// What devices of packet sockets are called, as in DPDK.
const DRIVER: &str = "net_af_packet";
/// Bytes of a block and frames of a receiving ring without settings.
const BLOCK_BYTES: u32 = 1 << 20;
const FRAMES: u32 = 8192;
/// Bytes that a frame is reckoned with, as DPDK's driver does.
const FRAME_BYTES: u32 = 2048;

/// Why a program ended early.
#[derive(Debug, thiserror::Error)]
enum ProgramError {
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
    Open(#[from] OpenError),
    #[error(transparent)]
    Telemetry(#[from] ServerError),
    #[error(transparent)]
    Stats(#[from] StatsFileError),
    #[error(transparent)]
    Forward(#[from] ForwardError),
}

/// Runs `af-packet-fwd` on the process's arguments; 1 after any mistake, as the C examples.
#[must_use]
pub fn af_packet_fwd() -> ExitCode {
    match start(std::env::args_os().skip(1).collect()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain!("af-packet-fwd: {error}");
            ExitCode::FAILURE
        }
    }
}

fn start(words: Vec<OsString>) -> Result<(), ProgramError> {
    // First, so that a signal in between ends in order too.
    let stop = Stop::on_signals().map_err(ProgramError::Signals)?;
    let (arguments, rest) = Arguments::read(words, DRIVER, &lcores::allowed())?;
    let options = Options::parse(rest).inspect_err(|_| say_on!("{}", Options::USAGE))?;
    let settings = settings(&arguments.devices, &options)?;
    let ports = Port::all(&arguments.devices)?;
    let file = options.l2fwd.json_stats.as_deref().map(StatsFile::open).transpose()?;
    let (plan, places) = plan(&arguments, &options, &ports, settings.queues)?;
    let Opened { lanes, entries, missed } = af_packet::open(&ports, &places, &settings)?;
    say_ports(&ports, &plan);

    let figures: Vec<Arc<QueueFigures>> = places
        .iter()
        .map(|place| Arc::new(QueueFigures::new(place.lcore, place.rx_port, place.queue)))
        .collect();
    let enabled = plan.paths.iter().map(|path| path.rx_port).collect();
    let stats = Arc::new(PortStats::new(enabled, entries, missed));
    // The telemetry thread is to run on any CPU: it is started before this one is pinned.
    let _server = arguments
        .telemetry
        .then(|| {
            let facts = Facts {
                ports: ports.clone(),
                queues: settings.queues,
                stats: Arc::clone(&stats),
                figures: figures.clone(),
                driver: driver(options.io),
            };
            Server::start(&arguments.prefix, commands(facts))
        })
        .transpose()?;
    let work = work(&arguments.lcores, &places, lanes, &figures, options.spin);
    let hz = clock::hz();
    let screen = Screen::new(options.l2fwd.period, hz, &*stats);
    let forward = || forward(work, arguments.main, screen, &stop).map_err(ProgramError::from);
    let outcome = match &file {
        None => forward(),
        Some(file) => {
            let facts = |id| facts(&ports, &stats, id);
            let document =
                Document { plan: &plan, counters: &*stats, figures: &figures, tsc_hz: hz, facts };
            let value = |ended| document.value(ended);
            let period_s = options.l2fwd.period;
            Kept { program: "af-packet-fwd", file, period_s, value }.during(forward)
        }
    };
    stop.announce();
    outcome?;
    say!("Bye...");
    Ok(())
}

fn driver(io: Io) -> &'static str {
    match io {
        Io::ReadWrite => "af_packet read-write",
        Io::Mmsg => "af_packet mmsg",
        Io::Mmap => "af_packet mmap",
    }
}

/// What all devices are set to; they have to agree.
fn settings(devices: &[Device], options: &Options) -> Result<Settings, EalError> {
    let mut agreed: Option<Settings> = None;
    for device in devices {
        device.only(&["qpairs", "blocksz", "framesz", "framecnt", "qdisc_bypass"])?;
        let block_bytes = device.number("blocksz", BLOCK_BYTES, 4096..=1 << 26)?;
        if !block_bytes.is_power_of_two() {
            return Err(device.wrong("blocksz", "not a power of 2"));
        }
        // Frames of TPACKET_V3 have the size that they need.
        device.number("framesz", FRAME_BYTES, 64..=1 << 16)?;
        let frames = device.number("framecnt", FRAMES, 1..=1 << 20)?;
        let per_block = (block_bytes / FRAME_BYTES).max(1);
        let settings = Settings {
            io: options.io,
            fanout: options.fanout,
            queues: device.number("qpairs", 1, 1..=16)? as u16,
            qdisc_bypass: device.number("qdisc_bypass", 1, 0..=1)? == 1,
            promiscuous: options.l2fwd.promiscuous,
            mac_updating: options.l2fwd.mac_updating,
            block_bytes,
            blocks: frames.div_ceil(per_block).max(2),
        };
        if agreed.as_ref().is_some_and(|agreed| *agreed != settings) {
            let why = "has other settings than the device before it; give all the same";
            return Err(EalError::Device(device.name.clone(), why.to_owned()));
        }
        agreed = Some(settings);
    }
    agreed.ok_or(EalError::NoDevices(DRIVER))
}

/// Who does what, printed as the C example prints it.
fn plan(
    arguments: &Arguments,
    options: &Options,
    ports: &[Port],
    queues: u16,
) -> Result<(Plan, Vec<Place>), PlanError> {
    say!("MAC updating {}", if options.l2fwd.mac_updating { "enabled" } else { "disabled" });
    let present: Vec<u16> = ports.iter().map(|port| port.id).collect();
    let plan = Plan::new(&options.l2fwd, &present, &arguments.lcores)?;
    if plan.odd {
        say!("Notice: odd number of ports in portmask.");
    }
    let places = deal(&plan, queues, &arguments.lcores, options.l2fwd.ports_per_lcore);
    for place in &places {
        let queue = if queues > 1 { format!(" queue {}", place.queue) } else { String::new() };
        let Place { lcore, rx_port, tx_port, .. } = place;
        say!("Lcore {lcore}: RX port {rx_port}{queue} TX port {tx_port}");
    }
    Ok((plan, places))
}

fn say_ports(ports: &[Port], plan: &Plan) {
    for port in ports {
        let Port { id, iface, .. } = port;
        if !plan.paths.iter().any(|path| path.rx_port == *id) {
            say!("Skipping disabled port {id}");
            continue;
        }
        say!("Initializing port {id}... done: ");
        say!("Port {id}, MAC address: {}\n", mac_text(port.mac));
        if !port.now().is_some_and(|now| now.is_up) {
            complain!("af-packet-fwd: warning: {iface} is down; ip link set {iface} up");
        }
    }
}

/// What DPDK's ports would tell.
fn facts(ports: &[Port], stats: &PortStats, id: u16) -> PortFacts {
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
