// SPDX-License-Identifier: BSD-3-Clause
//! OTG's `Config`: ports with their links and captures, and the flows between them.

use std::cell::Cell;
use std::collections::HashMap;

use serde_json::Value;

use super::ApiError;
use super::options::Options;
use super::walk::{Faults, Node, Object};
use super::{capture, devices, flow, layer1, options, tags};
use crate::capture::CapturePlan;
use crate::location::{Location, Policy};
use crate::plan::{FlowPlan, MAX_FLOWS, MAX_PORTS, Plan, PortPlan};

/// Longest name, in bytes. Telemetry commands carry names.
const MAX_NAME: usize = 64;

/// What is asked of a configuration beside OTG's model.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Where ports may be.
    pub locations: Policy,
    /// Size of the largest frame in bytes, FCS included.
    pub max_frame: usize,
    /// Whether captures have the FCS of frames.
    pub capture_fcs: bool,
}

/// Names that were given, with their places.
pub(super) type Names = HashMap<String, String>;

/// What a configuration means, and what is to be said about it.
///
/// # Errors
/// A 400 that names every field which is wrong or not supported.
pub fn validate(config: &Value, limits: &Limits) -> Result<(Plan, Vec<String>), ApiError> {
    let faults = Faults::default();
    let plan = plan(&Node::root(config, &faults), limits);
    let (plan, mut warnings) = faults.finish_with_warnings(plan)?;
    warnings.extend(latency_modes(config, &plan));
    Ok((plan, warnings))
}

fn plan(root: &Node<'_>, limits: &Limits) -> Option<Plan> {
    const EMPTY_ONLY: [&str; 5] =
        ["lags", "lldp", "events", "stateful_flows", "egress_only_tracking"];
    let known = ["ports", "flows", "layer1", "captures", "options", "devices"];
    let config = root.object(&[&EMPTY_ONLY[..], &known].concat())?;
    config.refuse(&EMPTY_ONLY);
    let options = config.get("options").map_or(Options::default(), |node| options::read(&node));
    let list = |key, max| config.get(key).map_or(Some(Vec::new()), |node| node.list_of(max));
    let (ports, flows) = (list("ports", MAX_PORTS), list("flows", MAX_FLOWS));
    let (links, captures) = (list("layer1", MAX_PORTS), list("captures", MAX_PORTS));
    let (ports, flows) = (ports?, flows?);

    let mut names = Names::new();
    let mut plans: Vec<Option<PortPlan>> =
        ports.iter().map(|node| port(node, &mut names, &limits.locations)).collect();
    one_port_each(&ports, &plans);
    let port_names: Vec<&str> = ports.iter().map(name_of).collect();
    let links = read_links(&links?, &port_names, limits.max_frame, &mut plans);
    let captures = read_captures(&captures?, &port_names, limits.capture_fcs);
    let devices = match config.get("devices") {
        Some(node) => devices::read(&node, &port_names, limits.max_frame),
        None => Some(devices::Devices::default()),
    };
    let none = devices.as_ref().is_some_and(|devices| devices.interfaces.is_empty());
    if options.manual_start && none {
        let what = "ignored: there are no devices, and so no protocols to start";
        config.child_warning("options.protocol_options.auto_start_all", what);
    }
    let context = flow::Context {
        ports: &port_names,
        devices: devices.as_ref(),
        max_frame: limits.max_frame,
        integrity: options.integrity,
        values_left: Cell::new(flow::MAX_VALUES),
    };
    let mut names = Names::new();
    let flow = |(index, node): (usize, &Node<'_>)| {
        let object = node.object(flow::FIELDS)?;
        let name = unique_name(&object, &mut names);
        flow::read(&object, &context, name, index)
    };
    let flows: Vec<Option<FlowPlan>> = flows.iter().enumerate().map(flow).collect();
    let mut flows = flows.into_iter().collect::<Option<Vec<FlowPlan>>>();
    if let Some(flows) = &mut flows {
        tags::share_rows(root, flows, port_names.len());
    }
    links?;
    Some(Plan {
        ports: plans.into_iter().collect::<Option<_>>()?,
        flows: flows?,
        captures: captures?,
        interfaces: devices?.interfaces,
        manual_start: options.manual_start,
        integrity: options.integrity,
        loss_duration: options.loss_duration,
    })
}

fn port(node: &Node<'_>, names: &mut Names, policy: &Policy) -> Option<PortPlan> {
    let object = node.object(&["name", "location"])?;
    let name = unique_name(&object, names);
    let location = object.required("location").and_then(|node| {
        let location = Location::read(node.text()?, policy);
        location.map_or_else(|error| node.fault(error.to_string()), Some)
    });
    Some(PortPlan { name: name?, location: location?, speed_mbps: None, promiscuous: true })
}

fn one_port_each(nodes: &[Node<'_>], plans: &[Option<PortPlan>]) {
    for (i, plan) in plans.iter().enumerate() {
        let same = |other: &Option<PortPlan>| match (other, plan) {
            (Some(other), Some(plan)) => other.location.collides_with(&plan.location),
            _ => false,
        };
        if let (Some(first), Some(node)) = (plans[..i].iter().position(same), nodes.get(i)) {
            let own = plan.as_ref().map(|plan| &plan.location);
            let both_ends = plans[first].as_ref().map(|plan| &plan.location) != own;
            let why =
                if both_ends { "; both ends of a link cannot be in one generator" } else { "" };
            node.child_fault::<()>("location", &format!("ports[{first}] is there already{why}"));
        }
    }
}

/// The name of a port, even of one that is otherwise wrong, so that flows are not blamed for it.
fn name_of<'a>(node: &Node<'a>) -> &'a str {
    node.raw_field("name").and_then(Value::as_str).unwrap_or_default()
}

pub(super) fn unique_name(object: &Object<'_>, names: &mut Names) -> Option<String> {
    let node = object.required("name")?;
    let name = node.text()?;
    if name.is_empty()
        || name.len() > MAX_NAME
        || name.contains(|c: char| c.is_control() || c == ',')
    {
        return node
            .fault(format!("must be 1 to {MAX_NAME} bytes without commas or control characters"));
    }
    only_once(&node, name, names)?;
    Some(name.to_owned())
}

fn only_once(node: &Node<'_>, name: &str, names: &mut Names) -> Option<()> {
    match names.insert(name.to_owned(), node.path().to_owned()) {
        Some(first) => node.fault(format!("{name:?} is at {first} already")),
        None => Some(()),
    }
}

/// Reads `layer1` and gives the ports what it says.
fn read_links(
    nodes: &[Node<'_>],
    names: &[&str],
    max_frame: usize,
    ports: &mut [Option<PortPlan>],
) -> Option<()> {
    let (mut link_names, mut taken) = (Names::new(), HashMap::new());
    let mut good = true;
    for (i, node) in nodes.iter().enumerate() {
        let Some(link) = layer1::read(node, names, max_frame) else {
            good = false;
            continue;
        };
        good &= only_once(node, &link.name, &mut link_names).is_some();
        for port in link.ports {
            if let Some(first) = taken.insert(port, i) {
                let name = names.get(port).copied().unwrap_or_default();
                let what = format!("port {name:?} is in layer1[{first}] already");
                node.child_fault::<()>("port_names", &what);
                good = false;
            }
            if let Some(Some(plan)) = ports.get_mut(port) {
                (plan.speed_mbps, plan.promiscuous) = (link.speed_mbps, link.promiscuous);
            }
        }
    }
    good.then_some(())
}

fn read_captures(nodes: &[Node<'_>], ports: &[&str], fcs: bool) -> Option<Vec<CapturePlan>> {
    let (mut names, mut taken) = (Names::new(), Names::new());
    let read = |node: &Node<'_>| {
        let capture = capture::read(node, ports, fcs)?;
        only_once(node, &capture.name, &mut names)?;
        for port in &capture.ports {
            if let Some(first) = taken.insert(port.clone(), node.path().to_owned()) {
                let what = format!("port {port:?} is in {first} already");
                return node.child_fault("port_names", &what);
            }
        }
        Some(capture)
    };
    let captures: Vec<Option<CapturePlan>> = nodes.iter().map(read).collect();
    captures.into_iter().collect()
}

/// Of the modes of latency in use, what they come to: nothing here is measured bit by bit.
fn latency_modes(config: &Value, plan: &Plan) -> Vec<String> {
    let mut modes = Vec::new();
    for (i, _) in plan.flows.iter().enumerate().filter(|(_, flow)| flow.is_stamped()) {
        let mode = config.pointer(&format!("/flows/{i}/metrics/latency/mode"));
        let mode = mode.and_then(Value::as_str).unwrap_or("store_forward");
        if !modes.contains(&mode) {
            modes.push(mode);
        }
    }
    if modes.is_empty() {
        return Vec::new();
    }
    vec![format!(
        "flows: metrics.latency.mode {}: whatever the mode, stamps are taken in software, when a \
         frame is handed to its port and after it was received",
        modes.join(" and ")
    )]
}

#[cfg(test)]
mod tests;
