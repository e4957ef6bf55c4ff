// SPDX-License-Identifier: BSD-3-Clause
//! Starts lcores according to the options, runs their loop, and cleans up.

use std::sync::Arc;

use dpdk::{
    Burst, Eal, Mbuf, Mempool, MempoolError, PoolConfig, Port, PortControl, PortId, RxQueue,
    Started, TxQueue, tsc,
};

use super::counters::{PathCounters, entries, total};
use super::document::{Document, answer};
use super::effects::Effects;
use super::options::Options;
use crate::document::Kept;
use crate::error;
use crate::ethernet::swap_addresses;
use crate::lcores;
use crate::polling::{self, BURST, Meter, QueueFigures};
use crate::ports;
use crate::stats_file::StatsFile;
use crate::stop::Stop;
use forwarders_common::say;

/// Mbufs of a port for its rings, bursts and the lcores' caches.
const MBUFS_PER_PORT: u32 = 4096;

/// Why the options do not fit the existing ports.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChooseError {
    /// There is no port.
    #[error("no Ethernet port to echo on; add one with --vdev or -a")]
    NoPorts,
    /// The mask names a port that does not exist.
    #[error("invalid portmask: -p names port {0}, which does not exist")]
    NoSuchPort(u16),
    /// Three or more.
    #[error("{0} ports: name one to echo on or two to connect by -p")]
    TooMany(usize),
}

/// Why the program did not start or failed at its end.
pub type RunError = error::RunError<ChooseError>;

/// The pool for [`run`]: large enough for every ring, cache and burst, and for all frames that the
/// effects may hold.
///
/// # Errors
/// See [`MempoolError`].
pub fn packet_pool<'eal>(eal: &'eal Eal, options: &Options) -> Result<Mempool<'eal>, MempoolError> {
    let late = options.reorder.map_or(0, |rule| rule.distance);
    let delayed = options.delay.map_or(0, |_| options.hold);
    // Of two ports at most: no sum comes near the limit.
    let count = eal.ports().len().min(2) as u32 * (MBUFS_PER_PORT + late + delayed);
    Mempool::packet_pool(eal, &PoolConfig { count, ..PoolConfig::named("impair") })
}

/// Makes the pool, impairs until `stop` is set, and prints the counts.
///
/// # Errors
/// See [`RunError`]. Nothing is left running or configured.
pub fn start(eal: &Eal, options: &Options, stop: &Stop) -> Result<(), RunError> {
    run(eal, &packet_pool(eal, options)?, options, stop)
}

/// Impairs until `stop` is set, and prints the counts.
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
    let ids = choose(eal, options).map_err(RunError::Plan)?;
    let mut started = Vec::with_capacity(ids.len());
    for &id in &ids {
        started.push(ports::start(eal, id, pool, options.promiscuous)?);
    }
    let controls: Vec<PortControl<'_>> = started.iter().map(Port::control).collect();
    ports::await_links(&controls, stop);

    // The other port of two, or the same port if there is one.
    let counters: Vec<Arc<PathCounters>> = ids
        .iter()
        .zip(ids.iter().rev())
        .map(|(rx, tx)| Arc::new(PathCounters::new(rx.index(), tx.index())))
        .collect();
    let lcores = eal.lcores();
    let figures: Vec<Arc<QueueFigures>> = lcores
        .iter()
        .cycle()
        .zip(&ids)
        .map(|(lcore, port)| Arc::new(QueueFigures::new(lcore.id(), port.index(), 0)))
        .collect();
    polling::register(eal, figures.clone())?;
    let shown = counters.clone();
    let help =
        "Counts of frames. Parameters: none for the sums, or int port_id of the receiving port";
    eal.telemetry().register("/linerate/impair", help, move |port| answer(&shown, port))?;

    let paths = paths(&mut started, *pool, options, &counters, &figures);
    let impair = || poll_all(eal, paths, stop);
    let outcome = match &file {
        None => impair(),
        Some(file) => {
            let document = Document { ports: &controls, counters: &counters, figures: &figures };
            let value = |ended| document.value(ended);
            Kept { program: "impair", file, period_s: options.period, value }.during(impair)
        }
    };
    stop.announce();
    say_counts(&counters);
    for port in started {
        port.stop()?;
    }
    outcome
}

fn choose(eal: &Eal, options: &Options) -> Result<Vec<PortId>, ChooseError> {
    let chosen = ports::chosen(eal, options.port_mask).map_err(ChooseError::NoSuchPort)?;
    match chosen.len() {
        0 => Err(ChooseError::NoPorts),
        1 | 2 => Ok(chosen),
        more => Err(ChooseError::TooMany(more)),
    }
}

fn say_counts(counters: &[Arc<PathCounters>]) {
    for (name, value) in entries(total(counters.iter().map(Arc::as_ref))) {
        if let dpdk::telemetry::Value::U64(value) = value {
            say!("{name}: {value}");
        }
    }
}

/// One direction of the link.
struct Path<'p> {
    rx: RxQueue<'p>,
    out: Out<'p>,
    /// True if frames are sent back on the port that they came from.
    echo: bool,
    spare: Mempool<'p>,
    effects: Effects<Mbuf<'p>>,
    figures: &'p QueueFigures,
    counters: &'p PathCounters,
}

/// Frames that are to be sent.
struct Out<'p> {
    queue: TxQueue<'p>,
    burst: Burst<'p, BURST>,
    sent: u64,
    refused: u64,
}

impl<'p> Out<'p> {
    #[inline]
    fn push(&mut self, mbuf: Mbuf<'p>) {
        if self.burst.is_full() {
            self.flush();
        }
        // Never refused: there is room now.
        drop(self.burst.push(mbuf));
    }

    /// Offers waiting frames to the port, once; frames that it does not take are dropped.
    #[inline]
    fn flush(&mut self) {
        if self.burst.is_empty() {
            return;
        }
        let offered = self.burst.len();
        let sent = self.queue.send(&mut self.burst);
        self.burst.clear();
        self.sent += sent as u64;
        self.refused += (offered - sent) as u64;
    }
}

impl<'p> Path<'p> {
    /// Applies the effects to the received frames, and sends those that are due.
    #[inline]
    fn turn(&mut self, burst: &mut Burst<'p, BURST>, now: u64) {
        let Self { effects, out, spare, .. } = self;
        let before = out.sent + out.refused;
        let received = !burst.is_empty();
        // Waiting frames first: they arrived earlier.
        effects.release(now, &mut |frame| out.push(frame));
        for mbuf in burst.drain() {
            let frame = if self.echo { swap_addresses(mbuf, spare) } else { Some(mbuf) };
            match frame {
                Some(frame) => effects.take(frame, now, &mut |frame| out.push(frame)),
                None => effects.lose(),
            }
        }
        out.flush();
        if received || out.sent + out.refused != before {
            self.show();
        }
    }

    fn end(&mut self) {
        let Self { effects, out, .. } = self;
        let now = tsc::now();
        effects.release(now, &mut |frame| out.push(frame));
        effects.end(now, &mut |frame| out.push(frame));
        out.flush();
        self.show();
    }

    fn show(&mut self) {
        self.effects.count_held();
        self.effects.counts.sent = self.out.sent;
        self.effects.counts.tx_refused = self.out.refused;
        self.counters.show(&self.effects.counts);
    }
}

/// Combines the queues of the started ports into paths.
fn paths<'p>(
    started: &'p mut [Port<'_, Started>],
    pool: Mempool<'p>,
    options: &Options,
    counters: &'p [Arc<PathCounters>],
    figures: &'p [Arc<QueueFigures>],
) -> Vec<Path<'p>> {
    let echo = started.len() == 1;
    let (mut rx, mut tx) = (Vec::new(), Vec::new());
    for port in started {
        let queues = port.queues();
        rx.extend(queues.rx);
        tx.extend(queues.tx);
    }
    // From the last port on, as the paths' counters.
    let tx = tx.into_iter().rev();
    let queues = rx.into_iter().zip(tx).zip(counters).zip(figures);
    queues
        .map(|(((rx, queue), counters), figures)| Path {
            rx,
            out: Out { queue, burst: Burst::new(), sent: 0, refused: 0 },
            echo,
            spare: pool,
            effects: Effects::new(options, counters.rx_port, tsc::hz(), pool),
            figures,
            counters,
        })
        .collect()
}

/// Deals the paths out to the lcores in turn, and polls until `stop` is set.
fn poll_all(eal: &Eal, paths: Vec<Path<'_>>, stop: &Stop) -> Result<(), RunError> {
    let mut jobs: Vec<_> = eal.lcores().into_iter().map(|lcore| (lcore, Vec::new())).collect();
    let lcores = jobs.len();
    for (index, path) in paths.into_iter().enumerate() {
        let (lcore, own) = &mut jobs[index % lcores];
        eal.log_info(&format!("IMPAIR: entering main loop on lcore {}", lcore.id()));
        own.push(path);
    }
    jobs.retain(|(_, own)| !own.is_empty());
    lcores::run(eal, jobs, stop, |own| poll(own, stop))?;
    Ok(())
}

fn poll(mut paths: Vec<Path<'_>>, stop: &Stop) {
    let mut meter = Meter::start(paths.iter().map(|path| path.figures));
    let mut burst = Burst::<BURST>::new();
    while !stop.is_raised() {
        for path in &mut paths {
            let received = path.rx.receive(&mut burst);
            let now = tsc::now();
            meter.polled(path.figures, received, now);
            path.turn(&mut burst, now);
        }
    }
    for path in &mut paths {
        path.end();
    }
}
