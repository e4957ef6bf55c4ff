// SPDX-License-Identifier: BSD-3-Clause
//! Starts ports with a queue for each lcore, and deals the queues to the lcores.

use dpdk::pcapng::Interface;
use dpdk::{
    Eal, Lcore, Mempool, PoolConfig, Port, PortConfig, PortId, Rss, RssHashTypes, RxConfig,
    Started, TxConfig,
};

use crate::Result;
use crate::capture::Captures;
use crate::worker::QueuePair;

/// Packets that a queue's ring may hold.
const RING: usize = 1024;

/// A pool with packets for all rings, the lcores' caches and bursts, and captures.
pub fn pool(ports: usize, lcores: usize) -> PoolConfig {
    let config = PoolConfig::named("packets");
    let count = ports * lcores * 2 * RING + lcores * (config.cache as usize + 64) + RING;
    PoolConfig { count: (count as u32).max(config.count), ..config }
}

/// Starts a port with so many queues, or as many as its device has. RSS by addresses and ports brings the packets of a connection to
/// one queue; a device without it has one.
pub fn start<'eal>(
    eal: &'eal Eal,
    id: PortId,
    pool: &Mempool<'eal>,
    queues: usize,
) -> Result<Port<'eal, Started>> {
    let port = eal.take_port(id)?;
    let info = port.info()?;
    let most = if info.rss_hash_types.is_empty() { 1 } else { queues };
    let queues = most.min(info.max_rx_queues.min(info.max_tx_queues).into());
    let rss = Rss {
        hash_types: Some(RssHashTypes::IP | RssHashTypes::TCP | RssHashTypes::UDP),
        ..Rss::default()
    };
    let port = port.configure(&PortConfig {
        rx: (0..queues).map(|_| RxConfig::new(pool)).collect(),
        tx: (0..queues).map(|_| TxConfig::default()).collect(),
        rss: if queues > 1 { rss } else { Rss::default() },
        ..PortConfig::default()
    })?;
    let port = port.start()?;
    for shortfall in port.shortfalls() {
        eprintln!("{shortfall}");
    }
    if let Err(error) = port.control().set_promiscuous(true) {
        eprintln!("port {}: {error}", id.index());
    }
    Ok(port)
}

/// Deals the queues of all ports to the lcores in turn: a list for each lcore.
pub fn deal<'p>(
    ports: &'p mut [Port<'_, Started>],
    lcores: &[Lcore],
    captures: &mut Captures,
) -> Result<Vec<Vec<QueuePair<'p>>>> {
    let mut dealt: Vec<Vec<QueuePair<'p>>> = lcores.iter().map(|_| Vec::new()).collect();
    let mut next = (0..lcores.len()).cycle();
    for port in ports {
        let interface = Interface::of(&port.control())?;
        let pairs = port.queues().pairs();
        let ends = captures.port(interface, pairs.len());
        for (((rx, tx), [received, sent]), lcore) in pairs.into_iter().zip(ends).zip(next.by_ref())
        {
            dealt[lcore].push(QueuePair { rx, tx, received, sent });
        }
    }
    for (lcore, queues) in lcores.iter().zip(&dealt) {
        if queues.is_empty() {
            eprintln!("lcore {}: there is no queue for it", lcore.id());
        }
    }
    Ok(dealt)
}
