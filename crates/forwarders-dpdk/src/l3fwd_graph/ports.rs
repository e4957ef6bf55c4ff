// SPDX-License-Identifier: BSD-3-Clause
//! Pools and ports.

use std::collections::BTreeMap;

use dpdk::{
    Eal, Lcore, Mempool, MempoolError, PoolConfig, Port, PortConfig, RxConfig, Started, TxConfig,
};
use forwarders_common::ethernet::{addresses, mac_text};
use forwarders_common::{say, say_on};

use super::error::RunError;
use super::nodes::BURST;
use super::options::Options;
use super::plan::Plan;
use crate::ethernet::Addresses;
use crate::ports::warn_if_remote;

const DESCRIPTORS: u32 = 1024;
const CACHE: u32 = 256;
const MIN_MBUFS: u32 = 8192;
const HEADROOM: u16 = 128;
/// Ethernet header and FCS.
const OVERHEAD: u16 = 18;

/// The pools, made when they are first needed.
struct Pools<'p, 'eal> {
    eal: &'eal Eal,
    plan: &'p Plan,
    options: &'p Options,
    made: BTreeMap<(u16, Option<u32>), Mempool<'eal>>,
}

impl<'eal> Pools<'_, 'eal> {
    /// The pool for queues of a port that an lcore polls.
    fn of(&mut self, port: u16, lcore: Lcore) -> Result<Mempool<'eal>, MempoolError> {
        let socket = if self.options.no_numa { Some(0) } else { lcore.socket() };
        let owner = if self.options.per_port_pool { port } else { 0 };
        if let Some(pool) = self.made.get(&(owner, socket)) {
            return Ok(*pool);
        }
        let name = format!("mbuf_pool_{owner}:{}", socket.unwrap_or(0));
        let named = PoolConfig::named(name);
        let frame = self.options.max_packet_len.unwrap_or(0) + HEADROOM;
        let pool = Mempool::packet_pool(
            self.eal,
            &PoolConfig {
                count: self.count(),
                cache: CACHE,
                data_room: named.data_room.max(frame),
                socket,
                ..named
            },
        )?;
        say!("Allocated mbuf pool on socket {}", socket.unwrap_or(0));
        self.made.insert((owner, socket), pool);
        Ok(pool)
    }

    /// Mbufs that all rings, bursts and caches may hold, as the C example counts them.
    fn count(&self) -> u32 {
        let ports = if self.options.per_port_pool { 1 } else { self.plan.ports.len() };
        let most = |port: &u16| self.plan.queues_of(*port).count();
        let rx = self.plan.ports.iter().map(most).max().unwrap_or(0);
        let lcores = self.plan.lcores.len();
        let per_port = (rx + lcores) as u32 * DESCRIPTORS + (lcores * BURST) as u32;
        (ports as u32 * per_port + (lcores as u32 + 1) * CACHE).max(MIN_MBUFS)
    }
}

/// Running ports, and the addresses to write into packets sent on each.
type Running<'eal> = (Vec<Port<'eal, Started>>, BTreeMap<u16, Addresses>);

/// Starts the ports.
pub fn start<'eal>(
    eal: &'eal Eal,
    plan: &Plan,
    options: &Options,
) -> Result<Running<'eal>, RunError> {
    let mut pools = Pools { eal, plan, options, made: BTreeMap::new() };
    let (mut started, mut written) = (Vec::new(), BTreeMap::new());
    for id in eal.ports() {
        let port = id.index();
        if !plan.ports.contains(&port) {
            say!("Skipping disabled port {id}");
            continue;
        }
        let mut rx = Vec::new();
        for polled in plan.queues_of(port) {
            if let Some(lcore) = eal.lcores().into_iter().find(|lcore| lcore.id() == polled.lcore) {
                warn_if_remote(id, lcore);
                rx.push(RxConfig::new(&pools.of(port, lcore)?));
            }
        }
        if rx.is_empty() {
            say!(
                "WARNING, port {id} has no queue in --config: packets received on it are not routed."
            );
        }
        let queues = (rx.len(), plan.lcores.len());
        say_on!(
            "Initializing port {id} ... Creating queues: nb_rxq={} nb_txq={}... ",
            queues.0,
            queues.1
        );
        let config = PortConfig {
            rx,
            tx: vec![TxConfig::default(); queues.1],
            no_packet_types: true,
            mtu: options.max_packet_len.map(|len| len - OVERHEAD),
            ..PortConfig::default()
        };
        let running = eal.take_port(id)?.configure(&config)?.start()?;
        if options.promiscuous {
            running.control().set_promiscuous(true)?;
        }
        let source = running.control().mac()?;
        let default = [2, 0, 0, 0, 0, port as u8];
        let destination = options.destinations.get(&port).copied().unwrap_or(default);
        say!(" Address:{}, Destination:{}", mac_text(source), mac_text(destination));
        written.insert(port, addresses(destination, source));
        started.push(running);
    }
    Ok((started, written))
}
