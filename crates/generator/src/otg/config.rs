// SPDX-License-Identifier: BSD-3-Clause
//! OTG's `Config`: ports, and the flows between them.

use std::collections::HashMap;

use serde_json::Value;

use super::ApiError;
use super::flow;
use super::walk::{Faults, Node, Object};
use crate::location::{Location, Vdevs};
use crate::plan::{MAX_FLOWS, MAX_PORTS, Plan, PortPlan};

/// Longest name of a port or flow, in bytes. Telemetry commands carry names.
const MAX_NAME: usize = 64;

/// What a configuration means, whose ports may be on these virtual devices.
///
/// # Errors
/// A 400 that names every field which is wrong or not supported.
pub fn validate(config: &Value, vdevs: Vdevs) -> Result<Plan, ApiError> {
    let faults = Faults::default();
    let plan = plan(&Node::root(config, &faults), vdevs);
    faults.finish(plan)
}

fn plan(root: &Node<'_>, vdevs: Vdevs) -> Option<Plan> {
    const EMPTY_ONLY: [&str; 8] = [
        "lags",
        "layer1",
        "captures",
        "devices",
        "lldp",
        "events",
        "stateful_flows",
        "egress_only_tracking",
    ];
    let config = root.object(&[&EMPTY_ONLY[..], &["ports", "flows", "options"]].concat())?;
    config.refuse(&EMPTY_ONLY);
    if let Some(node) = config.get("options") {
        options(&node);
    }
    let ports = config.items("ports");
    if ports.len() > MAX_PORTS {
        config
            .get("ports")?
            .fault::<()>(format!("{} ports; at most {MAX_PORTS} are supported", ports.len()));
        return None;
    }
    let flows = config.items("flows");
    if flows.len() > MAX_FLOWS {
        config
            .get("flows")?
            .fault::<()>(format!("{} flows; at most {MAX_FLOWS} are supported", flows.len()));
        return None;
    }
    let mut names = HashMap::new();
    let plans: Vec<Option<PortPlan>> =
        ports.iter().map(|node| port(node, &mut names, vdevs)).collect();
    for (i, plan) in plans.iter().enumerate() {
        let same = |other: &&Option<PortPlan>| match (other, plan) {
            (Some(other), Some(plan)) => other.location.collides_with(&plan.location),
            _ => false,
        };
        if let (Some(first), Some(node)) =
            (plans[..i].iter().position(|other| same(&other)), ports.get(i))
        {
            node.fault::<()>(format!("location: ports[{first}] is there already"));
        }
    }
    let port_names: Vec<&str> = ports.iter().map(name_of).collect();
    let mut flow_names = HashMap::new();
    let flows: Vec<_> = flows
        .iter()
        .map(|node| {
            let object = node.object(flow::FIELDS)?;
            let name = unique_name(&object, &mut flow_names);
            flow::read(&object, &port_names, name?)
        })
        .collect();
    Some(Plan {
        ports: plans.into_iter().collect::<Option<_>>()?,
        flows: flows.into_iter().collect::<Option<_>>()?,
    })
}

fn port(node: &Node<'_>, names: &mut HashMap<String, String>, vdevs: Vdevs) -> Option<PortPlan> {
    let object = node.object(&["name", "location"])?;
    let name = unique_name(&object, names);
    let location = object.required("location").and_then(|node| {
        let location = Location::read(node.text()?, vdevs);
        location.map_or_else(|error| node.fault(error.to_string()), Some)
    });
    Some(PortPlan { name: name?, location: location? })
}

/// The name of a port, even of one that is otherwise wrong, so that flows are not blamed for it.
fn name_of<'a>(node: &Node<'a>) -> &'a str {
    node.raw_field("name").and_then(Value::as_str).unwrap_or_default()
}

fn unique_name(object: &Object<'_>, names: &mut HashMap<String, String>) -> Option<String> {
    let node = object.required("name")?;
    let name = node.text()?;
    if name.is_empty()
        || name.len() > MAX_NAME
        || name.contains(|c: char| c.is_control() || c == ',')
    {
        return node
            .fault(format!("must be 1 to {MAX_NAME} bytes without commas or control characters"));
    }
    if let Some(first) = names.insert(name.to_owned(), node.path().to_owned()) {
        return node.fault(format!("{name:?} is the name at {first} already"));
    }
    Some(name.to_owned())
}

fn options(node: &Node<'_>) {
    let Some(object) =
        node.object(&["port_options", "protocol_options", "per_port_options", "flow_options"])
    else {
        return;
    };
    object.refuse(&["protocol_options", "per_port_options", "flow_options"]);
    if let Some(port) = object
        .get("port_options")
        .and_then(|node| node.object(&["location_preemption", "data_integrity"]))
    {
        port.refuse_true(&["location_preemption", "data_integrity"]);
    }
}

#[cfg(test)]
mod tests;
