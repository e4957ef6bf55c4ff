// SPDX-License-Identifier: BSD-3-Clause
//! OTG's `ControlState`: flows, links, captures and devices that start and stop.

use std::collections::HashMap;

use serde_json::Value;

use super::ApiError;
use super::walk::{Faults, Node, Object};
use crate::plan::MAX_FLOWS;

/// What is to happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// To flows.
    Transmit {
        /// What.
        state: Transmit,
        /// Indices of the flows.
        flows: Vec<usize>,
    },
    /// To links.
    Link {
        /// They come up, or go down.
        up: bool,
        /// Indices of the ports.
        ports: Vec<usize>,
    },
    /// To all devices: they resolve addresses from now on, or no longer.
    Protocols {
        /// They start.
        start: bool,
    },
    /// Nothing, for the reason that is given.
    Nothing(&'static str),
    /// To captures.
    Capture {
        /// They start, or stop.
        start: bool,
        /// Indices of the ports.
        ports: Vec<usize>,
    },
}

/// What flows are to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transmit {
    /// Begin, with counters at zero.
    Start,
    /// End.
    Stop,
    /// Wait.
    Pause,
    /// Go on.
    Resume,
}

/// Reads a request; `flows` and `ports` are the configured names, and `devices` says whether there are any.
///
/// # Errors
/// A 400 that names every field which is wrong or not supported.
pub fn validate(
    request: &Value,
    flows: &[&str],
    ports: &[&str],
    devices: bool,
) -> Result<Wanted, ApiError> {
    let faults = Faults::default();
    let wanted = read(&Node::root(request, &faults), flows, ports, devices);
    faults.finish(wanted)
}

fn read(root: &Node<'_>, flows: &[&str], ports: &[&str], devices: bool) -> Option<Wanted> {
    let object = root.object(&["choice", "traffic", "port", "protocol"])?;
    match object.choice(&["traffic", "port", "protocol"], None)? {
        "traffic" => transmit(&object.required("traffic")?, flows),
        "port" => port(&object.required("port")?, ports),
        _ => protocol(&object, devices),
    }
}

/// The only protocols are those by which devices resolve addresses: all start and stop at once. A state of one of them is refused by
/// its name.
fn protocol(object: &Object<'_>, devices: bool) -> Option<Wanted> {
    let node = object.get("protocol");
    if let Some(protocol) = node.filter(|node| asks_for_all(node)) {
        let all = protocol.object(&["choice", "all"])?.required("all")?.object(&["state"])?;
        let state = all.required("state")?.word(&["start", "stop"])?;
        return Some(match devices {
            true => Wanted::Protocols { start: state == "start" },
            false => {
                Wanted::Nothing("protocol.all: ignored: there are no devices, and so no protocols")
            }
        });
    }
    let kind = object.get("protocol").and_then(|node| {
        let kind = node.raw_field("choice")?.as_str()?.to_owned();
        let known = kind.len() < 30 && kind.chars().all(|c| c.is_ascii_alphanumeric());
        known.then_some(kind)
    });
    let path = kind.map_or("protocol".to_owned(), |kind| format!("protocol.{kind}"));
    object.child_fault(&path, NO_PROTOCOLS)
}

/// Why a protocol is refused.
pub(super) const NO_PROTOCOLS: &str = "not supported; devices resolve addresses (ARP, IPv6 neighbor discovery) and have no other protocols";

/// Whether a state is one of all protocols, by its choice or because there is nothing else.
fn asks_for_all(node: &Node<'_>) -> bool {
    match node.raw_field("choice").filter(|choice| !choice.is_null()) {
        Some(choice) => choice == "all",
        None => node.raw_field("all").is_some_and(|all| !all.is_null()),
    }
}

fn transmit(node: &Node<'_>, flows: &[&str]) -> Option<Wanted> {
    let traffic = node.object(&["choice", "flow_transmit"])?;
    traffic.choice(&["flow_transmit"], None)?;
    let transmit = traffic.required("flow_transmit")?.object(&["state", "flow_names"])?;
    let words = ["start", "stop", "pause", "resume"];
    let state = transmit.required("state").and_then(|node| node.word(&words));
    let indices = indices(transmit.get("flow_names"), flows, "flow");
    let (state, flows) = (state?, indices?);
    let state = match state {
        "start" if flows.is_empty() => {
            return transmit.fault("there is no flow to start; configure flows first");
        }
        "start" => Transmit::Start,
        "stop" => Transmit::Stop,
        "pause" => Transmit::Pause,
        _ => Transmit::Resume,
    };
    Some(Wanted::Transmit { state, flows })
}

fn port(node: &Node<'_>, ports: &[&str]) -> Option<Wanted> {
    let object = node.object(&["choice", "link", "capture"])?;
    let chosen = object.choice(&["link", "capture"], None)?;
    let details = object.required(chosen)?.object(&["state", "port_names"])?;
    let words = if chosen == "link" { ["up", "down"] } else { ["start", "stop"] };
    let state = details.required("state").and_then(|node| node.word(&words));
    let indices = indices(details.get("port_names"), ports, "port");
    let (first, ports) = (state? == words[0], indices?);
    if ports.is_empty() {
        return details.fault("there is no port; configure ports first");
    }
    Some(match chosen {
        "link" => Wanted::Link { up: first, ports },
        _ => Wanted::Capture { start: first, ports },
    })
}

/// Most names in a list of a request: as many as there can be. A longer list would hold up the thread that answers
/// all clients.
pub(super) const MAX_NAMES: usize = MAX_FLOWS;

/// The indices of the named things, in ascending order; no list or an empty one means all.
pub(super) fn indices(list: Option<Node<'_>>, names: &[&str], what: &str) -> Option<Vec<usize>> {
    let wanted = list.map_or(Some(Vec::new()), |node| node.list_of(MAX_NAMES))?;
    if wanted.is_empty() {
        return Some((0..names.len()).collect());
    }
    let places: HashMap<&str, usize> =
        names.iter().enumerate().map(|(index, name)| (*name, index)).collect();
    let find = |node: &Node<'_>| {
        let name = node.text()?;
        match places.get(name) {
            Some(index) => Some(*index),
            None => node.fault(format!(
                "there is no {what} named {:?}",
                name.chars().take(60).collect::<String>()
            )),
        }
    };
    let mut indices: Vec<usize> =
        wanted.iter().map(find).collect::<Vec<_>>().into_iter().collect::<Option<_>>()?;
    indices.sort_unstable();
    indices.dedup();
    Some(indices)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const FLOWS: [&str; 3] = ["a", "b", "c"];
    const PORTS: [&str; 2] = ["p", "q"];

    fn transmit(state: &str, names: &[&str]) -> Value {
        json!({"choice": "traffic", "traffic": {"choice": "flow_transmit", "flow_transmit": {"state": state, "flow_names": names}}})
    }

    fn port(kind: &str, state: &str, names: &[&str]) -> Value {
        json!({"choice": "port", "port": {"choice": kind, kind: {"state": state, "port_names": names}}})
    }

    #[test]
    fn flows_and_ports_are_chosen_by_name() {
        let read = |value: &Value| validate(value, &FLOWS, &PORTS, false);
        for (word, state) in [
            ("start", Transmit::Start),
            ("stop", Transmit::Stop),
            ("pause", Transmit::Pause),
            ("resume", Transmit::Resume),
        ] {
            let wanted = |flows| Ok(Wanted::Transmit { state, flows });
            assert_eq!(read(&transmit(word, &[])), wanted(vec![0, 1, 2]));
            assert_eq!(read(&transmit(word, &["c", "a", "c"])), wanted(vec![0, 2]));
        }
        let link = |up, ports| Ok(Wanted::Link { up, ports });
        assert_eq!(read(&port("link", "up", &[])), link(true, vec![0, 1]));
        assert_eq!(read(&port("link", "down", &["q"])), link(false, vec![1]));
        let capture = |start, ports| Ok(Wanted::Capture { start, ports });
        assert_eq!(read(&port("capture", "start", &["p"])), capture(true, vec![0]));
        let all = json!({"port": {"capture": {"state": "stop"}}});
        assert_eq!(read(&all), capture(false, vec![0, 1]));
    }

    #[test]
    fn what_cannot_be_done_is_named() {
        for (value, wanted) in [
            (transmit("hop", &[]), "traffic.flow_transmit.state: \"hop\" is not supported"),
            (transmit("start", &["x"]), "traffic.flow_transmit.flow_names[0]: there is no flow"),
            (port("link", "start", &[]), "port.link.state: \"start\" is not supported"),
            (port("capture", "up", &[]), "port.capture.state: \"up\" is not supported"),
            (port("capture", "stop", &["x"]), "port.capture.port_names[0]: there is no port"),
            (json!({"choice": "port", "port": {}}), "port: choose one of link, capture"),
            (
                json!({"choice": "protocol", "protocol": {"choice": "lacp", "lacp": {}}}),
                "protocol.lacp: not supported; devices resolve addresses",
            ),
            (json!({"protocol": {"all": {"state": "on"}}}), "protocol.all.state: \"on\" is not"),
            (json!({"protocol": {"choice": "all"}}), "protocol.all: is missing"),
            (json!({"choice": "protocol"}), "protocol: not supported; devices resolve addresses"),
            (json!({"choice": "traffic"}), "traffic: is missing"),
            (json!({}), "choose one of traffic, port, protocol"),
        ] {
            let error = validate(&value, &FLOWS, &PORTS, true).unwrap_err().errors.join("; ");
            assert!(error.starts_with(wanted), "{wanted}: {error}");
        }
        for (value, start) in [
            (
                json!({"choice": "protocol", "protocol": {"choice": "all", "all": {"state": "start"}}}),
                true,
            ),
            (json!({"protocol": {"all": {"state": "stop"}}}), false),
        ] {
            let wanted = validate(&value, &FLOWS, &PORTS, true);
            assert_eq!(wanted, Ok(Wanted::Protocols { start }));
            let wanted = validate(&value, &FLOWS, &PORTS, false);
            assert!(matches!(wanted, Ok(Wanted::Nothing(why)) if why.contains("no devices")));
        }
        let nothing =
            |value: &Value| validate(value, &[], &[], true).unwrap_err().errors.join("; ");
        assert!(nothing(&transmit("start", &[])).contains("no flow to start"));
        assert!(nothing(&port("link", "up", &[])).contains("there is no port"));
        assert!(validate(&transmit("stop", &[]), &[], &[], true).is_ok());
    }
}
