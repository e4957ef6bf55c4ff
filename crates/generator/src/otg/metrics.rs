// SPDX-License-Identifier: BSD-3-Clause
//! OTG's `MetricsRequest` and the answers to it.

use std::collections::BTreeSet;

use serde_json::Value;

use super::ApiError;
use super::state::{MAX_NAMES, indices};
use super::walk::{Faults, Node};
use crate::plan::FlowPlan;
use crate::tags::Tags;

mod answer;
mod tagged;

use answer::flow_text;
pub use answer::{FlowFigures, Latency, PortFigures, Traffic, flow_metrics, port_metrics};
pub use tagged::{Filter, TagValue, Tagged, TaggedFigures};

const PORT_COLUMNS: [&str; 14] = [
    "bytes_rx",
    "bytes_rx_rate",
    "bytes_tx",
    "bytes_tx_rate",
    "capture",
    "frames_rx",
    "frames_rx_rate",
    "frames_tx",
    "frames_tx_rate",
    "last_change",
    "link",
    "location",
    "speed",
    "transmit",
];
const FLOW_COLUMNS: [&str; 17] = [
    "bytes_rx",
    "bytes_tx",
    "frames_rx",
    "frames_rx_rate",
    "frames_tx",
    "frames_tx_rate",
    "rx_l1_rate_bps",
    "rx_rate_bps",
    "rx_rate_bytes",
    "rx_rate_kbps",
    "rx_rate_mbps",
    "transmit",
    "tx_l1_rate_bps",
    "tx_rate_bps",
    "tx_rate_bytes",
    "tx_rate_kbps",
    "tx_rate_mbps",
];

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Metrics of these ports.
    Ports {
        /// Indices of the ports.
        ports: Vec<usize>,
        /// Columns wanted; empty means all.
        columns: Vec<String>,
    },
    /// Metrics of these flows.
    Flows {
        /// Indices of the flows.
        flows: Vec<usize>,
        /// Columns wanted; empty means all.
        columns: Vec<String>,
        /// Which of their tagged metrics.
        tagged: Tagged,
    },
}

/// The figures of an answer.
#[derive(Debug)]
pub enum Figures {
    /// Of ports.
    Ports {
        /// Each port's.
        ports: Vec<PortFigures>,
        /// Columns wanted; empty means all.
        columns: Vec<String>,
    },
    /// Of flows.
    Flows {
        /// Each flow's.
        flows: Vec<FlowFigures>,
        /// Columns wanted; empty means all.
        columns: Vec<String>,
        /// Which of their tagged metrics.
        tagged: Tagged,
    },
}

impl Figures {
    /// The answer.
    pub fn json(&self) -> Value {
        match self {
            Figures::Ports { ports, columns } => port_metrics(ports, columns),
            Figures::Flows { flows, columns, tagged } => flow_metrics(flows, columns, tagged),
        }
    }

    /// The answer as text, which takes a tenth of the memory.
    pub fn text(&self) -> String {
        match self {
            Figures::Ports { .. } => self.json().to_string(),
            Figures::Flows { flows, columns, tagged } => flow_text(flows, columns, tagged),
        }
    }
}

/// A flow that may be asked about.
#[derive(Clone, Copy, Debug)]
pub struct Known<'a> {
    /// Its name.
    pub name: &'a str,
    /// Whether it has metrics.
    pub metrics: bool,
    /// Its tags, if it has any.
    pub tags: Option<&'a Tags>,
}

impl<'a> From<&'a FlowPlan> for Known<'a> {
    fn from(flow: &'a FlowPlan) -> Self {
        Known { name: &flow.name, metrics: flow.metrics.enable, tags: flow.tags.as_deref() }
    }
}

/// Reads a request; `ports` are the configured names.
///
/// # Errors
/// A 400 that names every field which is wrong or not supported.
pub fn validate(request: &Value, ports: &[&str], flows: &[Known<'_>]) -> Result<Request, ApiError> {
    let faults = Faults::default();
    let request = read(&Node::root(request, &faults), ports, flows);
    faults.finish(request)
}

fn read(root: &Node<'_>, ports: &[&str], flows: &[Known<'_>]) -> Option<Request> {
    let object = root.object(&["choice", "port", "flow"])?;
    if object.choice(&["port", "flow"], Some("port"))? == "port" {
        let details = object.inner("port", &["port_names", "column_names"])?;
        let columns = columns(details.get("column_names"), &PORT_COLUMNS)?;
        return Some(Request::Ports {
            ports: indices(details.get("port_names"), ports, "port")?,
            columns,
        });
    }
    let details = object.inner("flow", &["flow_names", "metric_names", "tagged_metrics"])?;
    let columns = columns(details.get("metric_names"), &FLOW_COLUMNS)?;
    let names: Vec<&str> = flows.iter().map(|flow| flow.name).collect();
    let list = details.get("flow_names");
    let named = list.as_ref().is_some_and(|node| !node.is_empty());
    let mut indices = indices(list.clone(), &names, "flow")?;
    let has_metrics = |index: &usize| flows.get(*index).is_some_and(|flow| flow.metrics);
    match indices.iter().find(|index| !has_metrics(index)) {
        Some(index) if named => {
            let name = names.get(*index).copied().unwrap_or_default();
            return list?
                .fault(format!("flow {name:?} has no metrics; set its metrics.enable to true"));
        }
        _ => indices.retain(has_metrics),
    }
    let tagged = match details.get("tagged_metrics") {
        Some(node) => {
            let own = indices.iter().filter_map(|index| flows.get(*index)?.tags);
            // Many flows have the same tags.
            let known: BTreeSet<&str> = own.flat_map(Tags::names).collect();
            tagged::read(&node, &known.into_iter().collect::<Vec<_>>())?
        }
        None => Tagged::default(),
    };
    Some(Request::Flows { flows: indices, columns, tagged })
}

fn columns(list: Option<Node<'_>>, known: &[&str]) -> Option<Vec<String>> {
    let list = list.map_or(Some(Vec::new()), |node| node.list_of(MAX_NAMES))?;
    let words: Vec<_> = list.iter().map(|node| node.word(known).map(str::to_owned)).collect();
    let mut columns: Vec<String> = words.into_iter().collect::<Option<_>>()?;
    // Each is looked for once for every row.
    columns.sort_unstable();
    columns.dedup();
    Some(columns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const FLOWS: [Known<'_>; 2] = [
        Known { name: "f", metrics: true, tags: None },
        Known { name: "g", metrics: false, tags: None },
    ];

    #[test]
    fn requests_name_ports_flows_and_columns() {
        let ask = |value: Value| {
            validate(&value, &["p", "q"], &FLOWS).map_err(|error| error.errors.join("; "))
        };
        assert_eq!(ask(json!({})), Ok(Request::Ports { ports: vec![0, 1], columns: vec![] }));
        assert_eq!(
            ask(
                json!({"choice": "port", "port": {"port_names": ["q"], "column_names": ["frames_tx"]}})
            ),
            Ok(Request::Ports { ports: vec![1], columns: vec!["frames_tx".to_owned()] })
        );
        let default = json!({"choice": "flow", "flow": {"flow_names": [], "tagged_metrics": {"include": true, "include_empty_metrics": false}}});
        assert_eq!(
            ask(default),
            Ok(Request::Flows { flows: vec![0], columns: vec![], tagged: Tagged::default() })
        );
        for (value, wanted) in [
            (
                json!({"choice": "flow", "flow": {"flow_names": ["g"]}}),
                "flow.flow_names: flow \"g\" has no metrics",
            ),
            (
                json!({"choice": "port", "port": {"port_names": ["x"]}}),
                "port.port_names[0]: there is no port named \"x\"",
            ),
            (
                json!({"choice": "port", "port": {"column_names": ["x"]}}),
                "port.column_names[0]: \"x\" is not supported",
            ),
            (json!({"choice": "bgpv4", "bgpv4": {}}), "bgpv4: not supported"),
        ] {
            let error = ask(value).unwrap_err();
            assert!(error.contains(wanted), "{error}");
        }
    }
}
