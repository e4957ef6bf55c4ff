// SPDX-License-Identifier: BSD-3-Clause
//! Starts lcores according to a plan, and cleans up.

use std::sync::OnceLock;

use dpdk::telemetry::Value;
use dpdk::{Eal, Mempool, MempoolError, PoolConfig, Port, PortControl, PortError, Started, tsc};
use forwarders_common::ethernet::mac_text;
use forwarders_common::l2fwd::{Document, Options, Plan, PortFacts, Screen};
use forwarders_common::{say, say_on};

use super::counters::Counters;
use super::error::RunError;
use super::wiring::Wiring;
use crate::document::{Kept, ethdev};
use crate::polling::{self, BURST};
use crate::ports;
use crate::stats_file::StatsFile;
use crate::stop::Stop;

/// Descriptors of each ring and the pool's per-lcore cache, as in the C example.
const DESCRIPTORS: u32 = 1024;
const CACHE: u32 = 256;
const MIN_MBUFS: u32 = 8192;

/// The pool for [`run`]: large enough for every ring, cache and burst, and on the main lcore's NUMA
/// node, as in the C example.
///
/// # Errors
/// See [`MempoolError`].
pub fn packet_pool(eal: &Eal) -> Result<Mempool<'_>, MempoolError> {
    let per_port = 2 * DESCRIPTORS + BURST as u32 + eal.lcores().len() as u32 * CACHE;
    let count = (eal.ports().len() as u32 * per_port).max(MIN_MBUFS);
    let socket = eal.main_lcore().socket();
    Mempool::packet_pool(
        eal,
        &PoolConfig { count, cache: CACHE, socket, ..PoolConfig::named("mbuf_pool") },
    )
}

/// Makes the pool and forwards until `stop` is set, then prints "Bye...", as the C example does.
///
/// # Errors
/// See [`RunError`]. Nothing is left running or configured.
pub fn start(eal: &Eal, options: &Options, stop: &Stop) -> Result<(), RunError> {
    run(eal, &packet_pool(eal)?, options, stop)?;
    say!("Bye...");
    Ok(())
}

/// Forwards until `stop` is set.
///
/// # Errors
/// See [`RunError`]. Nothing is left running or configured.
pub fn run<'eal>(
    eal: &'eal Eal,
    pool: &Mempool<'eal>,
    options: &Options,
    stop: &Stop,
) -> Result<(), RunError> {
    let file = options.json_stats.as_deref().map(StatsFile::open).transpose()?;
    let plan = plan(eal, options)?;
    let mut started = start_ports(eal, &plan, pool, options.promiscuous)?;
    let controls: Vec<PortControl<'_>> = started.iter().map(Port::control).collect();
    ports::await_links(&controls, stop);
    say_what_lcores_do(eal, &plan);

    let counters = Counters::new(plan.paths.iter().map(|path| path.rx_port));
    let figures = plan.figures();
    polling::register(eal, figures.clone())?;
    let wiring = Wiring::new(&mut started, &controls, &counters, &figures, *pool, options)?;
    let screen = Screen::new(options.period, tsc::hz(), &counters);
    let forward = || wiring.forward(eal, &plan, screen, stop);
    let last = OnceLock::new();
    let outcome = match &file {
        None => forward(),
        Some(file) => {
            let document = Document {
                plan: &plan,
                counters: &counters,
                figures: &figures,
                tsc_hz: tsc::hz(),
                facts: |port| facts(&controls, port),
            };
            let value = |ended| {
                let value = document.value(ended);
                if ended {
                    let _ = last.set(value.clone());
                }
                value
            };
            Kept { program: "l2fwd", file, period_s: options.period, value }.during(forward)
        }
    };
    stop.announce();
    for port in started {
        say_on!("Closing port {}...", port.id());
        port.stop()?;
        say!(" Done");
    }
    outcome?;
    // Only now have the ports returned the mbufs that they held.
    if let (Some(file), Some(value)) = (&file, last.into_inner()) {
        file.write(&with_pool(value, pool))?;
    }
    Ok(())
}

/// The last document, with the number of mbufs that were not returned.
fn with_pool(mut document: Value, pool: &Mempool<'_>) -> Value {
    if let Value::Dict(entries) = &mut document {
        let figures = Value::dict([
            ("name", pool.name().into()),
            ("size", (pool.capacity() as u64).into()),
            ("in_use", (pool.in_use() as u64).into()),
        ]);
        entries.push(("pool".to_owned(), figures));
    }
    document
}

/// What DPDK reports about a port.
fn facts(controls: &[PortControl<'_>], port: u16) -> PortFacts {
    let control = controls.iter().find(|control| control.id().index() == port);
    PortFacts {
        name: control.and_then(|control| control.id().name()),
        ethdev: control.and_then(|control| control.stats().ok()).map(|stats| ethdev(&stats)),
    }
}

/// Makes the plan and prints it as the C example does.
fn plan(eal: &Eal, options: &Options) -> Result<Plan, RunError> {
    say!("MAC updating {}", if options.mac_updating { "enabled" } else { "disabled" });
    let present: Vec<u16> = eal.ports().iter().map(|port| port.index()).collect();
    let lcores: Vec<u32> = eal.lcores().iter().map(|lcore| lcore.id()).collect();
    let plan = Plan::new(options, &present, &lcores).map_err(RunError::Plan)?;
    if plan.odd {
        say!("Notice: odd number of ports in portmask.");
    }
    for path in &plan.paths {
        say!("Lcore {}: RX port {} TX port {}", path.lcore, path.rx_port, path.tx_port);
    }
    Ok(plan)
}

fn start_ports<'eal>(
    eal: &'eal Eal,
    plan: &Plan,
    pool: &Mempool<'eal>,
    promiscuous: bool,
) -> Result<Vec<Port<'eal, Started>>, PortError> {
    let mut started = Vec::with_capacity(plan.paths.len());
    for id in eal.ports() {
        let Some(path) = plan.paths.iter().find(|path| path.rx_port == id.index()) else {
            say!("Skipping disabled port {id}");
            continue;
        };
        say_on!("Initializing port {id}... ");
        let port = ports::start(eal, id, pool, promiscuous)?;
        say!("done: ");
        let mac = port.control().mac()?;
        say!("Port {id}, MAC address: {}\n", mac_text(mac));
        if let Some(lcore) = eal.lcores().into_iter().find(|lcore| lcore.id() == path.lcore) {
            ports::warn_if_remote(id, lcore);
        }
        started.push(port);
    }
    Ok(started)
}

/// Written to DPDK's log, as the C example's lcores do themselves.
fn say_what_lcores_do(eal: &Eal, plan: &Plan) {
    for lcore in eal.lcores() {
        let id = lcore.id();
        if plan.of(id).next().is_none() {
            eal.log_info(&format!("L2FWD: lcore {id} has nothing to do"));
            continue;
        }
        eal.log_info(&format!("L2FWD: entering main loop on lcore {id}"));
        for path in plan.of(id) {
            eal.log_info(&format!("L2FWD:  -- lcoreid={id} portid={}", path.rx_port));
        }
    }
}
