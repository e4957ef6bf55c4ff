// SPDX-License-Identifier: BSD-3-Clause
//! The interfaces of a configuration's devices: they answer ARP (RFC 826) and IPv6 neighbor discovery (RFC 4861), and ask for
//! the addresses of their gateways.
//!
//! # Threads
//! An lcore that receives copies such frames into a ring ([`Ear`]), because it may have no queue to send on. The control plane
//! reads the ring's other end ([`Listener`]), decides what is to be said ([`Resolver`]), and gives the frames to an lcore that
//! sends on the port. Nothing here is on the packet path but [`Ear::hears`].

mod ear;
mod message;
mod resolver;

use std::net::{IpAddr, Ipv6Addr};

use packet::MacAddr;
use packet::field::Pattern;
use packet::frame::FrameSpec;
use packet::headers;

pub use ear::{Ear, Listener, pair};
pub use message::is_unicast;
pub use resolver::{Neighbor, Resolver};

/// Most VLAN tags of an interface.
pub const MAX_TAGS: usize = 4;

/// A VLAN tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tag {
    /// Its own type.
    pub tpid: u16,
    /// Priority, 0 to 7.
    pub priority: u8,
    /// VLAN ID, 0 to 4095.
    pub id: u16,
}

/// An address of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// Its OTG name.
    pub name: String,
    /// The address.
    pub ip: IpAddr,
    /// Where its frames go first.
    pub gateway: IpAddr,
    /// The gateway's Ethernet address, if the configuration says so: then nobody asks for it.
    pub gateway_mac: Option<MacAddr>,
}

/// An Ethernet interface of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// The device's OTG name.
    pub device: String,
    /// Its OTG name.
    pub name: String,
    /// Index of the port on which it is.
    pub port: usize,
    /// Its Ethernet address.
    pub mac: MacAddr,
    /// Its VLAN tags, the outer one first.
    pub tags: Vec<Tag>,
    /// Its addresses, IPv4 before IPv6.
    pub addresses: Vec<Address>,
}

impl Interface {
    /// The VLAN IDs of its tags.
    pub fn ids(&self) -> Vec<u16> {
        self.tags.iter().map(|tag| tag.id).collect()
    }

    /// Its link-local address: the one that follows from its Ethernet address (RFC 4291, appendix A), if it has IPv6 at all.
    pub fn link_local(&self) -> Option<Ipv6Addr> {
        let any = self.addresses.iter().any(|address| address.ip.is_ipv6());
        let [a, b, c, d, e, f] = self.mac.0;
        let own = [0xfe, 0x80, 0, 0, 0, 0, 0, 0, a ^ 2, b, c, 0xff, 0xfe, d, e, f];
        any.then(|| own.into())
    }
}

/// The Ethernet address to which a flow's frames go first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hop {
    /// Known from the configuration.
    Known(MacAddr),
    /// That of a gateway, which is asked.
    Gateway {
        /// Index of the interface that sends.
        interface: usize,
        /// The gateway.
        address: IpAddr,
    },
}

/// Stands for a flow's destination addresses while they are not known. No such frame is sent, and code that tells flows
/// apart by header fields takes any address for the flow's.
pub fn any_destination() -> Pattern {
    Pattern::Increment { start: 0, step: 1, count: 1 << 48 }
}

/// Sets the destination address of a flow's first header, an Ethernet header; with several, they take turns.
pub fn set_destinations(spec: &mut FrameSpec, macs: &[MacAddr]) {
    let Some(header) =
        spec.headers.first_mut().filter(|header| header.kind() == &headers::ETHERNET)
    else {
        return;
    };
    header.take("dst");
    // An Ethernet header has this field.
    let _ = header.set("dst", in_turn(macs.iter().map(|mac| mac.to_u64().into()).collect()));
}

/// The pattern of these values in turn.
pub fn in_turn(values: Vec<u128>) -> Pattern {
    match values.as_slice() {
        [first, rest @ ..] if rest.iter().all(|value| value == first) => Pattern::Value(*first),
        _ => Pattern::Values(values),
    }
}

#[cfg(test)]
pub(crate) mod tests;
