// SPDX-License-Identifier: BSD-3-Clause
//! OTG's `ControlState`: starting and stopping flows.

use serde_json::Value;

use super::ApiError;
use super::walk::{Faults, Node};

/// What is to happen to which flows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// Start them; otherwise stop them.
    pub start: bool,
    /// Indices of the flows.
    pub flows: Vec<usize>,
}

/// Reads a request; `flows` are the names of the configured flows.
///
/// # Errors
/// A 400 that names every field which is wrong or not supported.
pub fn validate(request: &Value, flows: &[&str]) -> Result<Transmit, ApiError> {
    let faults = Faults::default();
    let transmit = transmit(&Node::root(request, &faults), flows);
    faults.finish(transmit)
}

fn transmit(root: &Node<'_>, flows: &[&str]) -> Option<Transmit> {
    let object = root.object(&["choice", "traffic"])?;
    object.choice(&["traffic"], None)?;
    let traffic = object.required("traffic")?.object(&["choice", "flow_transmit"])?;
    traffic.choice(&["flow_transmit"], None)?;
    let transmit = traffic.required("flow_transmit")?.object(&["state", "flow_names"])?;
    let state = transmit.required("state").and_then(|node| node.word(&["start", "stop"]));
    let indices = indices(transmit.get("flow_names"), flows, "flow");
    let transmit = Transmit { start: state? == "start", flows: indices? };
    match (transmit.start, transmit.flows.as_slice()) {
        (true, []) => object.fault("there is no flow to start; configure flows first"),
        _ => Some(transmit),
    }
}

/// The indices of the named things, in ascending order; no list or an empty one means all.
pub(super) fn indices(list: Option<Node<'_>>, names: &[&str], what: &str) -> Option<Vec<usize>> {
    let wanted = list.map_or(Some(Vec::new()), |node| node.list())?;
    if wanted.is_empty() {
        return Some((0..names.len()).collect());
    }
    let find = |node: &Node<'_>| {
        let name = node.text()?;
        match names.iter().position(|known| *known == name) {
            Some(index) => Some(index),
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

    fn request(state: &str, names: &[&str]) -> Value {
        json!({"choice": "traffic", "traffic": {"choice": "flow_transmit", "flow_transmit": {"state": state, "flow_names": names}}})
    }

    #[test]
    fn flows_are_chosen_by_name() {
        let flows = ["a", "b", "c"];
        assert_eq!(
            validate(&request("start", &[]), &flows),
            Ok(Transmit { start: true, flows: vec![0, 1, 2] })
        );
        assert_eq!(
            validate(&request("stop", &["c", "a", "c"]), &flows),
            Ok(Transmit { start: false, flows: vec![0, 2] })
        );
    }

    #[test]
    fn what_cannot_be_done_is_named() {
        let error =
            |value: Value, flows: &[&str]| validate(&value, flows).unwrap_err().errors.join("; ");
        assert!(
            error(request("pause", &[]), &["a"])
                .starts_with("traffic.flow_transmit.state: \"pause\" is not supported")
        );
        assert!(
            error(request("start", &["x"]), &["a"])
                .starts_with("traffic.flow_transmit.flow_names[0]: there is no flow named \"x\"")
        );
        assert!(error(request("start", &[]), &[]).contains("no flow to start"));
        assert!(
            error(json!({"choice": "port", "port": {"choice": "link"}}), &["a"])
                .contains("port: not supported")
        );
        assert!(error(json!({"choice": "traffic"}), &["a"]).contains("traffic: is missing"));
        assert!(error(json!({}), &["a"]).contains("choose one of traffic"));
    }
}
