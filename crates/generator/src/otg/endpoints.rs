// SPDX-License-Identifier: BSD-3-Clause
//! OTG's `FlowRouter`: a flow between devices. Its frames go from each end of a pair to the other, the pairs in turn.
//!
//! The destination address of the first Ethernet header is that of the sending end's gateway, unless the flow gives it. Addresses
//! that the flow does not give (the source of the first Ethernet header, source and destination of the first IP header) are
//! those of the ends.

use std::net::IpAddr;

use packet::frame::{FieldValue, Header};
use packet::headers;

use super::devices::{Devices, Endpoint};
use super::walk::{Node, Object};
use crate::neighbors::{Hop, any_destination, in_turn};

/// Most names of a list.
const MAX_NAMES: usize = 4096;
/// Most pairs of a flow.
const MAX_PAIRS: usize = 65_536;

/// The pairs of ends between which frames go, in turn.
pub struct Pairs<'a> {
    devices: &'a Devices,
    pairs: Vec<(Endpoint, Endpoint)>,
    /// Index of the port that sends.
    pub tx: usize,
    /// Indices of the ports that receive, in ascending order.
    pub rx: Vec<usize>,
}

/// Reads `tx_rx.device`. If the devices themselves are wrong, `devices` is `None`, and names are not looked up.
pub fn read<'a>(node: &Node<'_>, devices: Option<&'a Devices>) -> Option<Pairs<'a>> {
    let object = node.object(&["mode", "tx_names", "rx_names", "bidirectional"])?;
    object.refuse_true(&["bidirectional"]);
    let mode = object.get("mode").map_or(Some("mesh"), |node| node.word(&["mesh", "one_to_one"]));
    let lists = ["tx_names", "rx_names"].map(|key| {
        let list = object.required(key)?.list_of(MAX_NAMES)?;
        match list.is_empty() {
            true => object.child_fault(key, "must have at least one name"),
            false => Some(list),
        }
    });
    let [tx, rx] = lists;
    let devices = devices?;
    let find = |list: Option<Vec<Node<'_>>>| {
        let ends = list?.into_iter().map(|node| endpoint(&node, devices));
        ends.collect::<Vec<_>>().into_iter().collect::<Option<Vec<Endpoint>>>()
    };
    let (tx, rx) = (find(tx), find(rx));
    let (mode, tx, rx) = (mode?, tx?, rx?);
    let pairs: Vec<(Endpoint, Endpoint)> = match mode {
        "one_to_one" if tx.len() != rx.len() => {
            return object.fault(format!(
                "mode one_to_one needs as many rx_names as tx_names; there are {} and {}",
                rx.len(),
                tx.len()
            ));
        }
        "one_to_one" => tx.iter().copied().zip(rx).collect(),
        _ if tx.len().saturating_mul(rx.len()) > MAX_PAIRS => {
            return object.fault(format!(
                "{} tx_names and {} rx_names; at most {MAX_PAIRS} pairs are supported",
                tx.len(),
                rx.len()
            ));
        }
        _ => tx.iter().flat_map(|from| rx.iter().map(move |to| (*from, *to))).collect(),
    };
    if let Some(at) = pairs.iter().position(|(from, to)| from == to) {
        return object.fault(format!("the ends of pair {at} are the same"));
    }
    let port = |end: &Endpoint| devices.interfaces.get(end.interface).map(|found| found.port);
    let first = tx.first().and_then(port)?;
    if let Some(at) = tx.iter().position(|end| port(end) != Some(first)) {
        return object.child_fault(
            &format!("tx_names[{at}]"),
            "is on another port than the first one; make a flow for each port that sends",
        );
    }
    let mut ports: Vec<usize> = pairs.iter().filter_map(|(_, to)| port(to)).collect();
    ports.sort_unstable();
    ports.dedup();
    Some(Pairs { devices, pairs, tx: first, rx: ports })
}

fn endpoint(node: &Node<'_>, devices: &Devices) -> Option<Endpoint> {
    let name = node.text()?;
    match devices.endpoint(name) {
        Some(end) => Some(end),
        None => {
            let shown: String = name.chars().take(60).collect();
            node.fault(format!(
                "no device has an ethernet, ipv4_addresses or ipv6_addresses entry named {shown:?}"
            ))
        }
    }
}

impl Pairs<'_> {
    /// Gives the headers of the flow the addresses that it does not give itself, and returns where its frames go first; nothing if
    /// the flow gives the destination. Warns if the frames do not have the interfaces' VLAN tags.
    pub fn address(&self, flow: &Object<'_>, headers: &mut [Header]) -> Vec<Hop> {
        let ip = headers
            .iter()
            .position(|header| [&headers::IPV4, &headers::IPV6].contains(&header.kind()));
        let is_ipv4 = ip.and_then(|at| headers.get(at)).map(|ip| ip.kind() == &headers::IPV4);
        let kind = |ip: &IpAddr| is_ipv4.is_some_and(|is_ipv4| ip.is_ipv4() == is_ipv4);
        if let Some(header) = ip.and_then(|at| headers.get_mut(at)) {
            let own = |end: Endpoint| {
                let address = self.devices.address(end, kind).filter(|found| kind(&found.ip))?;
                Some(match address.ip {
                    IpAddr::V4(ip) => u128::from(u32::from(ip)),
                    IpAddr::V6(ip) => ip.into(),
                })
            };
            let sources = self.pairs.iter().map(|(from, _)| own(*from));
            fill(header, "src", sources.collect());
            fill(header, "dst", self.pairs.iter().map(|(_, to)| own(*to)).collect());
        }
        self.warn_of_tags(flow, headers);
        let Some(ethernet) =
            headers.first_mut().filter(|header| header.kind() == &headers::ETHERNET)
        else {
            return Vec::new();
        };
        let mac = |end: Endpoint| self.devices.interfaces.get(end.interface).map(|own| own.mac);
        let macs = self.pairs.iter().map(|(from, _)| Some(mac(*from)?.to_u64().into()));
        fill(ethernet, "src", macs.collect());
        match ethernet.take("dst") {
            None | Some(FieldValue::Auto) => {}
            Some(given) => {
                // It had this field.
                let _ = ethernet.set("dst", given);
                return Vec::new();
            }
        }
        let hop = |(from, to): &(Endpoint, Endpoint)| match self.devices.address(*from, kind) {
            Some(address) => Some(match address.gateway_mac {
                Some(mac) => Hop::Known(mac),
                None => Hop::Gateway { interface: from.interface, address: address.gateway },
            }),
            // Without an address there is no gateway: the other end is on the same link.
            None => mac(*to).map(Hop::Known),
        };
        let hops: Vec<Hop> = self.pairs.iter().filter_map(hop).collect();
        let known = |hop: &Hop| match hop {
            Hop::Known(mac) => Some(mac.to_u64().into()),
            Hop::Gateway { .. } => None,
        };
        let (pattern, hops) = match hops.iter().map(known).collect::<Option<Vec<u128>>>() {
            Some(macs) => (in_turn(macs), Vec::new()),
            None => (any_destination(), hops),
        };
        let _ = ethernet.set("dst", pattern);
        hops
    }

    fn warn_of_tags(&self, flow: &Object<'_>, headers: &[Header]) {
        let has = headers.iter().skip(1).take_while(|header| header.kind() == &headers::VLAN);
        let has = has.count();
        let interfaces =
            self.pairs.iter().filter_map(|(from, _)| self.devices.interfaces.get(from.interface));
        if let Some(other) = interfaces.into_iter().find(|own| own.tags.len() != has) {
            flow.child_warning(
                "packet",
                format!(
                    "frames have {has} VLAN tags, and ethernet {:?}, which sends them, has {}: add vlan headers like its vlans",
                    other.name,
                    other.tags.len()
                ),
            );
        }
    }
}

/// Sets a field that the flow does not give, if there is a value for every pair.
fn fill(header: &mut Header, field: &str, values: Option<Vec<u128>>) {
    match (header.take(field), values) {
        (None, Some(values)) => _ = header.set(field, in_turn(values)),
        (Some(given), _) => _ = header.set(field, given),
        (None, None) => {}
    }
}
