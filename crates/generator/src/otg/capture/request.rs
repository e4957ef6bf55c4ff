// SPDX-License-Identifier: BSD-3-Clause
//! OTG's `CaptureRequest`: the file of a port's capture, or a part of it.

use serde_json::Value;

use super::super::ApiError;
use super::super::flow::port_index;
use super::super::walk::{Faults, Node};

/// Which frames are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Index of the port.
    pub port: usize,
    /// Number of the first frame, from 1, and how many; all when there is none.
    pub slice: Option<(u64, u64)>,
}

/// Reads a request; `ports` are the configured names.
///
/// # Errors
/// A 400 that names every field which is wrong or not supported.
pub fn request(request: &Value, ports: &[&str]) -> Result<Request, ApiError> {
    let faults = Faults::default();
    let request = read(&Node::root(request, &faults), ports);
    faults.finish(request)
}

fn read(root: &Node<'_>, ports: &[&str]) -> Option<Request> {
    let object = root.object(&["port_name", "packets"])?;
    let port = object.required("port_name").and_then(|node| port_index(&node, ports));
    let packets = object.inner("packets", &["choice", "slice"])?;
    let slice = match packets.choice(&["all", "slice"], Some("all"))? {
        "all" => None,
        _ => {
            let slice = packets.inner("slice", &["choice", "initial"])?;
            slice.choice(&["initial"], Some("initial"))?;
            let initial = slice.inner("initial", &["start", "count"])?;
            let number = |key, default| {
                initial.get(key).map_or(Some(default), |node| node.integer(1, u64::MAX))
            };
            let (start, count) = (number("start", 1), number("count", 100));
            Some((start?, count?))
        }
    };
    Some(Request { port: port?, slice })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn all_or_a_slice_is_wanted() {
        let read = |value: Value| request(&value, &["p", "q"]);
        assert_eq!(read(json!({"port_name": "q"})), Ok(Request { port: 1, slice: None }));
        let all = json!({"port_name": "p", "packets": {"choice": "all"}});
        assert_eq!(read(all), Ok(Request { port: 0, slice: None }));
        let slice = |slice| Ok(Request { port: 0, slice: Some(slice) });
        let default = json!({"port_name": "p", "packets": {"choice": "slice", "slice": {"choice": "initial", "initial": {}}}});
        assert_eq!(read(default), slice((1, 100)));
        let initial = json!({"port_name": "p", "packets": {"slice": {"initial": {"start": "7", "count": 9}}}});
        assert_eq!(read(initial), slice((7, 9)));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (value, wanted) in [
            (json!({}), "port_name: is missing"),
            (json!({"port_name": "x"}), "port_name: there is no port named \"x\""),
            (json!({"port_name": 7}), "port_name: must be a string"),
            (json!({"port_name": "p", "packets": {"choice": "last"}}), "packets.choice: \"last\""),
            (
                json!({"port_name": "p", "packets": {"slice": {"initial": {"start": 0}}}}),
                "packets.slice.initial.start: must be",
            ),
            (json!({"port_name": "p", "format": "pcap"}), "format: not supported"),
        ] {
            let error = request(&value, &["p"]).unwrap_err().errors.join("; ");
            assert!(error.starts_with(wanted), "{wanted}: {error}");
        }
    }
}
