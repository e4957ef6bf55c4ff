// SPDX-License-Identifier: BSD-3-Clause
//! OTG's `StatesRequest`: the gateways of the devices' interfaces, and the answer to it.

use std::net::IpAddr;

use serde_json::{Value, json};

use super::state::indices;
use super::walk::{Faults, Node};
use super::{ApiError, unsupported};
use crate::neighbors::Resolver;

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Whether the gateways are those of IPv4 addresses; of IPv6 addresses otherwise.
    is_ipv4: bool,
    /// Indices of the interfaces.
    interfaces: Vec<usize>,
}

/// Reads a request; `ethernets` are the names of all interfaces.
///
/// # Errors
/// A 400 that names every field which is wrong or not supported.
pub fn validate(request: &Value, ethernets: &[&str]) -> Result<Request, ApiError> {
    const KINDS: [&str; 2] = ["ipv4_neighbors", "ipv6_neighbors"];
    if unsupported::asks_for_other_than(request, &KINDS) {
        return Err(unsupported::states(request));
    }
    let faults = Faults::default();
    let read = |root: &Node<'_>| {
        let object = root.object(&["choice", KINDS[0], KINDS[1]])?;
        let chosen = object.choice(&KINDS, Some(KINDS[0]))?;
        let names = object.inner(chosen, &["ethernet_names"])?.get("ethernet_names");
        let interfaces = indices(names, ethernets, "ethernet")?;
        Some(Request { is_ipv4: chosen == KINDS[0], interfaces })
    };
    let wanted = read(&Node::root(request, &faults));
    faults.finish(wanted)
}

/// The answer: each gateway, with its Ethernet address if that is known.
pub fn answer(request: &Request, resolver: &Resolver) -> Value {
    let (choice, key) = match request.is_ipv4 {
        true => ("ipv4_neighbors", "ipv4_address"),
        false => ("ipv6_neighbors", "ipv6_address"),
    };
    let wanted = |interface: usize, address: IpAddr| {
        address.is_ipv4() == request.is_ipv4 && request.interfaces.contains(&interface)
    };
    let states: Vec<Value> = resolver
        .neighbors()
        .iter()
        .filter(|neighbor| wanted(neighbor.interface, neighbor.address))
        .filter_map(|neighbor| {
            let interface = resolver.interfaces().get(neighbor.interface)?;
            let mut state = json!({ "ethernet_name": interface.name });
            state[key] = neighbor.address.to_string().into();
            if let Some(mac) = neighbor.mac {
                state["link_layer_address"] = mac.to_string().into();
            }
            Some(state)
        })
        .collect();
    let mut answer = json!({ "choice": choice });
    answer[choice] = states.into();
    answer
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::neighbors::tests::{interface, told};
    use std::time::Instant;

    #[test]
    fn gateways_are_told_with_what_is_known_of_them() {
        let interfaces = [interface("e1", 0, &["10.0.0.1 10.0.0.2", "2001:db8::1 2001:db8::2"])];
        let now = Instant::now();
        let mut resolver = Resolver::new(&interfaces, 1, now);
        resolver.start(now);
        let ask = |request: Value, resolver: &Resolver| {
            let request = validate(&request, &["e1"]).map_err(|error| error.errors.join("; "))?;
            Ok::<Value, String>(answer(&request, resolver))
        };
        let gateway = json!({"ethernet_name": "e1", "ipv4_address": "10.0.0.2"});
        let unknown = json!({"choice": "ipv4_neighbors", "ipv4_neighbors": [gateway]});
        assert_eq!(ask(json!({}), &resolver), Ok(unknown));
        resolver.hear(0, &told("10.0.0.2"), now);
        let mac = "02:00:00:00:00:99";
        let gateway =
            json!({"ethernet_name": "e1", "ipv4_address": "10.0.0.2", "link_layer_address": mac});
        let known = json!({"choice": "ipv4_neighbors", "ipv4_neighbors": [gateway]});
        let named =
            json!({"choice": "ipv4_neighbors", "ipv4_neighbors": {"ethernet_names": ["e1"]}});
        assert_eq!(ask(named, &resolver), Ok(known));
        let other = json!({"ethernet_name": "e1", "ipv6_address": "2001:db8::2"});
        let other = json!({"choice": "ipv6_neighbors", "ipv6_neighbors": [other]});
        assert_eq!(ask(json!({"choice": "ipv6_neighbors"}), &resolver), Ok(other));
        for (request, wanted) in [
            (
                json!({"ipv4_neighbors": {"ethernet_names": ["e1", "x"]}}),
                "ipv4_neighbors.ethernet_names[1]: there is no ethernet named \"x\"",
            ),
            (json!({"ipv6_neighbors": {"names": []}}), "ipv6_neighbors.names: not supported"),
            (json!({"choice": "isis_lsps", "isis_lsps": {}}), "isis_lsps: not supported; devices"),
            (json!({"lldp_neighbors": {}}), "lldp_neighbors: not supported"),
            (json!({"choice": 7}), "choice: must be a string"),
        ] {
            let error = ask(request, &resolver).unwrap_err();
            assert!(error.starts_with(wanted), "{wanted}: {error}");
        }
    }
}
