// SPDX-License-Identifier: BSD-3-Clause
//! What the examples share: options after `--`, when to end, ports with so many queues each way.
#![allow(dead_code)] // No example uses all of it.

use std::error::Error;
use std::ffi::OsString;
use std::process::ExitCode;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use dpdk::{
    Eal, Mempool, PoolConfig, Port, PortConfig, PortId, Rss, RssHashTypes, RxConfig, Started,
    TxConfig,
};
use signal_hook::consts::{SIGINT, SIGTERM};

pub type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// What `main` returns: an error is told in words for people (a `main` that returns it prints its `Debug`), and the
/// process ends with 1.
pub fn end(result: Result<()>) -> ExitCode {
    let Err(error) = result else { return ExitCode::SUCCESS };
    eprintln!("error: {error}");
    ExitCode::FAILURE
}

/// What follows `--`: pairs of `--NAME VALUE`.
pub struct Options(Vec<(String, String)>);

impl Options {
    pub fn new(arguments: Vec<OsString>) -> Result<Self> {
        let mut pairs = Vec::new();
        let mut words = arguments.into_iter().map(|word| word.to_string_lossy().into_owned());
        while let Some(name) = words.next() {
            let value = words.next().ok_or_else(|| format!("{name} wants a value behind it"))?;
            pairs.push((name, value));
        }
        Ok(Self(pairs))
    }

    /// The values of an option, as often as it was given.
    pub fn all(&mut self, name: &str) -> Vec<String> {
        let (found, others) = std::mem::take(&mut self.0).into_iter().partition(|o| o.0 == name);
        self.0 = others;
        found.into_iter().map(|(_, value): (String, String)| value).collect()
    }

    /// The last value of an option.
    pub fn get<T: FromStr<Err: std::fmt::Display>>(&mut self, name: &str) -> Result<Option<T>> {
        let Some(value) = self.all(name).pop() else { return Ok(None) };
        Ok(Some(value.parse().map_err(|error| format!("{name} {value}: {error}"))?))
    }

    /// Takes `--packets` and sees to it that nothing is left.
    pub fn until(mut self) -> Result<Until> {
        let limit = self.get("--packets")?.unwrap_or(u64::MAX);
        if let Some((name, _)) = self.0.first() {
            return Err(format!("there is no option {name}; see the head of the source").into());
        }
        Until::new(limit)
    }
}

/// Until SIGINT, SIGTERM, or so many received packets. The burst in which the limit is reached is dealt with.
pub struct Until {
    stop: Arc<AtomicBool>,
    received: AtomicU64,
    limit: u64,
}

impl Until {
    fn new(limit: u64) -> Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            signal_hook::flag::register(signal, Arc::clone(&stop))?;
        }
        Ok(Self { stop, received: AtomicU64::new(0), limit })
    }

    /// Whether to go on.
    pub fn more(&self) -> bool {
        !self.stop.load(Relaxed) && self.received() < self.limit
    }

    /// Has every lcore stop, as a signal does. To be called before an error leaves a scope, which waits for them.
    pub fn end(&self) {
        self.stop.store(true, Relaxed);
    }

    /// Counts received packets; from any lcore.
    pub fn count(&self, packets: usize) {
        if packets > 0 {
            self.received.fetch_add(packets as u64, Relaxed);
        }
    }

    pub fn received(&self) -> u64 {
        self.received.load(Relaxed)
    }
}

/// A pool for all ports with so many queues each way: their rings of 1024 packets, the lcores' caches, and what is being
/// worked on.
pub fn pool(eal: &Eal, queues: usize) -> Result<Mempool<'_>> {
    let config = PoolConfig::named("packets");
    let rings = eal.ports().len() * queues * 2 * 1024;
    let count = rings + eal.lcores().len() * config.cache as usize + 1023;
    let count = u32::try_from(count)?.max(config.count);
    Ok(Mempool::packet_pool(eal, &PoolConfig { count, ..config })?)
}

/// Starts every port with so many queues each way, or as many as its device has. They receive what is not addressed to them
/// where the driver can. Several queues share by addresses and ports; what a device cannot do is said.
pub fn start<'eal>(
    eal: &'eal Eal,
    pool: &Mempool<'eal>,
    queues: usize,
) -> Result<Vec<Port<'eal, Started>>> {
    let ids = eal.ports();
    if ids.is_empty() {
        return Err("no port: add one with --vdev net_ring0 or -a".into());
    }
    ids.into_iter().map(|id| start_one(eal, id, pool, queues)).collect()
}

fn start_one<'eal>(
    eal: &'eal Eal,
    id: PortId,
    pool: &Mempool<'eal>,
    queues: usize,
) -> Result<Port<'eal, Started>> {
    let port = eal.take_port(id)?;
    let info = port.info()?;
    let has = info.max_rx_queues.min(info.max_tx_queues).into();
    if has < queues {
        eprintln!("port {}: {has} queues, not {queues}", id.index());
    }
    let queues = queues.min(has);
    let rss = Rss {
        hash_types: Some(RssHashTypes::IP | RssHashTypes::TCP | RssHashTypes::UDP),
        ..Rss::default()
    };
    let config = PortConfig {
        rx: (0..queues).map(|_| RxConfig::new(pool)).collect(),
        tx: (0..queues).map(|_| TxConfig::default()).collect(),
        rss: if queues > 1 { rss } else { Rss::default() },
        ..PortConfig::default()
    };
    let port = port.configure(&config)?.start()?;
    for shortfall in port.shortfalls() {
        eprintln!("{shortfall}");
    }
    if let Err(error) = port.control().set_promiscuous(true) {
        eprintln!("port {}: {error}", id.index());
    }
    Ok(port)
}

/// The port that packets of port `index` leave by: 0 and 1 are a pair, 2 and 3, ...; one alone echoes.
pub fn peer(index: usize, ports: usize) -> usize {
    if index ^ 1 < ports { index ^ 1 } else { index }
}
