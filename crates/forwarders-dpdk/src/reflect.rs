// SPDX-License-Identifier: BSD-3-Clause
//! An unbuffered echo: a port sends back at once what it receives, with the MAC addresses swapped.
//!
//! The simplest forwarder, and so the lab's reference for what a link and the generator can carry.

use std::ffi::OsStr;
use std::sync::Arc;

use dpdk::{
    Burst, Eal, Mempool, PoolConfig, Port, PortControl, PortId, RxQueue, Started, TxQueue, tsc,
};

use crate::error;
use crate::ethernet::swap_addresses;
use crate::getopt::{Opt, flag, valued};
use crate::lcores;
use crate::options::{CommandLine, OptionsError, port_mask};
use crate::polling::{self, BURST, Meter, QueueFigures};
use crate::ports;
use crate::stop::Stop;

const USAGE: &str = "\
reflect [EAL options] -- [-p PORTMASK] [-P]
  -p PORTMASK: hexadecimal bitmask of ports to echo on (default: all)
  -P : Enable promiscuous mode
Ports are dealt out to the lcores in turn.
";

/// The options of the command line.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Options {
    /// Ports; `None` for all.
    pub port_mask: Option<u32>,
    /// True if ports are promiscuous.
    pub promiscuous: bool,
}

const OPTIONS: &[Opt] = &[valued("p"), flag("P")];

impl CommandLine for Options {
    const USAGE: &'static str = USAGE;
    const OPTIONS: &'static [Opt] = OPTIONS;

    fn set(&mut self, option: &'static str, value: &OsStr) -> Result<(), OptionsError> {
        match option {
            "p" => self.port_mask = Some(port_mask(value)?),
            _ => self.promiscuous = true,
        }
        Ok(())
    }
}

/// Why the options do not fit the existing ports.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChooseError {
    /// There is no port.
    #[error("no Ethernet port to echo on; add one with --vdev or -a")]
    NoPorts,
    /// The mask names a port that does not exist.
    #[error("invalid portmask: there is no port {0}")]
    NoSuchPort(u16),
}

/// Why the echo did not start or failed at its end.
pub type RunError = error::RunError<ChooseError>;

/// Echoes until `stop` is set.
///
/// # Errors
/// See [`RunError`]. Nothing is left running or configured.
pub fn run(eal: &Eal, options: &Options, stop: &Stop) -> Result<(), RunError> {
    let ids = choose(eal, options).map_err(RunError::Plan)?;
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
    stop.announce();
    for port in started {
        port.stop()?;
    }
    Ok(())
}

fn choose(eal: &Eal, options: &Options) -> Result<Vec<PortId>, ChooseError> {
    let chosen = ports::chosen(eal, options.port_mask).map_err(ChooseError::NoSuchPort)?;
    if chosen.is_empty() { Err(ChooseError::NoPorts) } else { Ok(chosen) }
}

struct Lane<'l> {
    rx: RxQueue<'l>,
    tx: TxQueue<'l>,
    figures: &'l QueueFigures,
}

fn echo<'port>(
    eal: &Eal,
    started: &'port mut [Port<'_, Started>],
    pool: Mempool<'port>,
    stop: &Stop,
) -> Result<(), RunError> {
    let lcores = eal.lcores();
    // Ports in turn to lcores.
    let figures: Vec<_> = lcores
        .iter()
        .cycle()
        .zip(started.iter())
        .map(|(lcore, port)| Arc::new(QueueFigures::new(lcore.id(), port.id().index(), 0)))
        .collect();
    polling::register(eal, figures.clone())?;
    let mut jobs: Vec<_> = lcores.iter().map(|&lcore| (lcore, Vec::new())).collect();
    for (index, (port, figures)) in started.iter_mut().zip(&figures).enumerate() {
        let (lcore, lanes) = &mut jobs[index % lcores.len()];
        ports::warn_if_remote(port.id(), *lcore);
        let mut queues = port.queues();
        if let (Some(rx), Some(tx)) = (queues.rx.pop(), queues.tx.pop()) {
            lanes.push(Lane { rx, tx, figures });
        }
    }
    lcores::run(eal, jobs, stop, |lanes| {
        if !lanes.is_empty() {
            poll(lanes, &pool, stop);
        }
    })?;
    Ok(())
}

fn poll<'l>(mut lanes: Vec<Lane<'l>>, pool: &Mempool<'l>, stop: &Stop) {
    let mut meter = Meter::start(lanes.iter().map(|lane| lane.figures));
    let mut burst = Burst::<BURST>::new();
    let mut swapped = Burst::<BURST>::new();
    while !stop.is_raised() {
        for lane in &mut lanes {
            let received = lane.rx.receive(&mut burst);
            meter.polled(lane.figures, received, tsc::now());
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
            // Packets that the driver did not take are dropped: an echo does not queue.
            swapped.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_and_mistakes_name_the_option() {
        let parse = |line: &str| Options::parse(line.split_whitespace());
        assert_eq!(parse("").unwrap(), Options::default());
        assert_eq!(parse("-P -p 0x5").unwrap(), Options { port_mask: Some(5), promiscuous: true });
        for (line, option) in [("-p 0", "-p"), ("-p", "-p"), ("--help", "--help"), ("-T 1", "-T")] {
            let error = parse(line).unwrap_err().to_string();
            assert!(error.contains(option), "{line}: {error}");
        }
    }
}
