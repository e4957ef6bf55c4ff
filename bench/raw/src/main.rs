// SPDX-License-Identifier: BSD-3-Clause
//! `raw-l2fwd`: l2fwd with its packet path on raw pointers, on one lcore.
//!
//! Command line, pool, ports, figures and addresses are l2fwd's own; only what happens to packets is
//! written again, in `forward.rs`, over `dpdk_sys` instead of `dpdk`. It asks the same
//! questions of each packet, writes the same bytes and keeps the same figures, so that the ratio of l2fwd
//! to this program is what the safe API costs. Runts and shared packets, which l2fwd handles, it passes on
//! as they are: it is for `make bench` only.

mod forward;

use std::process::ExitCode;

use dpdk::{Eal, Port};
use forwarders_dpdk::l2fwd::{self, Options, Plan};
use forwarders_dpdk::options::CommandLine;
use forwarders_dpdk::polling;
use forwarders_dpdk::stop::Stop;
use forwarders_dpdk::{ethernet, ports};

use forward::Lane;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("raw-l2fwd: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let (eal, arguments) = Eal::init(std::env::args_os())?;
    let stop = Stop::on_signals()?;
    let options = Options::parse(arguments).inspect_err(|_| print!("{}", Options::USAGE))?;
    let present: Vec<u16> = eal.ports().iter().map(|port| port.index()).collect();
    let lcore = eal.main_lcore().id();
    let plan = Plan::new(&options, &present, &[lcore])?;
    let pool = l2fwd::packet_pool(&eal)?;
    let mut started = Vec::new();
    for id in eal.ports() {
        if plan.paths.iter().any(|path| path.rx_port == id.index()) {
            started.push(ports::start(&eal, id, &pool, options.promiscuous)?);
        }
    }
    let controls: Vec<_> = started.iter().map(Port::control).collect();
    ports::await_links(&controls, &stop);

    let figures = plan.figures();
    polling::register(&eal, figures.clone())?;
    let mut lanes = Vec::new();
    for (path, figures) in plan.paths.iter().zip(&figures) {
        let sender = controls.iter().find(|port| port.id().index() == path.tx_port);
        let source = sender.ok_or("a path leads to a port that is not started")?.mac()?;
        let both = ethernet::addresses([2, 0, 0, 0, 0, path.tx_port as u8], source);
        let addresses = options.mac_updating.then_some(both);
        lanes.push(Lane::new(path.rx_port, path.tx_port, addresses, figures));
    }
    // SAFETY: the ports of the lanes are started with queue 0 each way and stay so until below; nobody
    // else has their queues, for `Port::queues` is not called; this is the only thread that polls.
    unsafe {
        if options.burst_forwarding {
            forward::run::<true>(&mut lanes, &stop);
        } else {
            forward::run::<false>(&mut lanes, &stop);
        }
    }
    for port in started {
        port.stop()?;
    }
    println!("pool: {} of {}", pool.capacity() - pool.in_use(), pool.capacity());
    Ok(())
}
