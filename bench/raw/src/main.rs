// SPDX-License-Identifier: BSD-3-Clause
//! `raw-l2fwd`: l2fwd with its packet path on raw pointers, on one lcore.
//!
//! Command line, pool, ports, statistics and addresses are those of l2fwd; only the packet path is
//! written again, in `forward.rs`, with `dpdk_sys` instead of `dpdk`. It makes the same checks of
//! each packet, writes the same bytes and keeps the same statistics, so that the ratio of l2fwd's
//! time to this program's is the cost of the safe API. l2fwd handles runts and shared packets,
//! which this program forwards unchanged: it is for `make bench` only.

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
    // SAFETY: the ports of the lanes are started with queue 0 in each direction and stay so until
    // below; nothing else has their queues, because `Port::queues` is not called; only this thread
    // polls.
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
