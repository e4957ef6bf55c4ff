// SPDX-License-Identifier: BSD-3-Clause
//! OTG's `devices`: Ethernet interfaces with VLAN tags and addresses. They resolve addresses and have no other protocols.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use packet::MacAddr;

use super::config::{Names, unique_name};
use super::flow::port_index;
use super::state::NO_PROTOCOLS;
use super::walk::{Node, Object};
use crate::neighbors::{Address, Interface, MAX_TAGS, Tag, is_unicast};

/// Most entries of each list, and most interfaces in all.
const MAX_DEVICES: usize = 1024;
/// Most addresses of all interfaces.
const MAX_ADDRESSES: usize = 4096;
/// Bytes of a frame that an MTU does not count: addresses, type and FCS.
const NOT_MTU: u64 = 18;

const TPIDS: [(&str, u16); 5] =
    [("x8100", 0x8100), ("x88A8", 0x88a8), ("x9100", 0x9100), ("x9200", 0x9200), ("x9300", 0x9300)];

/// Fields of a device that are protocols.
const PROTOCOLS: &[&str] = &[
    "ipv4_loopbacks",
    "ipv6_loopbacks",
    "isis",
    "bgp",
    "vxlan",
    "rsvp",
    "dhcp_server",
    "ospfv2",
    "macsec",
    "ospfv3",
    "rocev2",
    "bmp",
];
/// Fields of an Ethernet interface that are protocols.
const CLIENTS: &[&str] = &["dhcpv4_interfaces", "dhcpv6_interfaces"];

/// An end of a flow between devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Index of the interface.
    pub interface: usize,
    /// Index of the address there, if the end is an address.
    pub address: Option<usize>,
}

/// The interfaces of all devices, and the ends that flows may name.
#[derive(Clone, Debug, Default)]
pub struct Devices {
    /// The interfaces.
    pub interfaces: Vec<Interface>,
    endpoints: HashMap<String, Endpoint>,
}

impl Devices {
    /// The end of this name.
    pub fn endpoint(&self, name: &str) -> Option<Endpoint> {
        self.endpoints.get(name).copied()
    }

    /// The address of an end; of an interface, the first one of its `kind`.
    pub fn address(&self, end: Endpoint, kind: impl Fn(&IpAddr) -> bool) -> Option<&Address> {
        let interface = self.interfaces.get(end.interface)?;
        match end.address {
            Some(index) => interface.addresses.get(index),
            None => interface.addresses.iter().find(|address| kind(&address.ip)),
        }
    }
}

/// What is read for all devices.
struct Reader<'a> {
    ports: &'a [&'a str],
    max_frame: usize,
    names: Names,
    /// Where each address is given, by port, VLANs and address.
    places: HashMap<(usize, Vec<u16>, IpAddr), String>,
    addresses: usize,
}

/// Reads the devices. Ports take frames of `max_frame` bytes, FCS included.
pub fn read(node: &Node<'_>, ports: &[&str], max_frame: usize) -> Option<Devices> {
    let list = node.list_of(MAX_DEVICES)?;
    let mut reader =
        Reader { ports, max_frame, names: Names::new(), places: HashMap::new(), addresses: 0 };
    let read: Vec<Option<Vec<Interface>>> = list.iter().map(|node| reader.device(node)).collect();
    let interfaces: Vec<Interface> =
        read.into_iter().collect::<Option<Vec<_>>>()?.into_iter().flatten().collect();
    if interfaces.len() > MAX_DEVICES {
        return node
            .fault(format!("{} ethernets; at most {MAX_DEVICES} are supported", interfaces.len()));
    }
    let mut endpoints = HashMap::new();
    for (index, interface) in interfaces.iter().enumerate() {
        endpoints.insert(interface.name.clone(), Endpoint { interface: index, address: None });
        for (at, address) in interface.addresses.iter().enumerate() {
            let end = Endpoint { interface: index, address: Some(at) };
            endpoints.insert(address.name.clone(), end);
        }
    }
    Some(Devices { interfaces, endpoints })
}

impl Reader<'_> {
    fn device(&mut self, node: &Node<'_>) -> Option<Vec<Interface>> {
        let object = node.object(&[&["name", "ethernets"], PROTOCOLS].concat())?;
        refuse(&object, PROTOCOLS);
        let name = unique_name(&object, &mut self.names);
        let list = match object.get("ethernets") {
            Some(node) => node.list_of(MAX_DEVICES)?,
            None => Vec::new(),
        };
        let device = name.clone().unwrap_or_default();
        let read: Vec<Option<Interface>> =
            list.iter().map(|node| self.ethernet(node, &device)).collect();
        name?;
        read.into_iter().collect()
    }

    fn ethernet(&mut self, node: &Node<'_>, device: &str) -> Option<Interface> {
        let known =
            ["name", "connection", "mac", "mtu", "vlans", "ipv4_addresses", "ipv6_addresses"];
        let object = node.object(&[&known[..], CLIENTS].concat())?;
        refuse(&object, CLIENTS);
        let name = unique_name(&object, &mut self.names);
        let port = object.required("connection").and_then(|node| {
            let connection = node.object(&["choice", "port_name"])?;
            connection.choice(&["port_name"], Some("port_name"))?;
            port_index(&connection.required("port_name")?, self.ports)
        });
        let mac = object.required("mac").and_then(|node| unicast(&node));
        if let Some(node) = object.get("mtu") {
            let longest = node.integer(0, 65_535)? + NOT_MTU;
            if longest > self.max_frame as u64 {
                node.warn(format!(
                    "ignored: the ports have frames of at most {} bytes; for frames of {longest} bytes, start the generator with \
                     --max-frame {longest}",
                    self.max_frame
                ));
            }
        }
        let tags = self.tags(&object);
        let place = port
            .zip(tags.as_ref())
            .map(|(port, tags)| (port, tags.iter().map(|tag| tag.id).collect::<Vec<u16>>()));
        let ipv4 = self.addresses(&object, "ipv4_addresses", place.as_ref(), 32, ipv4);
        let ipv6 = self.addresses(&object, "ipv6_addresses", place.as_ref(), 128, ipv6);
        Some(Interface {
            device: device.to_owned(),
            name: name?,
            port: port?,
            mac: mac?,
            tags: tags?,
            addresses: [ipv4?, ipv6?].concat(),
        })
    }

    fn tags(&mut self, object: &Object<'_>) -> Option<Vec<Tag>> {
        let list = match object.get("vlans") {
            Some(node) => node.list_of(MAX_TAGS)?,
            None => Vec::new(),
        };
        let mut tag = |node: &Node<'_>| {
            let object = node.object(&["name", "tpid", "priority", "id"])?;
            let name = unique_name(&object, &mut self.names);
            let tpid = object
                .get("tpid")
                .map_or(Some("x8100"), |node| node.word(&TPIDS.map(|(word, _)| word)));
            let number = |key, default, most| {
                object.get(key).map_or(Some(default), |node| node.integer(0, most))
            };
            let (priority, id) = (number("priority", 0, 7), number("id", 1, 4095));
            name?;
            let word = tpid?;
            let (_, tpid) = TPIDS.iter().find(|(known, _)| *known == word)?;
            Some(Tag {
                tpid: *tpid,
                priority: u8::try_from(priority?).ok()?,
                id: u16::try_from(id?).ok()?,
            })
        };
        let tags: Vec<Option<Tag>> = list.iter().map(&mut tag).collect();
        tags.into_iter().collect()
    }

    /// The addresses of a list, which are in the VLANs of a port (`place`) and have prefixes of up to `bits` bits.
    fn addresses(
        &mut self,
        object: &Object<'_>,
        key: &str,
        place: Option<&(usize, Vec<u16>)>,
        bits: u64,
        read: fn(&Node<'_>) -> Option<IpAddr>,
    ) -> Option<Vec<Address>> {
        let Some(node) = object.get(key) else { return Some(Vec::new()) };
        let list = node.list_of(MAX_DEVICES)?;
        self.addresses += list.len();
        if self.addresses > MAX_ADDRESSES {
            return node.fault(format!("at most {MAX_ADDRESSES} addresses are supported in all"));
        }
        let addresses: Vec<Option<Address>> =
            list.iter().map(|node| self.address(node, place, bits, read)).collect();
        addresses.into_iter().collect()
    }

    fn address(
        &mut self,
        node: &Node<'_>,
        place: Option<&(usize, Vec<u16>)>,
        bits: u64,
        read: fn(&Node<'_>) -> Option<IpAddr>,
    ) -> Option<Address> {
        let object = node.object(&["name", "address", "gateway", "gateway_mac", "prefix"])?;
        let name = unique_name(&object, &mut self.names);
        let own = object.required("address");
        let ip = own.as_ref().and_then(read);
        let gateway = object.required("gateway").and_then(|node| {
            let gateway = read(&node)?;
            match ip == Some(gateway) {
                true => node.fault("is the interface's own address; frames go to another's first"),
                false => Some(gateway),
            }
        });
        let prefix = object.get("prefix").map_or(Some(0), |node| node.integer(1, bits));
        let gateway_mac = object.get("gateway_mac").map_or(Some(None), |node| gateway_mac(&node));
        if let (Some(own), Some(ip), Some((port, ids))) = (own, ip, place) {
            let key = (*port, ids.clone(), ip);
            if let Some(first) = self.places.insert(key, own.path().to_owned()) {
                let shown = format!("{ip} is at {first} already, on the same port and VLANs");
                return own.fault(shown);
            }
        }
        prefix?;
        Some(Address { name: name?, ip: ip?, gateway: gateway?, gateway_mac: gateway_mac? })
    }
}

/// Notes a fault for each protocol, even an empty object; an empty list is no protocol.
fn refuse(object: &Object<'_>, protocols: &[&str]) {
    for node in protocols.iter().filter_map(|key| object.get(key)) {
        if !(node.value().is_array() && node.is_empty()) {
            node.fault::<()>(NO_PROTOCOLS);
        }
    }
}

fn gateway_mac(node: &Node<'_>) -> Option<Option<MacAddr>> {
    let object = node.object(&["choice", "auto", "value"])?;
    match object.choice(&["auto", "value"], Some("auto"))? {
        "auto" => Some(None),
        _ => unicast(&object.required("value")?).map(Some),
    }
}

fn unicast(node: &Node<'_>) -> Option<MacAddr> {
    let mac = node.parse::<MacAddr>()?;
    match is_unicast(mac) {
        true => Some(mac),
        false => node.fault(format!("{mac} is not the address of one interface")),
    }
}

fn ipv4(node: &Node<'_>) -> Option<IpAddr> {
    let address: Ipv4Addr = address(node, "IPv4")?;
    let none = address.is_unspecified() || address.is_multicast() || address.is_broadcast();
    one(node, address.into(), none)
}

fn ipv6(node: &Node<'_>) -> Option<IpAddr> {
    let address: Ipv6Addr = address(node, "IPv6")?;
    one(node, address.into(), address.is_unspecified() || address.is_multicast())
}

fn one(node: &Node<'_>, address: IpAddr, is_none: bool) -> Option<IpAddr> {
    match is_none {
        true => node.fault(format!("{address} is not the address of one interface")),
        false => Some(address),
    }
}

fn address<T: std::str::FromStr>(node: &Node<'_>, what: &str) -> Option<T> {
    let text = node.text()?;
    match text.parse() {
        Ok(address) => Some(address),
        Err(_) => {
            let shown: String = text.chars().take(40).collect();
            node.fault(format!("{shown:?} is not an {what} address"))
        }
    }
}

#[cfg(test)]
mod tests;
