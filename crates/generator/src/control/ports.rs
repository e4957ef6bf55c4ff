// SPDX-License-Identifier: BSD-3-Clause
//! Opens and closes the ports of a configuration, all of them or none.

use std::cell::Cell;
use std::io::ErrorKind;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Instant, SystemTime};

use dpdk::{
    Eal, Mempool, PoolConfig, Port, PortConfig, PortControl, PortId, PortInfo, RxConfig, TxConfig,
};

use super::af_xdp::{self, AfXdp};
use super::configurator::Progress;
use super::kept::Kept;
use super::link_state::LinkState;
use super::packet_ring;
use crate::engine::layout::{self, MostQueues};
use crate::engine::{Link, Source};
use crate::location::{Driver, Location, Role};
use crate::obstacle::{Obstacle, obstacle};
use crate::otg::ApiError;
use crate::plan::PortPlan;

/// Buffers of a queue: four times the usual size of a ring.
const BUFFERS: u32 = 4095;
/// Fewest free buffers with which a pool is used again: a ring of the usual size, and what lcores
/// hold.
const LEAST_BUFFERS: usize = 1536;
/// Bytes in front of a frame, as DPDK's drivers expect them.
const HEADROOM: usize = 128;
/// Bytes of a frame beyond its MTU: addresses, type and FCS.
const NOT_MTU: usize = 18;
/// net_memif's default buffer size in bytes.
const MEMIF_BUFFER: usize = 2048;

/// Rules for all ports.
#[derive(Clone, Copy, Debug)]
pub struct PortRules {
    /// True if the user gave the EAL options.
    pub own_eal_options: bool,
    /// Lcores that share the work.
    pub lcores: usize,
    /// Receive queues of a port, if its driver supports them.
    pub rx_queues: u16,
    /// Size of the largest frame in bytes, FCS included.
    pub max_frame: usize,
    /// True if a sender may wait for room in its port: a flood has no schedule to keep.
    pub may_wait: bool,
}

/// The pools of a port, by queue. They outlive the port and are used again, because DPDK never
/// frees pools.
#[derive(Clone)]
struct Pools<'eal> {
    rx: Vec<Mempool<'eal>>,
    tx: Vec<Mempool<'eal>>,
}

/// A port that is open.
#[derive(Clone)]
pub struct Entry<'eal> {
    location: Location,
    /// Index of its network interface, if it has one.
    interface: Option<u32>,
    control: PortControl<'eal>,
    pools: Pools<'eal>,
    most: MostQueues,
    /// Whether its link was up at the last look, and its speed in Mbit/s.
    link: Cell<(bool, Option<u32>)>,
    /// Its interface, if a client has set it down.
    taken_down: Arc<Mutex<Option<Raised>>>,
    /// When the link was first seen in its present state.
    changes: LinkState,
    /// The latest answer to what keeps frames of this length from passing.
    obstacle: Kept<Option<usize>, Option<Obstacle>>,
}

/// An interface that goes up when this is dropped.
struct Raised(u32);

impl Drop for Raised {
    fn drop(&mut self) {
        // It may be gone.
        let _ = host::set_up(self.0, true);
    }
}

impl Entry<'_> {
    /// What keeps frames of up to `longest` bytes from passing, at most a second old: metrics are
    /// read often, and each look takes several system calls.
    pub fn obstacle(&self, longest: Option<usize>) -> Option<Obstacle> {
        let ask = |longest: &Option<usize>| self.obstacle_now(*longest);
        self.obstacle.get(Instant::now(), longest, ask)
    }

    /// Returns true if frames can pass, given the kernel's `obstacle`.
    pub fn link_is_up(&self, obstacle: Option<&Obstacle>) -> bool {
        // Some drivers always report the link as up.
        let down = obstacle.is_some_and(Obstacle::is_link_down);
        let up = !down && self.link().0;
        self.changes.note(up, SystemTime::now())
    }

    /// When its link was first seen as it is now, in nanoseconds since the epoch.
    pub fn last_change(&self) -> u64 {
        self.changes.last_change()
    }

    /// Returns whether the link is up, and its speed. While another port is being opened or closed,
    /// which may take seconds, these are the last known values.
    fn link(&self) -> (bool, Option<u32>) {
        match self.control.try_link() {
            Ok(Some(link)) => self.link.set((link.up, link.speed_mbps)),
            Ok(None) => {}
            Err(_) => self.link.set((false, None)),
        }
        self.link.get()
    }

    /// Reads the link's state, if that is possible now.
    pub fn look_at_link(&self) {
        let link = self.control.link().ok();
        self.link.set(link.map_or((false, None), |link| (link.up, link.speed_mbps)));
    }

    /// Like [`Self::obstacle`], without the cache.
    pub fn obstacle_now(&self, longest: Option<usize>) -> Option<Obstacle> {
        obstacle(&self.location, longest, self.interface)
    }

    /// Returns true if its interface is gone, so that it will never work again.
    fn is_dead(&self) -> bool {
        matches!(self.obstacle_now(None), Some(Obstacle::Gone(_) | Obstacle::Replaced(_)))
    }

    /// The line rate in Mbit/s. Only hardware has one: virtual devices report arbitrary numbers.
    pub fn speed_mbps(&self) -> Option<u32> {
        match self.location {
            Location::Pci(_) => self.link().1,
            _ => None,
        }
    }

    /// The number of queues that its driver supports.
    pub fn most_queues(&self) -> MostQueues {
        self.most
    }

    /// Sets the link up or down; that of an interface by the kernel, as `ip link set` does, because DPDK's drivers for
    /// interfaces cannot. An interface goes up again when the port is closed.
    ///
    /// # Errors
    /// The driver's or the kernel's error.
    pub fn set_link(&self, up: bool) -> Result<(), String> {
        self.obstacle.forget();
        match (self.interface, self.location.interface()) {
            (Some(index), Some(name)) => {
                host::set_up(index, up).map_err(|error| match error.kind() {
                    ErrorKind::PermissionDenied => {
                        format!("{name}: {error}; the generator needs CAP_NET_ADMIN for this")
                    }
                    _ => format!("{name}: {error}"),
                })?;
                let mut taken_down = self.taken_down.lock().unwrap_or_else(PoisonError::into_inner);
                match up {
                    true => *taken_down = None,
                    false => _ = taken_down.get_or_insert_with(|| Raised(index)),
                }
            }
            _ => self.control.set_link(up).map_err(|error| error.to_string())?,
        }
        // Before the next change, so that its time is known.
        self.link_is_up(self.obstacle(None).as_ref());
        Ok(())
    }

    /// Switches promiscuous mode on or off.
    pub fn set_promiscuous(&self, on: bool) {
        // Without this mode, a driver either always receives all frames or never can.
        if let Err(error) = self.control.set_promiscuous(on) {
            tracing::debug!("{}: promiscuous mode: {error}", self.location);
        }
    }
}

/// Ports that have been opened for a configuration that is not in force yet.
pub struct Opened<'eal> {
    /// The ports in order, kept and new ones.
    pub entries: Vec<Entry<'eal>>,
    /// The same for the engine.
    pub sources: Vec<Source<'eal>>,
}

impl Opened<'_> {
    /// The previous indices of the ports that are kept.
    pub fn kept(&self) -> Vec<usize> {
        let kept = |source: &Source<'_>| match source {
            Source::Keep(index) => Some(*index),
            Source::New(_) => None,
        };
        self.sources.iter().filter_map(kept).collect()
    }
}

/// Opens and closes ports.
pub struct Ports<'eal> {
    eal: &'eal Eal,
    rules: PortRules,
    free: Vec<Mempool<'eal>>,
    af_xdp: AfXdp,
    /// The ports whose devices we made and that still exist, with the devices' arguments.
    made: Vec<(PortId, String)>,
    /// Number for the next name of a pool.
    pools: u32,
}

impl<'eal> Ports<'eal> {
    /// Returns a set without ports.
    pub fn new(eal: &'eal Eal, rules: PortRules) -> Self {
        Ports { eal, rules, free: Vec::new(), af_xdp: AfXdp::default(), made: Vec::new(), pools: 0 }
    }

    /// Opens the planned ports. Ports that are open at the same location are kept, unless their
    /// interfaces are gone. Reports to `progress` which one is being opened.
    ///
    /// # Errors
    /// A 400 that names the location; then no new port stays open.
    pub fn open(
        &mut self,
        plans: &[PortPlan],
        now: &[Entry<'eal>],
        progress: &Progress,
    ) -> Result<Opened<'eal>, ApiError> {
        let mut opened = Opened { entries: Vec::new(), sources: Vec::new() };
        let alive: Vec<_> = now.iter().enumerate().filter(|(_, entry)| !entry.is_dead()).collect();
        for (index, plan) in plans.iter().enumerate() {
            if let Some((keep, entry)) = alive.iter().find(|(_, e)| e.location == plan.location) {
                opened.entries.push((*entry).clone());
                opened.sources.push(Source::Keep(*keep));
                continue;
            }
            progress.step(format!("opening ports[{index}] ({})", plan.location));
            let others = alive.iter().map(|(_, entry)| *entry).chain(&opened.entries).collect();
            match self.open_one(&plan.location, others) {
                Ok((entry, link)) => {
                    opened.entries.push(entry);
                    opened.sources.push(Source::New(Box::new(link)));
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
        others: Vec<&Entry<'eal>>,
    ) -> Result<(Entry<'eal>, Link<'eal>), String> {
        if let Some(other) = others.iter().find(|entry| entry.location.collides_with(location)) {
            return Err(format!(
                "{} is open for the present configuration; post an empty configuration first",
                other.location
            ));
        }
        if location.is_af_xdp() {
            self.af_xdp.may_open().map_err(|error| error.to_string())?;
        }
        let find = |arguments: &str| {
            let name = location.device_name(arguments);
            self.eal.ports().into_iter().find(|id| id.name().as_ref() == Some(&name))
        };
        // Another device may have the name: of the EAL options, of a port that is about to be closed, or of one that
        // could not be.
        let mut number = 0;
        while location.is_numbered() && find(&location.device_arguments(number)).is_some() {
            number += 1;
        }
        let mut arguments = location.device_arguments(number);
        arguments.push_str(&self.buffers(location));
        // The named device may exist already: then it must have the same arguments.
        let there = match find(&arguments) {
            Some(id) => self.reusable(id, location, &arguments, &others)?,
            None => None,
        };
        if there.is_none() {
            let ours: Vec<&str> =
                others.iter().filter_map(|entry| entry.location.listens_on()).collect();
            location.probe(&ours).map_err(|error| error.to_string())?;
        }
        if matches!(location, Location::Pci(_)) && !self.rules.own_eal_options {
            return Err("the generator's default EAL options disable PCI devices; give EAL options: generator -l CPU -a ADDRESS -- ...".to_owned());
        }
        let attach = || self.eal.attach(&arguments).map_err(|error| error.to_string());
        let ids = match there {
            Some(id) => vec![id],
            None => location.attach(attach)?,
        };
        // If the kernel does not allow it, a port of net_af_packet still works, but its sender may
        // block.
        if !self.rules.may_wait {
            let _ = host::widen_packet_sockets();
        }
        if there.is_none() {
            self.made.extend(ids.iter().map(|id| (*id, arguments.clone())));
        }
        let [id] = *ids.as_slice() else {
            for id in &ids {
                self.remove(*id);
            }
            return Err(format!("the device has {} ports; give one with one port", ids.len()));
        };
        let interface = location.interface().and_then(|name| host::interface(name).ok()?);
        let interface = interface.map(|interface| interface.index);
        let started = self.start(id, location, interface);
        if started.is_err() && !self.remove(id) && location.is_af_xdp() {
            self.af_xdp.stays(&arguments);
        }
        let (port, pools, most) = started?;
        self.af_xdp.works(&arguments);
        let control = port.control();
        let up = control.link().is_ok_and(|link| link.up);
        let entry = Entry {
            location: location.clone(),
            interface,
            control,
            pools: pools.clone(),
            most,
            link: Cell::default(),
            taken_down: Arc::default(),
            changes: LinkState::new(up, SystemTime::now()),
            obstacle: Kept::default(),
        };
        entry.look_at_link();
        let spare_pool = pools.rx.first().copied().ok_or("the port has no receive queue")?;
        Ok((entry, Link { port, tx_pools: pools.tx, spare_pool }))
    }

    /// Returns the existing port whose device has the location's name, if it matches the location:
    /// one that EAL options made, or one with the same arguments. Removes a device left over from a
    /// location that could not be opened.
    fn reusable(
        &mut self,
        id: PortId,
        location: &Location,
        arguments: &str,
        others: &[&Entry<'eal>],
    ) -> Result<Option<PortId>, String> {
        let name = location.device_name(arguments);
        let is_open = others.iter().any(|entry| entry.control.id() == id);
        let made = self.made.iter().find(|(made, _)| *made == id).map(|(_, made)| made.clone());
        match made {
            // Its arguments came from the EAL options and are unknown here.
            None if location.is_clients_device() && arguments != name => Err(format!(
                "there is a device {name:?} of the generator's EAL options already; name it without arguments, or give this one another name"
            )),
            Some(old) if is_open && old != arguments => Err(format!(
                "device {name:?} is open for another port, as {old:?}; give this one another name, or post an empty configuration first"
            )),
            Some(old) if old != arguments && !self.remove(id) => Err(format!(
                "{old:?} could not be set up and cannot be removed; give the device another name"
            )),
            Some(old) if old != arguments => Ok(None),
            _ => Ok(Some(id)),
        }
    }

    fn start(
        &mut self,
        id: PortId,
        location: &Location,
        interface: Option<u32>,
    ) -> Result<(Port<'eal, dpdk::Started>, Pools<'eal>, MostQueues), String> {
        let port = self.eal.take_port(id).map_err(|error| error.to_string())?;
        let info = port.info().map_err(|error| error.to_string())?;
        let most = match location.has_one_queue() {
            true => MostQueues { rx: 1, tx: 1 },
            false => MostQueues { rx: info.max_rx_queues, tx: info.max_tx_queues },
        };
        let (rx, tx) = layout::queues(self.rules.lcores, &most, self.rules.rx_queues);
        // Frames in a queue that nobody polls would be lost without being counted.
        if location.queues() > rx {
            return Err(format!(
                "queues={}: {rx} would be polled; start the generator with more --cpus and --rx-queues, or leave it out",
                location.queues()
            ));
        }
        let mtu = self.mtu(location, &info)?;
        if let Some(name) = location.interface().filter(|_| location.is_af_xdp()) {
            fits_in_pages(name)?;
        }
        if location.is_af_xdp() {
            self.af_xdp.wait(interface, rx).map_err(|error| error.to_string())?;
        }
        let pools = self.pools(rx, tx, location.is_af_xdp())?;
        if location.is_af_xdp()
            && let Err(error) = self.af_xdp.take(rx)
        {
            self.keep(pools);
            return Err(error.to_string());
        }
        let config = PortConfig {
            rx: pools.rx.iter().map(RxConfig::new).collect(),
            tx: (0..tx).map(|_| TxConfig::default()).collect(),
            no_packet_types: true,
            mtu,
            ..PortConfig::default()
        };
        match port.configure(&config).and_then(Port::start) {
            Ok(port) => Ok((port, pools, most)),
            Err(error) => {
                self.keep(pools);
                Err(error.to_string())
            }
        }
    }

    /// Additional device arguments for long frames. [`packet_ring`] has those of net_af_packet.
    ///
    /// net_memif does not clear the flag that a frame continues in the next buffer, so that it
    /// later joins other frames to it; with buffers as large as frames it never sets the flag. The
    /// memif client chooses the size, and only DPDK 22.11 may be given it: newer releases assume
    /// that the other end's buffers have the same size.
    fn buffers(&self, location: &Location) -> String {
        let max_frame = self.rules.max_frame;
        let may_choose = dpdk::Release::running() <= dpdk::Release::V22_11;
        match location {
            Location::Interface { driver: Driver::AfPacket, .. } => {
                packet_ring::arguments(max_frame)
            }
            Location::Memif { role: Role::Client, .. }
                if max_frame > MEMIF_BUFFER && may_choose =>
            {
                format!(",bsize={max_frame}")
            }
            _ => String::new(),
        }
    }

    /// The MTU to set; none if the default is sufficient.
    fn mtu(&self, location: &Location, info: &PortInfo) -> Result<Option<u16>, String> {
        let mtu = self.rules.max_frame.saturating_sub(NOT_MTU);
        if info.driver == "net_af_packet" {
            return match location {
                Location::Vdev { arguments, .. } => {
                    packet_ring::check(arguments, self.rules.max_frame).map(|()| None)
                }
                _ => Ok(None),
            };
        }
        let most = match location.is_af_xdp() {
            true => af_xdp::longest_frame().min(usize::from(info.max_mtu) + NOT_MTU),
            false => usize::from(info.max_mtu) + NOT_MTU,
        };
        // memif has no MTU: it carries frames of any length, and its driver accepts only the
        // default.
        if mtu <= 1500 || info.driver == "net_memif" {
            return Ok(None);
        }
        match u16::try_from(mtu) {
            Ok(mtu) if self.rules.max_frame <= most => Ok(Some(mtu)),
            _ => Err(format!(
                "its driver ({}) supports frames of at most {} bytes; start the generator with a smaller --max-frame than {}{}",
                info.driver,
                most,
                self.rules.max_frame,
                instead(&info.driver)
            )),
        }
    }

    /// Pools for that many receive and transmit queues, unused existing ones first.
    fn pools(&mut self, rx: u16, tx: u16, is_af_xdp: bool) -> Result<Pools<'eal>, String> {
        let mut pools = Pools { rx: Vec::new(), tx: Vec::new() };
        match self.fill(&mut pools, rx, tx, is_af_xdp) {
            Ok(()) => Ok(pools),
            Err(error) => {
                self.keep(pools);
                Err(error)
            }
        }
    }

    fn fill(
        &mut self,
        pools: &mut Pools<'eal>,
        rx: u16,
        tx: u16,
        is_af_xdp: bool,
    ) -> Result<(), String> {
        for _ in 0..rx {
            // net_af_xdp shares less memory with the kernel than a pool on huge pages has: frames
            // sent from the pool's last buffers are lost without being counted. In a new pool,
            // these are used last.
            pools.rx.push(if is_af_xdp { self.new_pool()? } else { self.pool(LEAST_BUFFERS)? });
        }
        for _ in 0..tx {
            pools.tx.push(self.pool(LEAST_BUFFERS)?);
        }
        Ok(())
    }

    /// A pool that is not in use and has at least so many free buffers: the one with most, or a new
    /// one. Drivers may have kept some buffers of a pool that was used before.
    fn pool(&mut self, least: usize) -> Result<Mempool<'eal>, String> {
        let fullest = (0..self.free.len())
            .map(|index| (self.free[index].available(), index))
            .filter(|(available, _)| *available >= least)
            .max();
        match fullest {
            Some((_, index)) => Ok(self.free.swap_remove(index)),
            None => self.new_pool(),
        }
    }

    fn new_pool(&mut self) -> Result<Mempool<'eal>, String> {
        let number = self.pools;
        self.pools += 1;
        let usual = PoolConfig::named(format!("port{number}"));
        let max_frame = self.rules.max_frame;
        let room = match max_frame <= af_xdp::longest_frame() {
            true => max_frame + af_xdp::BESIDE_FRAME,
            false => packet_ring::mbuf_room(max_frame) + HEADROOM,
        };
        let room = u16::try_from(room).unwrap_or(u16::MAX);
        let config = PoolConfig { count: BUFFERS, data_room: usual.data_room.max(room), ..usual };
        Mempool::packet_pool(self.eal, &config).map_err(|error| match self.af_xdp.queues() {
            0 => error.to_string(),
            queues => format!(
                "{error}; AF_XDP queues have been opened {queues} times, and DPDK's driver (net_af_xdp) never gives their buffers back: a restart of the generator frees them"
            ),
        })
    }

    fn keep(&mut self, pools: Pools<'eal>) {
        self.free.extend(pools.rx);
        self.free.extend(pools.tx);
    }

    /// Closes what was opened for a configuration that was given up.
    pub fn undo(&mut self, opened: Opened<'eal>) {
        for (source, entry) in opened.sources.into_iter().zip(opened.entries) {
            if let Source::New(link) = source {
                self.close_one(link.port, &entry);
            }
        }
    }

    /// Closes ports that the engine has released. Returns warnings for the client.
    pub fn close(&mut self, links: Vec<Link<'eal>>, entries: &[&Entry<'eal>]) -> Vec<String> {
        let mut warnings = Vec::new();
        for link in links {
            let Some(entry) = entries.iter().find(|entry| entry.control.id() == link.port.id())
            else {
                continue;
            };
            if let Some(error) = self.close_one(link.port, entry) {
                warnings.push(format!("{}: {error}", entry.location));
            }
        }
        warnings
    }

    fn close_one(
        &mut self,
        port: Port<'eal, dpdk::Started>,
        entry: &Entry<'eal>,
    ) -> Option<String> {
        let is_af_xdp = entry.location.is_af_xdp();
        let queues = u16::try_from(entry.pools.rx.len()).unwrap_or(u16::MAX);
        // If the kernel does not report our queues now, it will not report later that they are free.
        let is_unknown = is_af_xdp && af_xdp::taken(entry.interface, queues).is_none();
        let stopped =
            port.stop().map(dpdk::Port::unconfigure).and_then(|port| self.eal.detach(port));
        if is_unknown {
            self.af_xdp.closed(Instant::now());
        }
        match stopped {
            Ok(()) => {
                self.forget(entry.control.id());
                self.keep(entry.pools.clone());
                None
            }
            Err(error) => Some(error.to_string()),
        }
    }

    /// Removes a port that is not open, and returns true if that succeeded.
    fn remove(&mut self, id: PortId) -> bool {
        let removed = self.eal.take_port(id).and_then(|port| self.eal.detach(port));
        if let Err(error) = &removed {
            tracing::warn!("port {id} cannot be removed: {error}");
        }
        if removed.is_ok() {
            self.forget(id);
        }
        removed.is_ok()
    }

    /// Forgets the port: its device is gone, and DPDK may give its number to another.
    fn forget(&mut self, id: PortId) {
        self.made.retain(|(made, _)| *made != id);
    }
}

/// Which location takes longer frames than a driver does.
fn instead(driver: &str) -> &'static str {
    match driver {
        "net_af_xdp" => {
            ", or use af_packet: there (with AF_XDP a frame lies in one page of memory)"
        }
        "net_tap" => ", or use af_packet: on one end of a veth",
        _ => "",
    }
}

/// Checks the MTU of an interface, and of the other end of a veth, for AF_XDP. The kernel would refuse the program that
/// AF_XDP needs, and then DPDK's driver could not remove the port.
fn fits_in_pages(name: &str) -> Result<(), String> {
    let most = (af_xdp::longest_frame() - NOT_MTU) as u32;
    let Ok(Some(own)) = host::interface(name) else { return Ok(()) };
    let peer = own.veth_peer().ok().flatten();
    let Some(end) = [Some(&own), peer.as_ref()].into_iter().flatten().find(|end| end.mtu > most)
    else {
        return Ok(());
    };
    let (at, mtu) = (&end.name, end.mtu);
    Err(format!(
        "{at} has an MTU of {mtu}, and AF_XDP takes {most} at most, at the other end of a veth too: `ip link set {at} mtu {most}` \
         or less, or use af_packet:{name}"
    ))
}
