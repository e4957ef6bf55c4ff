// SPDX-License-Identifier: BSD-3-Clause
//! From a plan to running lcores and back to nothing.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use dpdk::telemetry::RegisterError;
use dpdk::{
    Eal, LaunchError, Mempool, MempoolError, PoolConfig, Port, PortControl, PortError, Queues,
    RxQueue, Started, TxBuffer, TxQueue, tsc,
};

use super::forward::{self, Buffered, Lane, Output, Unbuffered};
use super::options::Options;
use super::plan::{Path, Plan, PlanError};
use super::screen::{self, Counters};
use crate::ethernet;
use crate::polling::{self, BURST, Meter};
use crate::ports;
use crate::stop::Stop;

/// Descriptors of each ring and the pool's per-lcore cache, as in the C example.
const DESCRIPTORS: u32 = 1024;
const CACHE: u32 = 256;
const MIN_MBUFS: u32 = 8192;

/// Why forwarding did not start or did not end well.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The options do not fit.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A port failed.
    #[error(transparent)]
    Port(#[from] PortError),
    /// Telemetry refused a command.
    #[error(transparent)]
    Telemetry(#[from] RegisterError),
    /// An lcore did not start.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// A queue was not there to be taken: two paths want it.
    #[error("ports {0} to {1}: a queue is in use on another path")]
    Unwired(u16, u16),
}

/// The pool that [`run`] wants: large enough for every ring, cache and burst, as in the C example.
///
/// # Errors
/// See [`MempoolError`].
pub fn packet_pool(eal: &Eal) -> Result<Mempool<'_>, MempoolError> {
    let per_port = 2 * DESCRIPTORS + BURST as u32 + eal.lcores().len() as u32 * CACHE;
    let count = (eal.ports().len() as u32 * per_port).max(MIN_MBUFS);
    Mempool::packet_pool(eal, &PoolConfig { count, cache: CACHE, ..PoolConfig::named("mbuf_pool") })
}

/// Forwards until `stop` is raised.
///
/// # Errors
/// See [`RunError`]. Nothing is left running or configured.
pub fn run<'eal>(
    eal: &'eal Eal,
    pool: &Mempool<'eal>,
    options: &Options,
    stop: &Stop,
) -> Result<(), RunError> {
    println!("MAC updating {}", if options.mac_updating { "enabled" } else { "disabled" });
    let present: Vec<u16> = eal.ports().iter().map(|port| port.index()).collect();
    let lcores: Vec<u32> = eal.lcores().iter().map(|lcore| lcore.id()).collect();
    let plan = Plan::new(options, &present, &lcores)?;
    if plan.odd {
        println!("Notice: odd number of ports in portmask.");
    }
    for path in &plan.paths {
        println!("Lcore {}: RX port {} TX port {}", path.lcore, path.rx_port, path.tx_port);
    }

    let mut started = start_ports(eal, &plan, pool, options.promiscuous)?;
    let controls: Vec<PortControl<'_>> = started.iter().map(Port::control).collect();
    ports::await_links(&controls, stop);

    let counters: Counters = plan.paths.iter().map(|path| (path.rx_port, Arc::default())).collect();
    let mut wiring = Wiring::new(&mut started, &controls, &counters, *pool, options)?;
    let outcome = if options.burst_forwarding {
        wiring.forward(eal, &plan, stop, Unbuffered)
    } else {
        wiring.forward(eal, &plan, stop, |queue| Buffered(TxBuffer::new(queue)))
    };
    drop(wiring);
    for port in started {
        print!("Closing port {}...", port.id());
        port.stop()?;
        println!(" Done");
    }
    outcome
}

fn start_ports<'eal>(
    eal: &'eal Eal,
    plan: &Plan,
    pool: &Mempool<'eal>,
    promiscuous: bool,
) -> Result<Vec<Port<'eal, Started>>, PortError> {
    let mut started = Vec::with_capacity(plan.paths.len());
    for id in eal.ports() {
        if !plan.paths.iter().any(|path| path.rx_port == id.index()) {
            println!("Skipping disabled port {id}");
            continue;
        }
        let port = ports::start(eal, id, pool, promiscuous)?;
        let mac = port.control().mac()?;
        println!("Port {id}, MAC address: {}", ports::mac_text(mac));
        started.push(port);
    }
    Ok(started)
}

/// Queues and addresses of the started ports, each to be taken once.
struct Wiring<'port> {
    rx: BTreeMap<u16, RxQueue<'port>>,
    tx: BTreeMap<u16, TxQueue<'port>>,
    macs: BTreeMap<u16, [u8; 6]>,
    counters: Counters,
    pool: Mempool<'port>,
    mac_updating: bool,
    period_s: u32,
}

impl<'port> Wiring<'port> {
    fn new(
        started: &'port mut [Port<'_, Started>],
        controls: &[PortControl<'_>],
        counters: &Counters,
        pool: Mempool<'port>,
        options: &Options,
    ) -> Result<Self, PortError> {
        let mut wiring = Self {
            rx: BTreeMap::new(),
            tx: BTreeMap::new(),
            macs: BTreeMap::new(),
            counters: counters.clone(),
            pool,
            mac_updating: options.mac_updating,
            period_s: options.period,
        };
        for control in controls {
            wiring.macs.insert(control.id().index(), control.mac()?);
        }
        for port in started {
            let id = port.id().index();
            let Queues { rx, tx } = port.queues();
            wiring.rx.extend(rx.into_iter().map(|queue| (id, queue)));
            wiring.tx.extend(tx.into_iter().map(|queue| (id, queue)));
        }
        Ok(wiring)
    }

    /// Takes the queues of one path.
    fn lane<O>(
        &mut self,
        path: &Path,
        output: impl Fn(TxQueue<'port>) -> O,
    ) -> Result<Lane<'port, O>, RunError> {
        self.take_lane(path, output).ok_or(RunError::Unwired(path.rx_port, path.tx_port))
    }

    fn take_lane<O>(
        &mut self,
        path: &Path,
        output: impl Fn(TxQueue<'port>) -> O,
    ) -> Option<Lane<'port, O>> {
        let source = *self.macs.get(&path.tx_port)?;
        // 02:00:00:00:00:PORT
        let destination = [2, 0, 0, 0, 0, path.tx_port as u8];
        let of = |port: u16| {
            self.counters
                .iter()
                .find(|(id, _)| *id == port)
                .map(|(_, counters)| Arc::clone(counters))
        };
        Some(Lane {
            rx_counters: of(path.rx_port)?,
            tx_counters: of(path.tx_port)?,
            rx: self.rx.remove(&path.rx_port)?,
            out: output(self.tx.remove(&path.tx_port)?),
            addresses: self.mac_updating.then(|| ethernet::addresses(destination, source)),
            spare: self.pool,
        })
    }

    /// Runs every lcore's loop until `stop`.
    fn forward<O>(
        &mut self,
        eal: &Eal,
        plan: &Plan,
        stop: &Stop,
        output: impl Fn(TxQueue<'port>) -> O + Copy,
    ) -> Result<(), RunError>
    where
        O: Output<'port> + Send,
    {
        let mut jobs = Vec::new();
        let mut figures = Vec::new();
        for lcore in plan.lcores() {
            let paths: Vec<&Path> = plan.paths.iter().filter(|path| path.lcore == lcore).collect();
            let queues: Vec<(u16, u16)> = paths.iter().map(|path| (path.rx_port, 0)).collect();
            let meter = Meter::new(lcore, &queues);
            figures.extend(meter.figures().iter().map(Arc::clone));
            let lanes: Vec<Lane<'port, O>> =
                paths.iter().map(|path| self.lane(path, output)).collect::<Result<_, _>>()?;
            jobs.push((lcore, lanes, meter));
        }
        polling::register(eal, figures)?;

        let main = eal.main_lcore();
        let mut own = None;
        let counters = &self.counters;
        let period = u64::from(self.period_s) * tsc::hz();
        eal.scope(|scope| {
            let launched = jobs.into_iter().try_for_each(|(id, lanes, meter)| {
                if id == main.id() {
                    own = Some((lanes, meter));
                    return Ok(());
                }
                match eal.workers().into_iter().find(|lcore| lcore.id() == id) {
                    Some(lcore) => {
                        scope.launch(lcore, move || forward::run(lanes, meter, stop, |_| {}))
                    }
                    None => Ok(()),
                }
            });
            if launched.is_err() {
                stop.raise();
            }
            let mut clock = Screen { period, elapsed: 0, counters };
            match own.take() {
                Some((lanes, meter)) => {
                    forward::run(lanes, meter, stop, |cycles| clock.tick(cycles));
                }
                None => clock.wait(stop),
            }
            launched
        })?;
        Ok(())
    }
}

/// Shows the counters every `period` TSC cycles; never when that is 0.
struct Screen<'c> {
    period: u64,
    elapsed: u64,
    counters: &'c Counters,
}

impl Screen<'_> {
    fn tick(&mut self, cycles: u64) {
        if self.period == 0 {
            return;
        }
        self.elapsed += cycles;
        if self.elapsed >= self.period {
            self.elapsed = 0;
            screen::show(self.counters);
        }
    }

    /// For a main lcore that polls nothing.
    fn wait(&mut self, stop: &Stop) {
        let mut before = tsc::now();
        while !stop.is_raised() {
            sleep(Duration::from_millis(10));
            let now = tsc::now();
            self.tick(now.wrapping_sub(before));
            before = now;
        }
    }
}
