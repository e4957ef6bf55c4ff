// SPDX-License-Identifier: BSD-3-Clause
//! An unbuffered echo: what a port receives it sends back at once, with the MAC addresses swapped.
//!
//! The leanest forwarder there is, and so the lab's reference for what a link and the generator can
//! carry.

use std::ffi::OsString;
use std::sync::Arc;

use dpdk::telemetry::RegisterError;
use dpdk::{
    Burst, Eal, LaunchError, Mempool, MempoolError, PoolConfig, Port, PortControl, PortError,
    PortId, RxQueue, Started, TxQueue, tsc,
};
use lexopt::prelude::*;

use crate::ethernet::swap_addresses;
use crate::options::{port_mask, ports_of};
use crate::polling::{self, BURST, Meter};
use crate::ports;
use crate::stop::Stop;

/// What every mistake prints.
pub const USAGE: &str = "\
reflect [EAL options] -- [-p PORTMASK] [-P]
  -p PORTMASK: hexadecimal bitmask of ports to echo on (default: all)
  -P : Enable promiscuous mode
Ports are dealt out to the lcores in turn.
";

/// What is wrong with a command line.
#[derive(Debug, thiserror::Error)]
pub enum OptionsError {
    /// `-p`.
    #[error("invalid portmask: -p takes a hexadecimal mask of ports that is not 0, not {0:?}")]
    PortMask(String),
    /// No such option.
    #[error(transparent)]
    Other(#[from] lexopt::Error),
}

/// What the program is to do.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Options {
    /// Ports; `None` for all.
    pub port_mask: Option<u32>,
    /// Whether ports receive what is not addressed to them.
    pub promiscuous: bool,
}

impl Options {
    /// Reads the arguments behind EAL's.
    ///
    /// # Errors
    /// See [`OptionsError`].
    pub fn parse<I>(arguments: I) -> Result<Self, OptionsError>
    where
        I: IntoIterator,
        I::Item: Into<OsString>,
    {
        let mut options = Self::default();
        let mut parser = lexopt::Parser::from_args(arguments);
        while let Some(argument) = parser.next()? {
            match argument {
                Short('p') => {
                    let text = parser.value()?.string()?;
                    options.port_mask =
                        Some(port_mask(&text).ok_or_else(|| OptionsError::PortMask(text))?);
                }
                Short('P') => options.promiscuous = true,
                other => return Err(other.unexpected().into()),
            }
        }
        Ok(options)
    }
}

/// Why the echo did not start or did not end well.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// There is no port, or none that the mask names.
    #[error("no Ethernet port to echo on; add one with --vdev or -a")]
    NoPorts,
    /// The mask names ports that do not exist.
    #[error("invalid portmask: there is no port {0}")]
    NoSuchPort(u16),
    /// A port failed.
    #[error(transparent)]
    Port(#[from] PortError),
    /// The pool could not be made.
    #[error(transparent)]
    Pool(#[from] MempoolError),
    /// Telemetry refused a command.
    #[error(transparent)]
    Telemetry(#[from] RegisterError),
    /// An lcore did not start.
    #[error(transparent)]
    Launch(#[from] LaunchError),
}

/// Echoes until `stop` is raised.
///
/// # Errors
/// See [`RunError`]. Nothing is left running or configured.
pub fn run(eal: &Eal, options: &Options, stop: &Stop) -> Result<(), RunError> {
    let ids = choose(eal, options)?;
    let pool = Mempool::packet_pool(
        eal,
        &PoolConfig { count: 4096 * ids.len() as u32 + 4095, ..PoolConfig::named("reflect") },
    )?;
    let mut started = Vec::with_capacity(ids.len());
    for &id in &ids {
        started.push(ports::start(eal, id, &pool, options.promiscuous)?);
    }
    let controls: Vec<PortControl<'_>> = started.iter().map(Port::control).collect();
    ports::await_links(&controls, stop);
    echo(eal, &mut started, pool, stop)?;
    for port in started {
        port.stop()?;
    }
    Ok(())
}

fn choose(eal: &Eal, options: &Options) -> Result<Vec<PortId>, RunError> {
    let present = eal.ports();
    let chosen = match options.port_mask {
        None => present,
        Some(mask) => ports_of(mask)
            .map(|port| {
                let found = present.iter().find(|id| id.index() == port);
                found.copied().ok_or(RunError::NoSuchPort(port))
            })
            .collect::<Result<_, _>>()?,
    };
    if chosen.is_empty() { Err(RunError::NoPorts) } else { Ok(chosen) }
}

struct Lane<'port> {
    rx: RxQueue<'port>,
    tx: TxQueue<'port>,
}

fn echo<'port>(
    eal: &Eal,
    started: &'port mut [Port<'_, Started>],
    pool: Mempool<'port>,
    stop: &Stop,
) -> Result<(), RunError> {
    let lcores = eal.lcores();
    let mut shares: Vec<Vec<Lane<'port>>> = lcores.iter().map(|_| Vec::new()).collect();
    for (index, port) in started.iter_mut().enumerate() {
        let mut queues = port.queues();
        if let (Some(rx), Some(tx)) = (queues.rx.pop(), queues.tx.pop()) {
            shares[index % lcores.len()].push(Lane { rx, tx });
        }
    }
    let mut jobs = Vec::new();
    let mut figures = Vec::new();
    for (lcore, lanes) in lcores.into_iter().zip(shares) {
        if lanes.is_empty() {
            continue;
        }
        let queues: Vec<(u16, u16)> =
            lanes.iter().map(|lane| (lane.rx.port(), lane.rx.queue())).collect();
        let meter = Meter::new(lcore.id(), &queues);
        figures.extend(meter.figures().iter().map(Arc::clone));
        jobs.push((lcore, lanes, meter));
    }
    polling::register(eal, figures)?;
    let main = eal.main_lcore();
    let mut own = None;
    eal.scope(|scope| {
        let launched = jobs.into_iter().try_for_each(|(lcore, lanes, meter)| {
            if lcore == main {
                own = Some((lanes, meter));
                return Ok(());
            }
            scope.launch(lcore, move || poll(lanes, meter, &pool, stop))
        });
        if launched.is_err() {
            stop.raise();
        }
        if let Some((lanes, meter)) = own.take() {
            poll(lanes, meter, &pool, stop);
        }
        launched
    })?;
    Ok(())
}

fn poll<'port>(mut lanes: Vec<Lane<'port>>, mut meter: Meter, pool: &Mempool<'port>, stop: &Stop) {
    let mut burst = Burst::<BURST>::new();
    let mut swapped = Burst::<BURST>::new();
    while !stop.is_raised() {
        for (index, lane) in lanes.iter_mut().enumerate() {
            let received = lane.rx.receive(&mut burst);
            meter.polled(index, received, tsc::now());
            if received == 0 {
                continue;
            }
            for mbuf in burst.drain() {
                if let Some(mbuf) = swap_addresses(mbuf, pool) {
                    // Never refused: both bursts have the same size.
                    drop(swapped.push(mbuf));
                }
            }
            lane.tx.send(&mut swapped);
            // What the driver did not take is dropped: an echo does not queue.
            swapped.clear();
        }
    }
}
