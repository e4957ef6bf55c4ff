// SPDX-License-Identifier: BSD-3-Clause
//! OTG's `MetricsRequest` and the answers to it.

use serde_json::{Map, Value, json};

use super::ApiError;
use super::state::indices;
use super::walk::{Faults, Node, Object};

const PORT_COLUMNS: [&str; 13] = [
    "bytes_rx",
    "bytes_rx_rate",
    "bytes_tx",
    "bytes_tx_rate",
    "capture",
    "frames_rx",
    "frames_rx_rate",
    "frames_tx",
    "frames_tx_rate",
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
    },
}

/// Reads a request; `ports` and `flows` are the configured names, with whether a flow has metrics.
///
/// # Errors
/// A 400 that names every field which is wrong or not supported.
pub fn validate(
    request: &Value,
    ports: &[&str],
    flows: &[(&str, bool)],
) -> Result<Request, ApiError> {
    let faults = Faults::default();
    let request = read(&Node::root(request, &faults), ports, flows);
    faults.finish(request)
}

fn read(root: &Node<'_>, ports: &[&str], flows: &[(&str, bool)]) -> Option<Request> {
    let object = root.object(&["choice", "port", "flow"])?;
    if object.choice(&["port", "flow"], Some("port"))? == "port" {
        let details = details(&object, "port", &["port_names", "column_names"])?;
        let columns = columns(details.get("column_names"), &PORT_COLUMNS)?;
        return Some(Request::Ports {
            ports: indices(details.get("port_names"), ports, "port")?,
            columns,
        });
    }
    let details = details(&object, "flow", &["flow_names", "metric_names", "tagged_metrics"])?;
    if let Some(tagged) = details.get("tagged_metrics") {
        // What snappi writes by default asks for tags that no flow can have here.
        let tagged =
            tagged.object(&["include", "include_empty_metrics", "metric_names", "filters"])?;
        tagged.refuse(&["metric_names", "filters"]);
        tagged.refuse_true(&["include_empty_metrics"]);
    }
    let columns = columns(details.get("metric_names"), &FLOW_COLUMNS)?;
    let names: Vec<&str> = flows.iter().map(|(name, _)| *name).collect();
    let list = details.get("flow_names");
    let named = list.as_ref().and_then(|node| node.list()).is_some_and(|list| !list.is_empty());
    let mut indices = indices(list.clone(), &names, "flow")?;
    let has_metrics = |index: &usize| flows.get(*index).is_some_and(|(_, metrics)| *metrics);
    match indices.iter().find(|index| !has_metrics(index)) {
        Some(index) if named => {
            let name = names.get(*index).copied().unwrap_or_default();
            return list?
                .fault(format!("flow {name:?} has no metrics; set its metrics.enable to true"));
        }
        _ => indices.retain(has_metrics),
    }
    Some(Request::Flows { flows: indices, columns })
}

fn details<'a>(object: &Object<'a>, key: &str, fields: &[&str]) -> Option<Object<'a>> {
    match object.get(key) {
        Some(node) => node.object(fields),
        None => object.empty(key),
    }
}

fn columns(list: Option<Node<'_>>, known: &[&str]) -> Option<Vec<String>> {
    let list = list.map_or(Some(Vec::new()), |node| node.list())?;
    list.iter()
        .map(|node| node.word(known).map(str::to_owned))
        .collect::<Vec<_>>()
        .into_iter()
        .collect()
}

/// What was counted in one direction, and how fast it counts now.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Traffic {
    /// Frames so far.
    pub frames: u64,
    /// Their bytes with FCS.
    pub bytes: u64,
    /// Frames per second.
    pub frame_rate: f64,
    /// Bytes per second, with FCS.
    pub byte_rate: f64,
}

/// A port's figures.
#[derive(Clone, Debug, PartialEq)]
pub struct PortFigures {
    /// OTG name.
    pub name: String,
    /// Location, as configured.
    pub location: String,
    /// Whether the link is up.
    pub link: bool,
    /// Line rate in Mbit/s, if it has one.
    pub speed: Option<u64>,
    /// Whether a flow transmits.
    pub transmitting: bool,
    /// Sent.
    pub tx: Traffic,
    /// Received, whosever the frames are.
    pub rx: Traffic,
}

/// A flow's figures.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowFigures {
    /// OTG name.
    pub name: String,
    /// Name of the sending port.
    pub port_tx: String,
    /// Name of the receiving port, if it is one.
    pub port_rx: Option<String>,
    /// Whether it transmits.
    pub transmitting: bool,
    /// Sent.
    pub tx: Traffic,
    /// Received.
    pub rx: Traffic,
    /// Whether the loss is wanted.
    pub loss: bool,
}

fn state(transmitting: bool) -> &'static str {
    if transmitting { "started" } else { "stopped" }
}

fn choose(name: &str, all: Vec<(&str, Value)>, columns: &[String]) -> Value {
    let mut metric = Map::new();
    metric.insert("name".to_owned(), json!(name));
    for (key, value) in all {
        if columns.is_empty() || columns.iter().any(|column| column == key) {
            metric.insert(key.to_owned(), value);
        }
    }
    Value::Object(metric)
}

/// The answer about ports.
pub fn port_metrics(ports: &[PortFigures], columns: &[String]) -> Value {
    let metric = |port: &PortFigures| {
        let mut all = vec![
            ("location", json!(port.location)),
            ("link", json!(if port.link { "up" } else { "down" })),
            ("capture", json!("stopped")),
            ("transmit", json!(state(port.transmitting))),
            ("frames_tx", json!(port.tx.frames.to_string())),
            ("frames_rx", json!(port.rx.frames.to_string())),
            ("bytes_tx", json!(port.tx.bytes.to_string())),
            ("bytes_rx", json!(port.rx.bytes.to_string())),
            ("frames_tx_rate", json!(port.tx.frame_rate)),
            ("frames_rx_rate", json!(port.rx.frame_rate)),
            ("bytes_tx_rate", json!(port.tx.byte_rate)),
            ("bytes_rx_rate", json!(port.rx.byte_rate)),
        ];
        all.extend(port.speed.map(|speed| ("speed", json!(speed.to_string()))));
        choose(&port.name, all, columns)
    };
    json!({ "choice": "port_metrics", "port_metrics": ports.iter().map(metric).collect::<Vec<_>>() })
}

/// The answer about flows.
pub fn flow_metrics(flows: &[FlowFigures], columns: &[String]) -> Value {
    let metric = |flow: &FlowFigures| {
        let l1 =
            |way: &Traffic| (way.byte_rate + way.frame_rate * packet::L1_OVERHEAD as f64) * 8.0;
        let mut all = vec![("transmit", json!(state(flow.transmitting)))];
        for (way, [frames, bytes, rate, l1_bps, in_bytes, in_bps, in_kbps, in_mbps]) in [
            (
                &flow.tx,
                [
                    "frames_tx",
                    "bytes_tx",
                    "frames_tx_rate",
                    "tx_l1_rate_bps",
                    "tx_rate_bytes",
                    "tx_rate_bps",
                    "tx_rate_kbps",
                    "tx_rate_mbps",
                ],
            ),
            (
                &flow.rx,
                [
                    "frames_rx",
                    "bytes_rx",
                    "frames_rx_rate",
                    "rx_l1_rate_bps",
                    "rx_rate_bytes",
                    "rx_rate_bps",
                    "rx_rate_kbps",
                    "rx_rate_mbps",
                ],
            ),
        ] {
            all.extend([
                (frames, json!(way.frames.to_string())),
                (bytes, json!(way.bytes.to_string())),
                (rate, json!(way.frame_rate)),
                (l1_bps, json!(l1(way))),
                (in_bytes, json!(way.byte_rate)),
                (in_bps, json!(way.byte_rate * 8.0)),
                (in_kbps, json!(way.byte_rate * 8.0 / 1e3)),
                (in_mbps, json!(way.byte_rate * 8.0 / 1e6)),
            ]);
        }
        let mut value = choose(&flow.name, all, columns);
        if let Value::Object(metric) = &mut value {
            metric.insert("port_tx".to_owned(), json!(flow.port_tx));
            if let Some(port) = &flow.port_rx {
                metric.insert("port_rx".to_owned(), json!(port));
            }
            // A share of nothing is no figure.
            if flow.loss && flow.tx.frames > 0 {
                let lost = flow.tx.frames.saturating_sub(flow.rx.frames) as f64;
                metric.insert("loss".to_owned(), json!(lost * 100.0 / flow.tx.frames as f64));
            }
        }
        value
    };
    json!({ "choice": "flow_metrics", "flow_metrics": flows.iter().map(metric).collect::<Vec<_>>() })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOWS: [(&str, bool); 2] = [("f", true), ("g", false)];

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
        assert_eq!(ask(default), Ok(Request::Flows { flows: vec![0], columns: vec![] }));
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

    #[test]
    fn counters_are_strings_and_rates_are_numbers() {
        let way = Traffic { frames: u64::MAX, bytes: 64, frame_rate: 1.0, byte_rate: 64.0 };
        let flow = FlowFigures {
            name: "f".into(),
            port_tx: "p".into(),
            port_rx: None,
            transmitting: true,
            tx: way,
            rx: Traffic::default(),
            loss: true,
        };
        let answer = flow_metrics(std::slice::from_ref(&flow), &[]);
        let metric = &answer["flow_metrics"][0];
        assert_eq!(metric["frames_tx"], "18446744073709551615");
        assert_eq!(metric["tx_l1_rate_bps"], 672.0);
        assert_eq!((&metric["loss"], &metric["transmit"]), (&json!(100.0), &json!("started")));
        let idle = FlowFigures { tx: Traffic::default(), ..flow };
        let answer = flow_metrics(&[idle], &["frames_tx".to_owned()]);
        assert_eq!(
            answer["flow_metrics"][0],
            json!({"name": "f", "port_tx": "p", "frames_tx": "0"})
        );
    }
}
