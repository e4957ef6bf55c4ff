// SPDX-License-Identifier: BSD-3-Clause
//! OTG's `ConfigOptions`.

use super::walk::Node;

/// What they say that is supported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Whether payloads carry a checksum.
    pub integrity: bool,
    /// Whether flow metrics have the loss as a duration.
    pub loss_duration: bool,
    /// Whether devices neither answer nor ask before a request starts them.
    pub manual_start: bool,
}

/// Reads them; faults and warnings are noted, and the rest is as by default.
pub fn read(node: &Node<'_>) -> Options {
    let mut options = Options::default();
    let Some(object) =
        node.object(&["port_options", "protocol_options", "per_port_options", "flow_options"])
    else {
        return options;
    };
    object.refuse(&["per_port_options"]);
    if let Some(port) = object.get("port_options").and_then(|node| {
        node.object(&["location_preemption", "data_integrity", "frame_ordering_mode"])
    }) {
        if port.flag("location_preemption", false) == Some(true) {
            port.child_warning(
                "location_preemption",
                "ignored: ports belong to the newest configuration anyway, and to nobody else",
            );
        }
        options.integrity = port.flag("data_integrity", false).unwrap_or(false);
        if let Some(mode) =
            port.get("frame_ordering_mode").and_then(|node| node.object(&["choice"]))
        {
            mode.choice(&["no_ordering"], Some("no_ordering"));
        }
    }
    if let Some(protocols) =
        object.get("protocol_options").and_then(|node| node.object(&["auto_start_all"]))
    {
        options.manual_start = protocols.flag("auto_start_all", true) == Some(false);
    }
    if let Some(flows) =
        object.get("flow_options").and_then(|node| node.object(&["packet_loss_duration"]))
    {
        options.loss_duration = flows.flag("packet_loss_duration", false).unwrap_or(false);
    }
    options
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::otg::walk::Faults;
    use serde_json::{Value, json};

    fn options(json: &Value) -> Result<Options, String> {
        let faults = Faults::default();
        let options = read(&Node::root(json, &faults));
        faults.finish(Some(options)).map_err(|error| error.errors.join("; "))
    }

    #[test]
    fn what_changes_nothing_is_ignored_with_a_warning() {
        let json = json!({"port_options": {"location_preemption": true}});
        let wanted = "port_options.location_preemption: ignored";
        let faults = Faults::default();
        let options = read(&Node::root(&json, &faults));
        let (options, warnings) = faults.finish_with_warnings(Some(options)).unwrap();
        assert_eq!(options, Options::default());
        assert!(warnings.len() == 1 && warnings[0].starts_with(wanted), "{warnings:?}");
    }

    #[test]
    fn integrity_and_the_duration_of_loss_can_be_had() {
        let defaults = json!({
            "port_options": {"location_preemption": false, "data_integrity": false, "frame_ordering_mode": {"choice": "no_ordering"}},
            "protocol_options": {"auto_start_all": true},
            "flow_options": {"packet_loss_duration": false},
            "per_port_options": [],
        });
        assert_eq!(options(&defaults), Ok(Options::default()));
        let both = json!({"port_options": {"data_integrity": true}, "flow_options": {"packet_loss_duration": true}});
        let wanted = Options { integrity: true, loss_duration: true, ..Options::default() };
        assert_eq!(options(&both), Ok(wanted));
        let manual = json!({"protocol_options": {"auto_start_all": false}});
        assert_eq!(options(&manual), Ok(Options { manual_start: true, ..Options::default() }));
    }

    #[test]
    fn the_rest_is_refused() {
        for (json, wanted) in [
            (json!([]), "must be an object"),
            (json!({"port_options": {"location_preemption": 1}}), "port_options.location_pree"),
            (
                json!({"port_options": {"frame_ordering_mode": {"choice": "rfc2889"}}}),
                "port_options.frame_ordering_mode.choice: \"rfc2889\" is not",
            ),
            (
                json!({"protocol_options": {"auto_start_all": "no"}}),
                "protocol_options.auto_start_all: must be true or false",
            ),
            (json!({"per_port_options": [{}]}), "per_port_options: not supported"),
            (json!({"flow_options": {"x": 1}}), "flow_options.x: not supported"),
            (json!({"port_options": {"data_integrity": 1}}), "port_options.data_integrity: must"),
        ] {
            let error = options(&json).unwrap_err();
            assert!(error.starts_with(wanted), "{wanted}: {error}");
        }
    }
}
