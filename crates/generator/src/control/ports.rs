// SPDX-License-Identifier: BSD-3-Clause
//! Opens and closes the ports of a configuration, all of them or none.

use dpdk::{Eal, Mempool, PoolConfig, Port, PortConfig, PortControl, RxConfig, TxConfig};

use crate::engine::{Link, Source};
use crate::location::Location;
use crate::obstacle::obstacle;
use crate::otg::ApiError;
use crate::pacing::FrameRate;
use crate::plan::PortPlan;

/// Buffers of a port in each direction: four times the usual ring.
const BUFFERS: u32 = 4095;
/// Queues of a port that the engine polls. What comes to others would be lost without a trace.
const QUEUES: u16 = 1;

/// The pools of a port. They outlive it and are used again, for DPDK keeps pools until the end.
#[derive(Clone, Copy)]
struct Pools<'eal> {
    rx: Mempool<'eal>,
    tx: Mempool<'eal>,
}

/// A port that is open.
#[derive(Clone)]
pub struct Entry<'eal> {
    location: Location,
    control: PortControl<'eal>,
    pools: Pools<'eal>,
}

impl Entry<'_> {
    /// Whether frames can pass.
    pub fn link_is_up(&self) -> bool {
        // Drivers that know no better call it up.
        let down = obstacle(&self.location, None).is_some_and(|found| found.is_link_down());
        !down && self.control.link().is_ok_and(|link| link.up)
    }

    /// The line rate in Mbit/s. Only hardware has one: virtual devices claim any number.
    pub fn speed_mbps(&self) -> Option<u32> {
        match self.location {
            Location::Pci(_) => self.control.link().ok()?.speed_mbps,
            _ => None,
        }
    }

    /// The line rate in frames of this size.
    pub fn line_rate(&self, len_with_fcs: usize) -> Option<FrameRate> {
        let bits = (len_with_fcs + packet::L1_OVERHEAD) as u64 * 8;
        FrameRate::new(u64::from(self.speed_mbps()?) * 1_000_000, bits)
    }
}

/// Ports that have been opened for a configuration which is not in force yet.
pub struct Opened<'eal> {
    /// The ports, in order, kept ones and new ones.
    pub entries: Vec<Entry<'eal>>,
    sources: Vec<Source<'eal>>,
}

impl<'eal> Opened<'eal> {
    /// What the engine needs, the new entries, and the old entries that are given up.
    pub fn commit(
        self,
        old: Vec<Entry<'eal>>,
    ) -> (Vec<Source<'eal>>, Vec<Entry<'eal>>, Vec<Entry<'eal>>) {
        let kept = |index: usize| {
            self.sources.iter().any(|source| matches!(source, Source::Keep(keep) if *keep == index))
        };
        let given_up = old
            .into_iter()
            .enumerate()
            .filter(|(index, _)| !kept(*index))
            .map(|(_, entry)| entry)
            .collect();
        (self.sources, self.entries, given_up)
    }
}

/// Opens and closes ports.
pub struct Ports<'eal> {
    eal: &'eal Eal,
    own_eal_options: bool,
    free: Vec<Pools<'eal>>,
    /// Numbers for names of devices and pools.
    devices: u32,
    pools: u32,
}

impl<'eal> Ports<'eal> {
    /// No ports yet.
    pub fn new(eal: &'eal Eal, own_eal_options: bool) -> Self {
        Ports { eal, own_eal_options, free: Vec::new(), devices: 0, pools: 0 }
    }

    /// Opens the planned ports; those that are open now at the same location are kept.
    ///
    /// # Errors
    /// A 400 that names the location; then nothing new stays open.
    pub fn open(
        &mut self,
        plans: &[PortPlan],
        now: &[Entry<'eal>],
    ) -> Result<Opened<'eal>, ApiError> {
        let mut opened = Opened { entries: Vec::new(), sources: Vec::new() };
        for (index, plan) in plans.iter().enumerate() {
            if let Some(keep) = now.iter().position(|entry| entry.location == plan.location) {
                opened.entries.extend(now.get(keep).cloned());
                opened.sources.push(Source::Keep(keep));
                continue;
            }
            match self.open_one(&plan.location, now, &opened.entries) {
                Ok((entry, link)) => {
                    opened.entries.push(entry);
                    opened.sources.push(Source::New(link));
                }
                Err(error) => {
                    self.undo(opened);
                    return Err(ApiError::request(
                        400,
                        format!("ports[{index}].location: {error}"),
                    ));
                }
            }
        }
        Ok(opened)
    }

    fn open_one(
        &mut self,
        location: &Location,
        now: &[Entry<'eal>],
        new: &[Entry<'eal>],
    ) -> Result<(Entry<'eal>, Link<'eal>), String> {
        if let Some(other) = now.iter().find(|entry| entry.location.collides_with(location)) {
            return Err(format!(
                "{} is open for the present configuration; post an empty configuration first",
                other.location
            ));
        }
        let ours: Vec<&str> =
            now.iter().chain(new).filter_map(|entry| entry.location.listens_on()).collect();
        location.probe(&ours).map_err(|error| error.to_string())?;
        if matches!(location, Location::Pci(_)) && !self.own_eal_options {
            return Err("PCI devices are off when the generator chooses its EAL options; give some: generator -l CPU -a ADDRESS -- ...".to_owned());
        }
        if location.queues() > QUEUES {
            let queues = location.queues();
            return Err(format!(
                "queues={queues}: the engine polls {QUEUES} per port: leave it out"
            ));
        }
        let arguments = location.device_arguments(self.devices);
        self.devices += 1;
        // A device of EAL's own options is there already, and comes again by its arguments.
        let name = location.device_name(&arguments);
        let there = self.eal.ports().into_iter().find(|id| id.name().as_ref() == Some(&name));
        let attach = || self.eal.attach(&arguments).map_err(|error| error.to_string());
        let ids = match there {
            Some(id) => vec![id],
            None => location.attach(attach)?,
        };
        let [id] = *ids.as_slice() else {
            for id in &ids {
                self.remove(*id);
            }
            return Err(format!("the device has {} ports; give one with one port", ids.len()));
        };
        let started = self.start(id);
        if started.is_err() {
            self.remove(id);
        }
        let (port, pools) = started?;
        let control = port.control();
        // Frames for others come back too. A driver without the mode shows them anyway or never can.
        if let Err(error) = control.set_promiscuous(true) {
            tracing::debug!("{location}: no promiscuous mode: {error}");
        }
        Ok((Entry { location: location.clone(), control, pools }, Link { port, tx_pool: pools.tx }))
    }

    fn start(
        &mut self,
        id: dpdk::PortId,
    ) -> Result<(Port<'eal, dpdk::Started>, Pools<'eal>), String> {
        let pools = match self.free.pop() {
            Some(pools) => pools,
            None => self.new_pools().map_err(|error| error.to_string())?,
        };
        let config = PortConfig {
            rx: vec![RxConfig::new(&pools.rx)],
            tx: vec![TxConfig::default()],
            no_packet_types: true,
        };
        let started =
            self.eal.take_port(id).and_then(|port| port.configure(&config)).and_then(Port::start);
        match started {
            Ok(port) => Ok((port, pools)),
            Err(error) => {
                self.free.push(pools);
                Err(error.to_string())
            }
        }
    }

    fn new_pools(&mut self) -> Result<Pools<'eal>, dpdk::MempoolError> {
        let number = self.pools;
        self.pools += 1;
        let pool = |direction| {
            let config =
                PoolConfig { count: BUFFERS, ..PoolConfig::named(format!("{direction}{number}")) };
            Mempool::packet_pool(self.eal, &config)
        };
        Ok(Pools { rx: pool("rx")?, tx: pool("tx")? })
    }

    /// Closes what was opened for a configuration that will not be.
    pub fn undo(&mut self, opened: Opened<'eal>) {
        for (source, entry) in opened.sources.into_iter().zip(opened.entries) {
            if let Source::New(link) = source {
                self.close_one(link.port, entry.pools);
            }
        }
    }

    /// Closes ports that the engine has let go of. Returns what the client should know.
    pub fn close(&mut self, links: Vec<Link<'eal>>, entries: Vec<Entry<'eal>>) -> Vec<String> {
        let mut warnings = Vec::new();
        for link in links {
            let Some(entry) = entries.iter().find(|entry| entry.control.id() == link.port.id())
            else {
                continue;
            };
            if let Some(error) = self.close_one(link.port, entry.pools) {
                warnings.push(format!("{}: {error}", entry.location));
            }
        }
        warnings
    }

    fn close_one(&mut self, port: Port<'eal, dpdk::Started>, pools: Pools<'eal>) -> Option<String> {
        let stopped =
            port.stop().map(dpdk::Port::unconfigure).and_then(|port| self.eal.detach(port));
        match stopped {
            Ok(()) => {
                self.free.push(pools);
                None
            }
            Err(error) => Some(error.to_string()),
        }
    }

    fn remove(&self, id: dpdk::PortId) {
        if let Err(error) = self.eal.take_port(id).and_then(|port| self.eal.detach(port)) {
            tracing::warn!("port {id} cannot be removed: {error}");
        }
    }
}
