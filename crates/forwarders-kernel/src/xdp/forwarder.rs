// SPDX-License-Identifier: BSD-3-Clause
//! A program on each port, and replacing these programs while they run.

use std::io;
use std::os::fd::AsFd as _;
use std::sync::Mutex;

use forwarders_common::ethernet::addresses_of_l2fwd;
use libbpf_rs::{MapCore as _, MapFlags, Object};

use super::attach::{AttachError, Attached, Mode};
use super::layout::{Facts, LaneConstants};
use super::object::{
    self, LoadError, map, number, opened, program, refused, set_constants, share_maps,
};
use super::options::{Action, Options};
use super::shared::{Own, Shared, SharedError, Sharing};
use crate::interface::{Port, Promiscuous};
use crate::lane::Place;

const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/l2fwd.bpf.o"));

/// Why a port has no program.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The kernel refused the program.
    #[error("{0}")]
    Load(String),
    /// It could not be attached to the interface.
    #[error("{0}{advice}", advice = if matches!(.0, AttachError::Taken { .. }) { ", or use --shared" } else { "" })]
    Attach(#[from] AttachError),
    /// It could not be attached beside other programs.
    #[error(transparent)]
    Shared(#[from] SharedError),
    /// The action of programs that run beside others cannot be changed.
    #[error("with --shared the action stays: libxdp puts no program in another's place")]
    Stays,
    /// Promiscuous mode is not available.
    #[error("{device}: promiscuous mode of {iface}: {source}")]
    Promiscuous {
        /// The port's device.
        device: String,
        /// The interface.
        iface: String,
        /// The reason.
        source: io::Error,
    },
}

impl From<LoadError> for OpenError {
    fn from(error: LoadError) -> Self {
        Self::Load(error.to_string())
    }
}

/// The programs of all ports; they leave the interfaces when this is dropped.
pub(super) struct Forwarder {
    lanes: Vec<LaneProgram>,
    /// Owns the maps that all programs share.
    maps: Object,
    action: Mutex<Action>,
}

/// How a program is attached to its interface.
enum Held {
    Alone(Attached),
    Shared(Box<Shared>),
}

/// The mode of a port's program, and its description.
pub(super) struct Running {
    pub(super) mode: Mode,
    pub(super) told: String,
}

struct LaneProgram {
    pair: Pair,
    held: Held,
    _promiscuous: Option<Promiscuous>,
}

impl Forwarder {
    /// Attaches programs to the ports of these places.
    ///
    /// # Errors
    /// See [`OpenError`]; programs that were attached are detached again.
    pub(super) fn start(
        ports: &[Port],
        places: &[Place],
        options: &Options,
    ) -> Result<Self, OpenError> {
        let Options { l2fwd, action, mode, shared } = options;
        let (action, mode) = (*action, *mode);
        let sharing = shared.then(Sharing::find).transpose()?;
        let maps = shared_maps(ports, action)?;
        let mut lanes = Vec::with_capacity(places.len());
        for place in places {
            let find = |id: u16| ports.iter().find(|port| port.id == id);
            let (Some(rx_port), Some(tx_port)) = (find(place.rx_port), find(place.tx_port)) else {
                continue;
            };
            let pair = Pair {
                rx_port: rx_port.clone(),
                tx_port: tx_port.clone(),
                mac_updating: l2fwd.mac_updating,
            };
            let held = match &sharing {
                Some(sharing) => Held::Shared(Box::new(sharing.attach(
                    &pair.own(&maps, action),
                    rx_port,
                    mode,
                )?)),
                None => {
                    let object = pair.load(&maps, action)?;
                    let program = program(&object, action.program())?;
                    Held::Alone(Attached::new(program.as_fd(), rx_port, mode)?)
                }
            };
            let promiscuous = match l2fwd.promiscuous {
                true => Some(promiscuous(rx_port)?),
                false => None,
            };
            lanes.push(LaneProgram { pair, held, _promiscuous: promiscuous });
        }
        let forwarder = Self { lanes, maps, action: Mutex::new(action) };
        forwarder.refresh()?;
        Ok(forwarder)
    }

    /// Updates what may change on the interfaces for the programs: their addresses, and whether the
    /// kernel routes IPv6. Before the first update, programs leave all frames that are to be routed
    /// to the kernel.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn refresh(&self) -> Result<(), LoadError> {
        let routes_ipv6 = std::fs::read("/proc/sys/net/ipv6/conf/all/forwarding")
            .is_ok_and(|text| !text.starts_with(b"0"));
        let all = map(&self.maps, "port_facts")?;
        for LaneProgram { pair: Pair { rx_port, .. }, .. } in &self.lanes {
            // An interface that is gone is skipped.
            let Some(mac) = rx_port.now().and_then(|now| now.mac) else { continue };
            let facts = Facts { mac, routes_ipv6 }.bytes();
            all.update(&u32::from(rx_port.id).to_ne_bytes(), &facts, MapFlags::ANY)
                .map_err(refused("an entry of a map"))?;
        }
        Ok(())
    }

    /// The object whose maps all programs share.
    pub(super) fn maps(&self) -> &Object {
        &self.maps
    }

    /// The mode of each port's program.
    pub(super) fn running(&self) -> impl Iterator<Item = (u16, Running)> {
        self.lanes.iter().map(|lane| {
            let running = match &lane.held {
                Held::Alone(attached) => Running { mode: attached.mode, told: attached.told() },
                Held::Shared(shared) => Running { mode: shared.mode, told: shared.told() },
            };
            (lane.pair.rx_port.id, running)
        })
    }

    /// Returns true if the kernel has removed a port from the map that programs redirect by, as it
    /// does when the interface is deleted or leaves the namespace. It never adds it again.
    pub(super) fn has_left(&self, port: u16) -> bool {
        let key = u32::from(port).to_ne_bytes();
        let found = map(&self.maps, "ports").map(|map| map.lookup(&key, MapFlags::ANY));
        matches!(found, Ok(Ok(None)))
    }

    /// The present action.
    pub(super) fn action(&self) -> Action {
        self.action.lock().map_or_else(|poisoned| *poisoned.into_inner(), |action| *action)
    }

    /// Replaces the running programs by ones with another action. Every frame is processed by the
    /// old or the new one, and counters continue. All programs are loaded before the first is
    /// replaced.
    ///
    /// # Errors
    /// The kernel's. If loading fails, the old programs continue. If a port is gone, those before
    /// it have the new action: the program is about to end because of that.
    pub(super) fn replace(&self, action: Action) -> Result<(), OpenError> {
        let mut current = match self.action.lock() {
            Ok(current) => current,
            Err(poisoned) => poisoned.into_inner(),
        };
        let mut loaded = Vec::with_capacity(self.lanes.len());
        for lane in &self.lanes {
            let Held::Alone(attached) = &lane.held else { return Err(OpenError::Stays) };
            loaded.push((attached, lane.pair.load(&self.maps, action)?));
        }
        for (attached, object) in &loaded {
            let what = "putting a program in another's place";
            attached
                .replace(program(object, action.program())?.as_fd())
                .map_err(|error| LoadError::Refused { what, why: error.to_string() })?;
        }
        *current = action;
        Ok(())
    }
}

fn promiscuous(port: &Port) -> Result<Promiscuous, OpenError> {
    Promiscuous::on(port).map_err(|source| OpenError::Promiscuous {
        device: port.device.clone(),
        iface: port.iface.clone(),
        source,
    })
}

/// An object that is only used for its maps; its program is loaded but never runs.
fn shared_maps(ports: &[Port], action: Action) -> Result<Object, LoadError> {
    let object = object::load(opened(OBJECT, Some(action.program()))?)?;
    let (targets, port_of) = (map(&object, "ports")?, map(&object, "port_of")?);
    for port in ports {
        number(&targets, port.id.into(), port.index)?;
        number(&port_of, port.index, port.id.into())?;
    }
    Ok(object)
}

/// A port that frames arrive on, and the port for those that are neither sent back nor routed.
struct Pair {
    rx_port: Port,
    tx_port: Port,
    mac_updating: bool,
}

impl Pair {
    /// The constants of its program.
    fn constants(&self, action: Action) -> Vec<u8> {
        let out = if action == Action::Tx { &self.rx_port } else { &self.tx_port };
        let addresses = addresses_of_l2fwd(out.id, out.mac);
        let constants = LaneConstants {
            rx_port: self.rx_port.id,
            tx_port: out.id,
            addresses: self.mac_updating.then_some(addresses),
            is_virtual: self.rx_port.is_virtual,
        };
        constants.bytes()
    }

    /// The program for it, for libxdp to load.
    fn own<'o>(&self, maps: &'o Object, action: Action) -> Own<'o> {
        let (program, constants) = (action.program(), self.constants(action));
        Own { object: OBJECT, program, constants, maps }
    }

    /// Loads the program for it.
    fn load(&self, maps: &Object, action: Action) -> Result<Object, LoadError> {
        let mut object = opened(OBJECT, Some(action.program()))?;
        set_constants(&mut object, &self.constants(action))?;
        share_maps(&mut object, maps)?;
        object::load(object)
    }
}
