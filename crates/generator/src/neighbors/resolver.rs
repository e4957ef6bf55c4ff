// SPDX-License-Identifier: BSD-3-Clause
//! Answers for the devices' addresses, and asks for their gateways.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use packet::MacAddr;

use super::message::{self, Message};
use super::{Hop, Interface};

/// How long after a question that nobody has answered it is asked again.
const ASK_AGAIN: Duration = Duration::from_secs(1);
/// How long after a question about a known gateway it is asked again, because its Ethernet address may have changed.
const ASK_KNOWN: Duration = Duration::from_secs(30);
/// Most answers of a port, and most questions, in a second.
const PER_SECOND: u32 = 1000;
/// Most of them at once.
const AT_ONCE: u32 = 100;

/// An address in the VLANs of a port.
type Place = (usize, Vec<u16>, IpAddr);

/// A gateway of an interface.
#[derive(Clone, Debug)]
pub struct Neighbor {
    /// Index of the interface.
    pub interface: usize,
    /// Its address.
    pub address: IpAddr,
    /// Its Ethernet address, if it is known.
    pub mac: Option<MacAddr>,
    /// The interface's address that asks.
    source: IpAddr,
    /// When to ask next; never if the configuration says the Ethernet address.
    ask_at: Option<Instant>,
}

/// How many frames may still be sent: [`AT_ONCE`] at once, and [`PER_SECOND`] in a second.
#[derive(Clone, Debug)]
struct Budget {
    left: u32,
    since: Instant,
}

impl Budget {
    fn take(&mut self, now: Instant) -> bool {
        let earned = now.saturating_duration_since(self.since).as_micros() * u128::from(PER_SECOND)
            / 1_000_000;
        if earned > 0 {
            self.left = u32::try_from(earned).unwrap_or(u32::MAX).saturating_add(self.left);
            self.left = self.left.min(AT_ONCE);
            self.since = now;
        }
        let any = self.left > 0;
        self.left -= u32::from(any);
        any
    }
}

/// The interfaces of a configuration, and what is known of their gateways.
#[derive(Clone, Debug, Default)]
pub struct Resolver {
    interfaces: Vec<Interface>,
    /// The interface that has each address, by its index.
    owners: HashMap<Place, usize>,
    neighbors: Vec<Neighbor>,
    /// The neighbors with an address.
    places: HashMap<Place, Vec<usize>>,
    /// The neighbor that is a gateway of an interface.
    gateways: HashMap<(usize, IpAddr), usize>,
    /// By port.
    answers: Vec<Budget>,
    questions: Vec<Budget>,
    /// The neighbor that is asked first: the one after the last question that the budget allowed.
    next: usize,
    on: bool,
}

impl Resolver {
    /// A resolver for these interfaces on that many ports. It neither answers nor asks before it is
    /// [started](Resolver::start).
    pub fn new(interfaces: &[Interface], ports: usize, now: Instant) -> Self {
        let budgets = vec![Budget { left: AT_ONCE, since: now }; ports];
        let mut resolver = Resolver {
            interfaces: interfaces.to_vec(),
            answers: budgets.clone(),
            questions: budgets,
            ..Resolver::default()
        };
        for (index, interface) in interfaces.iter().enumerate() {
            let place = |ip: IpAddr| (interface.port, interface.ids(), ip);
            let own = interface.addresses.iter().map(|address| address.ip);
            let link_local = interface.link_local().map(IpAddr::from);
            for ip in own.chain(link_local) {
                resolver.owners.entry(place(ip)).or_insert(index);
            }
            for address in &interface.addresses {
                let gateway = (index, address.gateway);
                let (known, source) = (address.gateway_mac, source(interface, address.gateway));
                if let Some(neighbor) = resolver.gateways.get(&gateway) {
                    // Two addresses may have one gateway, and only one of them its Ethernet address.
                    if let (Some(mac), Some(neighbor)) =
                        (known, resolver.neighbors.get_mut(*neighbor))
                    {
                        (neighbor.mac, neighbor.ask_at) = (Some(mac), None);
                    }
                    continue;
                }
                let number = resolver.neighbors.len();
                resolver.gateways.insert(gateway, number);
                resolver.places.entry(place(address.gateway)).or_default().push(number);
                resolver.neighbors.push(Neighbor {
                    interface: index,
                    address: address.gateway,
                    mac: known,
                    source: source.unwrap_or(address.ip),
                    ask_at: known.is_none().then_some(now),
                });
            }
        }
        resolver
    }

    /// The interfaces.
    pub fn interfaces(&self) -> &[Interface] {
        &self.interfaces
    }

    /// All gateways.
    pub fn neighbors(&self) -> &[Neighbor] {
        &self.neighbors
    }

    /// Whether it answers and asks.
    pub fn is_on(&self) -> bool {
        self.on
    }

    /// Answers from now on, and asks for all gateways, also for known ones.
    pub fn start(&mut self, now: Instant) {
        self.on = true;
        let asked = self.neighbors.iter_mut().filter_map(|neighbor| neighbor.ask_at.as_mut());
        asked.for_each(|at| *at = now);
    }

    /// Neither answers nor asks any more, and forgets what it was told.
    pub fn stop(&mut self) {
        self.on = false;
        let asked = self.neighbors.iter_mut().filter(|neighbor| neighbor.ask_at.is_some());
        asked.for_each(|neighbor| neighbor.mac = None);
    }

    /// The Ethernet address to which frames go first, if it is known.
    pub fn find(&self, hop: &Hop) -> Option<MacAddr> {
        match *hop {
            Hop::Known(mac) => Some(mac),
            Hop::Gateway { interface, address } => {
                let number = *self.gateways.get(&(interface, address))?;
                self.neighbors.get(number)?.mac
            }
        }
    }

    /// Takes note of a frame that a port has received, and returns the frame that answers it, if it is a question for one of the
    /// addresses.
    pub fn hear(&mut self, port: usize, frame: &[u8], now: Instant) -> Option<Vec<u8>> {
        let heard = message::read(frame).filter(|_| self.on)?;
        let place = |ip: IpAddr| (port, heard.ids.clone(), ip);
        match heard.message {
            Message::Answer { address, mac } => {
                self.learn(&place(address), mac, now);
                None
            }
            Message::Question { target, from, mac } => {
                self.learn(&place(from), mac, now);
                let owner = *self.owners.get(&place(target))?;
                let interface = self.interfaces.get(owner)?;
                // A flood of questions costs little beyond the answers that may be given.
                let may = self.answers.get_mut(port)?.take(now);
                may.then(|| message::answer(interface, target, from, mac)).flatten()
            }
        }
    }

    /// Notes the Ethernet address of the gateways with this address, unless the configuration says it.
    fn learn(&mut self, place: &Place, mac: MacAddr, now: Instant) {
        for number in self.places.get(place).into_iter().flatten() {
            if let Some(neighbor) = self.neighbors.get_mut(*number)
                && let Some(ask_at) = &mut neighbor.ask_at
            {
                neighbor.mac = Some(mac);
                *ask_at = now + ASK_KNOWN;
            }
        }
    }

    /// The questions that are due, each with the port on which it is to be sent.
    pub fn questions(&mut self, now: Instant) -> Vec<(usize, Vec<u8>)> {
        let mut due = Vec::new();
        if !self.on {
            return due;
        }
        let count = self.neighbors.len();
        for index in (self.next..count).chain(0..self.next.min(count)) {
            let Some(neighbor) = self.neighbors.get_mut(index) else { continue };
            let Some(interface) = self.interfaces.get(neighbor.interface) else { continue };
            let Some(ask_at) = neighbor.ask_at.as_mut().filter(|at| **at <= now) else { continue };
            let Some(budget) = self.questions.get_mut(interface.port) else { continue };
            let frame = message::question(interface, neighbor.source, neighbor.address);
            // A question that the budget does not allow is due again at the next look.
            if let Some(frame) = frame.filter(|_| budget.take(now)) {
                *ask_at = now + if neighbor.mac.is_some() { ASK_KNOWN } else { ASK_AGAIN };
                self.next = index + 1;
                due.push((interface.port, frame));
            }
        }
        due
    }
}

/// The interface's link-local address, which asks for gateways with link-local addresses; `None` for other gateways.
fn source(interface: &Interface, gateway: IpAddr) -> Option<IpAddr> {
    match gateway {
        IpAddr::V6(gateway) if gateway.is_unicast_link_local() => {
            interface.link_local().map(IpAddr::from)
        }
        _ => None,
    }
}
