// SPDX-License-Identifier: BSD-3-Clause
//! Figures, and the answers that are made of them.

use std::fmt::Write;

use serde_json::{Map, Value, json};

use super::tagged::{Tagged, TaggedFigures};
use crate::books::State;

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
    /// When that was first seen, in nanoseconds since the epoch.
    pub last_change: u64,
    /// Line rate in Mbit/s, if it has one.
    pub speed: Option<u64>,
    /// Whether a flow transmits.
    pub transmitting: bool,
    /// Whether a capture runs.
    pub capturing: bool,
    /// Sent.
    pub tx: Traffic,
    /// Received, whosever the frames are.
    pub rx: Traffic,
    /// Frames whose payload was looked through, and those of them whose payload was changed; where
    /// the configuration wants it.
    pub integrity: Option<(u64, u64)>,
}

/// One-way latency in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Latency {
    /// Least.
    pub minimum_ns: f64,
    /// Most.
    pub maximum_ns: f64,
    /// Mean.
    pub average_ns: f64,
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
    /// What it does.
    pub state: State,
    /// Sent.
    pub tx: Traffic,
    /// Received, duplicates too.
    pub rx: Traffic,
    /// Frames among those received that had come before.
    pub duplicates: u64,
    /// Whether the loss is wanted.
    pub loss: bool,
    /// How many frames are to come back for each one sent.
    pub rx_tx_ratio: f64,
    /// Frames per second by which the loss becomes a duration, where that is wanted.
    pub loss_pace: Option<f64>,
    /// When the first and the last frame were received, in nanoseconds, where that is wanted.
    pub timestamps_ns: Option<(f64, f64)>,
    /// Its latency, where that is wanted and known.
    pub latency: Option<Latency>,
    /// By metric tags, where it has such.
    pub tagged: Option<Vec<TaggedFigures>>,
}

impl FlowFigures {
    /// Frames that should have come back.
    fn expected(&self) -> f64 {
        self.tx.frames as f64 * self.rx_tx_ratio
    }

    /// Frames that should have come back and have not. A frame that comes again is no other frame;
    /// where several are to come for each one sent, copies are what is wanted.
    fn missing(&self) -> f64 {
        let again = if self.rx_tx_ratio > 1.0 { 0 } else { self.duplicates };
        let came = self.rx.frames.saturating_sub(again);
        (self.expected() - came as f64).max(0.0)
    }

    /// The share that is missing, in per cent. A share of nothing is no figure.
    fn loss_percent(&self) -> Option<f64> {
        (self.loss && self.expected() > 0.0).then(|| self.missing() * 100.0 / self.expected())
    }

    /// For how long frames went missing at the flow's pace, in milliseconds as the model says.
    fn loss_milliseconds(&self) -> Option<f64> {
        let pace = self.loss_pace? * self.rx_tx_ratio;
        (pace > 0.0).then(|| self.missing() * 1e3 / pace)
    }
}

fn started(yes: bool) -> &'static str {
    if yes { "started" } else { "stopped" }
}

fn choose(name: &str, all: Vec<(&str, Value)>, columns: &[String]) -> Map<String, Value> {
    let mut metric = Map::new();
    metric.insert("name".to_owned(), json!(name));
    for (key, value) in all {
        if columns.is_empty() || columns.iter().any(|column| column == key) {
            metric.insert(key.to_owned(), value);
        }
    }
    metric
}

/// The answer about ports.
pub fn port_metrics(ports: &[PortFigures], columns: &[String]) -> Value {
    let metric = |port: &PortFigures| {
        let mut all = vec![
            ("location", json!(port.location)),
            ("link", json!(if port.link { "up" } else { "down" })),
            ("last_change", json!(port.last_change.to_string())),
            ("capture", json!(started(port.capturing))),
            ("transmit", json!(started(port.transmitting))),
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
        let mut metric = choose(&port.name, all, columns);
        if let Some((total, errors)) = port.integrity {
            let integrity = json!({
                "total_frames_rx": total.to_string(),
                "error_frames_rx": errors.to_string(),
            });
            metric.insert("data_integrity".to_owned(), integrity);
        }
        Value::Object(metric)
    };
    json!({ "choice": "port_metrics", "port_metrics": ports.iter().map(metric).collect::<Vec<_>>() })
}

/// Names of the columns of what is sent.
pub(super) const TX: [&str; 8] = [
    "frames_tx",
    "bytes_tx",
    "frames_tx_rate",
    "tx_l1_rate_bps",
    "tx_rate_bytes",
    "tx_rate_bps",
    "tx_rate_kbps",
    "tx_rate_mbps",
];
/// The same of what is received.
pub(super) const RX: [&str; 8] = [
    "frames_rx",
    "bytes_rx",
    "frames_rx_rate",
    "rx_l1_rate_bps",
    "rx_rate_bytes",
    "rx_rate_bps",
    "rx_rate_kbps",
    "rx_rate_mbps",
];

/// The columns of one direction of a flow, or of one of its rows.
pub(super) fn columns_of(way: &Traffic, names: [&'static str; 8]) -> [(&'static str, Value); 8] {
    let [frames, bytes, rate, l1_bps, in_bytes, in_bps, in_kbps, in_mbps] = names;
    let l1 = (way.byte_rate + way.frame_rate * packet::L1_OVERHEAD as f64) * 8.0;
    [
        (frames, json!(way.frames.to_string())),
        (bytes, json!(way.bytes.to_string())),
        (rate, json!(way.frame_rate)),
        (l1_bps, json!(l1)),
        (in_bytes, json!(way.byte_rate)),
        (in_bps, json!(way.byte_rate * 8.0)),
        (in_kbps, json!(way.byte_rate * 8.0 / 1e3)),
        (in_mbps, json!(way.byte_rate * 8.0 / 1e6)),
    ]
}

/// The times of the first and the last frame received.
pub(super) fn stamps((first, last): (f64, f64)) -> Value {
    json!({ "first_timestamp_ns": first, "last_timestamp_ns": last })
}

/// The answer about flows.
pub fn flow_metrics(flows: &[FlowFigures], columns: &[String], tagged: &Tagged) -> Value {
    let metric = |flow| flow_metric(flow, columns, tagged);
    json!({ "choice": "flow_metrics", "flow_metrics": flows.iter().map(metric).collect::<Vec<_>>() })
}

/// The same as text, without all of it in memory as JSON.
pub(super) fn flow_text(flows: &[FlowFigures], columns: &[String], tagged: &Tagged) -> String {
    let mut text = r#"{"choice":"flow_metrics","flow_metrics":["#.to_owned();
    for (at, flow) in flows.iter().enumerate() {
        let comma = if at > 0 { "," } else { "" };
        // Writing to a string does not fail.
        let _ = write!(text, "{comma}{}", flow_metric(flow, columns, tagged));
    }
    text + "]}"
}

fn flow_metric(flow: &FlowFigures, columns: &[String], tagged: &Tagged) -> Value {
    let state = match flow.state {
        State::Started => "started",
        State::Paused => "paused",
        State::Stopped => "stopped",
    };
    let mut all = vec![("transmit", json!(state))];
    all.extend(columns_of(&flow.tx, TX));
    all.extend(columns_of(&flow.rx, RX));
    let mut metric = choose(&flow.name, all, columns);
    let mut add = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            metric.insert(key.to_owned(), value);
        }
    };
    add("port_tx", Some(json!(flow.port_tx)));
    add("port_rx", flow.port_rx.as_ref().map(|port| json!(port)));
    add("loss", flow.loss_percent().map(|percent| json!(percent)));
    add("packet_loss_duration", flow.loss_milliseconds().map(|ms| json!({ "value": ms })));
    add("timestamps", flow.timestamps_ns.map(stamps));
    let latency = |latency: Latency| {
        json!({
            "minimum_ns": latency.minimum_ns,
            "maximum_ns": latency.maximum_ns,
            "average_ns": latency.average_ns,
        })
    };
    add("latency", flow.latency.map(latency));
    let rows = flow.tagged.as_ref().filter(|_| tagged.include);
    add("tagged_metrics", rows.map(|rows| tagged.rows(rows)));
    Value::Object(metric)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow() -> FlowFigures {
        FlowFigures {
            name: "f".into(),
            port_tx: "p".into(),
            port_rx: None,
            state: State::Started,
            tx: Traffic { frames: 200, bytes: 12_800, frame_rate: 1.0, byte_rate: 64.0 },
            rx: Traffic { frames: 170, ..Traffic::default() },
            duplicates: 20,
            loss: true,
            rx_tx_ratio: 1.0,
            loss_pace: None,
            timestamps_ns: None,
            latency: None,
            tagged: None,
        }
    }

    fn metric(flow: FlowFigures) -> Value {
        flow_metrics(&[flow], &[], &Tagged::default())["flow_metrics"][0].clone()
    }

    #[test]
    fn counters_are_strings_and_rates_are_numbers() {
        let tx = Traffic { frames: u64::MAX, ..flow().tx };
        let answer = metric(FlowFigures { tx, ..flow() });
        assert_eq!(answer["frames_tx"], "18446744073709551615");
        assert_eq!(
            (&answer["tx_l1_rate_bps"], &answer["tx_rate_bps"]),
            (&json!(672.0), &json!(512.0))
        );
        assert_eq!(answer["transmit"], "started");
        assert_eq!(metric(FlowFigures { state: State::Paused, ..flow() })["transmit"], "paused");
        let idle = FlowFigures { tx: Traffic::default(), ..flow() };
        let answer = flow_metrics(&[idle], &["frames_tx".to_owned()], &Tagged::default());
        let wanted = json!({"name": "f", "port_tx": "p", "frames_tx": "0"});
        assert_eq!(answer["flow_metrics"][0], wanted);
    }

    #[test]
    fn text_is_the_same_answer() {
        let other = FlowFigures { name: "g \"".into(), ..flow() };
        for flows in [vec![], vec![flow()], vec![flow(), other]] {
            let (columns, tagged) = (["loss".to_owned()], Tagged::default());
            let text = flow_text(&flows, &columns, &tagged);
            let read: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(read, flow_metrics(&flows, &columns, &tagged));
        }
    }

    #[test]
    fn loss_is_of_what_should_have_come() {
        // 200 were sent and 150 came back, 20 of them twice.
        assert_eq!(metric(flow())["loss"], 25.0);
        assert_eq!(metric(FlowFigures { loss: false, ..flow() }).get("loss"), None);
        assert_eq!(metric(FlowFigures { rx_tx_ratio: 0.75, ..flow() })["loss"], 0.0);
        assert_eq!(metric(FlowFigures { rx_tx_ratio: 0.5, ..flow() })["loss"], 0.0, "not negative");
        // Two are to come for each: of 400, 170 came, whether one calls them duplicates or not.
        assert_eq!(metric(FlowFigures { rx_tx_ratio: 2.0, ..flow() })["loss"], 57.5);
        // At 1000 a second, 50 frames take 50 ms.
        let paced = metric(FlowFigures { loss_pace: Some(1000.0), ..flow() });
        assert_eq!(paced["packet_loss_duration"], json!({"value": 50.0}));
        assert_eq!(metric(flow()).get("packet_loss_duration"), None);
    }

    #[test]
    fn what_was_asked_for_is_told() {
        let latency = Latency { minimum_ns: 1.5, maximum_ns: 9.0, average_ns: 4.0 };
        let answer = metric(FlowFigures {
            latency: Some(latency),
            timestamps_ns: Some((1.0, 2.0)),
            port_rx: Some("q".into()),
            ..flow()
        });
        let wanted = json!({"minimum_ns": 1.5, "maximum_ns": 9.0, "average_ns": 4.0});
        assert_eq!(answer["latency"], wanted);
        let wanted = json!({"first_timestamp_ns": 1.0, "last_timestamp_ns": 2.0});
        assert_eq!((&answer["timestamps"], &answer["port_rx"]), (&wanted, &json!("q")));
        assert!(metric(flow()).get("latency").is_none());
    }

    #[test]
    fn ports_tell_of_captures_and_integrity() {
        let port = PortFigures {
            name: "p".into(),
            location: "lo".into(),
            link: true,
            last_change: 1_700_000_000_000_000_000,
            speed: Some(25_000),
            transmitting: false,
            capturing: true,
            tx: Traffic::default(),
            rx: Traffic { frames: 7, ..Traffic::default() },
            integrity: Some((7, 2)),
        };
        let answer = &port_metrics(std::slice::from_ref(&port), &[])["port_metrics"][0];
        let integrity = json!({"total_frames_rx": "7", "error_frames_rx": "2"});
        assert_eq!(
            (&answer["capture"], &answer["data_integrity"]),
            (&json!("started"), &integrity)
        );
        assert_eq!((&answer["speed"], &answer["frames_rx"]), (&json!("25000"), &json!("7")));
        assert_eq!(answer["last_change"], "1700000000000000000");
        let plain = PortFigures { integrity: None, speed: None, capturing: false, ..port };
        let answer = port_metrics(&[plain], &["capture".to_owned(), "speed".to_owned()]);
        assert_eq!(answer["port_metrics"][0], json!({"name": "p", "capture": "stopped"}));
    }
}
