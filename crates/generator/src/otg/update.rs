// SPDX-License-Identifier: BSD-3-Clause
//! OTG's `ConfigUpdate`: other rates and sizes for flows of the configuration.
//!
//! The stored configuration is changed and read as a whole again, so that an update can do nothing
//! that a configuration could not.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::ApiError;
use super::config::{self, Limits};
use super::flow::FIELDS;
use super::state::NO_PROTOCOLS;
use super::walk::{Faults, Node};
use crate::plan::{MAX_FLOWS, Plan, Source};

/// A configuration with the changes of an update.
#[derive(Clone, Debug)]
pub struct Update {
    /// What it means now.
    pub plan: Plan,
    /// How it reads now.
    pub config: Value,
    /// Indices of the flows that change, and whether their sizes do.
    pub flows: Vec<(usize, bool)>,
}

/// Reads an update of the configuration `config`, which means `plan`.
///
/// # Errors
/// A 400 that names every field which is wrong or not supported.
pub fn validate(
    request: &Value,
    config: &Value,
    plan: &Plan,
    limits: &Limits,
) -> Result<Update, ApiError> {
    let faults = Faults::default();
    let names: Vec<&str> = plan.flows.iter().map(|flow| flow.name.as_str()).collect();
    let changes = read(&Node::root(request, &faults), &names);
    let changes = faults.finish(changes)?;
    let mut config = config.clone();
    for change in &changes {
        let flow = config.pointer_mut(&format!("/flows/{}", change.flow));
        let Some(Value::Object(flow)) = flow else {
            let what = format!("flows.flows: flow number {} is not the API's", change.flow);
            return Err(ApiError::invalid(vec![what]));
        };
        for (property, value) in &change.properties {
            flow.insert((*property).to_owned(), value.clone());
        }
    }
    let (mut new, _) =
        config::validate(&config, limits).map_err(|error| renamed(error, &changes))?;
    keep_marks(plan, &mut new).map_err(|error| renamed(error, &changes))?;
    let sizes = |plan: &Plan, flow: usize| match &plan.flows.get(flow)?.source {
        Source::Frames(spec) => Some(spec.sizes.clone()),
        Source::Replay(..) => None,
    };
    let resized = |flow: usize| sizes(&new, flow) != sizes(plan, flow);
    let flows = changes.iter().map(|change| (change.flow, resized(change.flow))).collect();
    Ok(Update { plan: new, config, flows })
}

/// Leaves the flows of a plan the marks that they have had, by which receivers know their frames.
fn keep_marks(old: &Plan, new: &mut Plan) -> Result<(), ApiError> {
    let mut faults = Vec::new();
    for (index, (old, new)) in old.flows.iter().zip(&mut new.flows).enumerate() {
        let (Source::Frames(old), Source::Frames(new)) = (&old.source, &mut new.source) else {
            continue;
        };
        new.signature = old.signature;
        let (size, least) = (new.sizes.min_with_fcs(), new.min_len_with_fcs());
        if size < least {
            let mark = old.signature.map_or(0, |mark| mark.len());
            faults.push(format!(
                "flows[{index}].size: a frame of {size} bytes has no room for the headers ({} bytes) and the {mark}-byte mark that the \
                 flow was given with its configuration: {least} bytes or more, or set a configuration with this size",
                new.headers_len()
            ));
        }
    }
    if faults.is_empty() { Ok(()) } else { Err(ApiError::invalid(faults)) }
}

/// The properties of a flow that change.
struct Change {
    flow: usize,
    properties: Vec<(&'static str, Value)>,
}

fn read(root: &Node<'_>, names: &[&str]) -> Option<Vec<Change>> {
    let object = root.object(&["choice", "flows", "protocols"])?;
    if object.choice(&["flows", "protocols"], Some("flows"))? == "protocols" {
        return object.child_fault("protocols", NO_PROTOCOLS);
    }
    let update = object.required("flows")?.object(&["property_names", "flows"])?;
    let properties = update.required("property_names").and_then(|node| {
        let words: Vec<Option<&'static str>> =
            node.list()?.iter().map(|node| node.word(&["rate", "size"])).collect();
        let mut words = words.into_iter().collect::<Option<Vec<_>>>()?;
        words.sort_unstable();
        words.dedup();
        if words.is_empty() { node.fault("name rate, size or both") } else { Some(words) }
    });
    let flows = update.required("flows").and_then(|node| node.list_of(MAX_FLOWS));
    let (properties, flows) = (properties?, flows?);
    let mut changes: Vec<Change> = Vec::new();
    let places: HashMap<&str, usize> =
        names.iter().enumerate().map(|(index, name)| (*name, index)).collect();
    let mut known = HashSet::new();
    let mut good = true;
    for node in &flows {
        // Whole flows are sent; what is not among the property names stays as it is.
        let Some(flow) = node.object(FIELDS) else {
            good = false;
            continue;
        };
        let name = flow.required("name");
        let index = name.as_ref().and_then(|node| index(node, &places));
        let value = |property: &&'static str| {
            flow.required(property).map(|node| (*property, node.value().clone()))
        };
        let values: Vec<Option<(&'static str, Value)>> = properties.iter().map(value).collect();
        let values = values.into_iter().collect::<Option<Vec<_>>>();
        match (index, values, name) {
            (Some(flow), _, Some(name)) if !known.insert(flow) => {
                name.fault::<()>("is in the list already");
                good = false;
            }
            (Some(flow), Some(properties), _) => changes.push(Change { flow, properties }),
            _ => good = false,
        }
    }
    good.then_some(changes)
}

fn index(node: &Node<'_>, places: &HashMap<&str, usize>) -> Option<usize> {
    let name = node.text()?;
    match places.get(name) {
        Some(index) => Some(*index),
        None => {
            let shown: String = name.chars().take(60).collect();
            node.fault(format!("there is no flow named {shown:?}"))
        }
    }
}

/// Faults of the whole configuration, by their places in the request.
fn renamed(error: ApiError, changes: &[Change]) -> ApiError {
    let rename = |error: String| {
        let place = changes.iter().enumerate().find_map(|(i, change)| {
            let rest = error.strip_prefix(&format!("flows[{}].", change.flow))?;
            Some(format!("flows.flows[{i}].{rest}"))
        });
        place.unwrap_or(error)
    };
    ApiError { errors: error.errors.into_iter().map(rename).collect(), ..error }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::location::Policy;
    use crate::pacing::FrameRate;
    use crate::plan::{Mark, Rate};
    use packet::size::Sizes;
    use serde_json::json;

    const LIMITS: Limits =
        Limits { locations: Policy::COMMAND_LINE, max_frame: 1518, capture_fcs: true };

    fn config() -> Value {
        let flow = |name: &str| {
            json!({"name": name, "tx_rx": {"port": {"tx_name": "p"}}, "packet": [{"ethernet": {}}, {"ipv6": {}}],
                "size": {"choice": "fixed", "fixed": 128}, "rate": {"choice": "pps", "pps": "1000"}, "metrics": {"enable": true}})
        };
        json!({"ports": [{"name": "p", "location": "lo"}], "flows": [flow("f"), flow("g")]})
    }

    fn update(request: Value) -> Result<Update, String> {
        let config = config();
        let (plan, _) = config::validate(&config, &LIMITS).unwrap();
        validate(&request, &config, &plan, &LIMITS).map_err(|error| error.errors.join("; "))
    }

    fn request(properties: &[&str], flows: Value) -> Value {
        json!({"choice": "flows", "flows": {"property_names": properties, "flows": flows}})
    }

    #[test]
    fn only_the_named_properties_of_the_named_flows_change() {
        let flow = json!([{"name": "g", "tx_rx": {"port": {"tx_name": "nobody"}}, "packet": [],
            "rate": {"choice": "pps", "pps": 7}, "size": {"fixed": 256}}]);
        let new = update(request(&["rate"], flow.clone())).unwrap();
        assert_eq!(new.flows, [(1, false)]);
        assert_eq!(new.plan.flows[1].rate, Rate::Frames(FrameRate::new(7, 1).unwrap()));
        assert_eq!(new.config["flows"][1]["rate"]["pps"], 7);
        let mut wanted = config();
        wanted["flows"][1]["rate"] = json!({"choice": "pps", "pps": 7});
        assert_eq!(new.config, wanted);

        let new = update(request(&["size", "rate", "size"], flow)).unwrap();
        assert_eq!(new.flows, [(1, true)]);
        let Source::Frames(spec) = &new.plan.flows[1].source else { panic!() };
        assert_eq!((&spec.sizes, spec.headers.len()), (&Sizes::Fixed(256), 2));
    }

    #[test]
    fn marks_stay_as_they_were() {
        let mut config = config();
        config["flows"][0]["size"]["fixed"] = json!(64);
        config["flows"][1]["size"]["fixed"] = json!(66);
        let (plan, _) = config::validate(&config, &LIMITS).unwrap();
        let marks = |plan: &Plan| plan.flows.iter().map(|flow| flow.mark()).collect::<Vec<_>>();
        assert_eq!(marks(&plan), [Mark::Fields, Mark::Short]);
        let sized = |f: usize, g: usize| {
            request(
                &["size"],
                json!([{"name": "f", "size": {"fixed": f}}, {"name": "g", "size": {"fixed": g}}]),
            )
        };
        // Larger frames would have room for more, and receivers would not look for it.
        let new = validate(&sized(1000, 1000), &config, &plan, &LIMITS).unwrap();
        assert_eq!(marks(&new.plan), [Mark::Fields, Mark::Short]);
        // The next update changes nothing of that, and the first size may come again.
        let request = request(&["size"], json!([{"name": "f", "size": {"fixed": 64}}]));
        let next = validate(&request, &new.config, &new.plan, &LIMITS).unwrap();
        assert_eq!(marks(&next.plan), [Mark::Fields, Mark::Short]);
        let error = validate(&sized(64, 65), &config, &plan, &LIMITS).map(drop).unwrap_err();
        assert_eq!(
            error.errors,
            [
                "flows.flows[1].size: a frame of 65 bytes has no room for the headers (54 bytes) and the 8-byte mark \
              that the flow was given with its configuration: 66 bytes or more, or set a configuration with this size"
            ]
        );
    }

    #[test]
    fn an_update_can_do_no_more_than_a_configuration() {
        for (value, wanted) in [
            (
                request(&["size"], json!([{"name": "g", "size": {"fixed": 64}}])),
                "flows.flows[0].size: a frame of 64 bytes has no room",
            ),
            (
                request(&["size"], json!([{"name": "f", "size": {"fixed": 2000}}])),
                "flows.flows[0].size.fixed: frames of 2000 bytes are longer than 1518",
            ),
            (
                request(&["rate"], json!([{"name": "f", "rate": {"pps": 0}}])),
                "flows.flows[0].rate.pps: must be",
            ),
            (request(&["rate"], json!([{"name": "x", "rate": {}}])), "flows.flows[0].name: there"),
            (request(&["rate"], json!([{"name": "f"}])), "flows.flows[0].rate: is missing"),
            (request(&["rate"], json!([{"rate": {}}])), "flows.flows[0].name: is missing"),
            (
                request(&["rate"], json!([{"name": "f", "rate": {}}, {"name": "f", "rate": {}}])),
                "flows.flows[1].name: is in the list already",
            ),
            (request(&["packet"], json!([])), "flows.property_names[0]: \"packet\" is not"),
            (request(&[], json!([])), "flows.property_names: name rate, size or both"),
            (json!({"choice": "protocols", "protocols": {}}), "protocols: not supported"),
            (json!({"flows": {"flows": [7], "property_names": ["rate"]}}), "flows.flows[0]: must"),
            (json!({}), "flows: is missing"),
        ] {
            let error = update(value).map(drop).unwrap_err();
            assert!(error.starts_with(wanted), "{wanted}: {error}");
        }
    }
}
