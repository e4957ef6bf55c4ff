// SPDX-License-Identifier: BSD-3-Clause
//! OTG's `Flow`: where it goes, how large, how fast and for how long.

use packet::template::{MAX_LEN_WITH_FCS, MIN_LEN_WITH_FCS};

use super::packet as headers;
use super::walk::{Node, Object};
use crate::pacing::{FrameRate, MAX_FRAMES_PER_SECOND};
use crate::plan::{Duration, FlowPlan, Rate};

/// The fields of a flow that are looked at.
pub const FIELDS: &[&str] =
    &["name", "tx_rx", "packet", "egress_packet", "size", "rate", "duration", "metrics", "payload"];

/// OTG's default gap between frames in bytes; another cannot be had.
const DEFAULT_GAP: u64 = 12;
/// Longest duration in seconds: a year.
const MAX_SECONDS: f64 = 366.0 * 86_400.0;

/// Reads a flow whose name is known.
pub fn read(flow: &Object<'_>, ports: &[&str], name: String) -> Option<FlowPlan> {
    let ends = flow.required("tx_rx").and_then(|node| tx_rx(&node, ports));
    let len = match flow.get("size") {
        Some(node) => size(&node),
        None => Some(MIN_LEN_WITH_FCS),
    };
    // With the least size where the size is wrong, so that other faults show too.
    let frame = match flow.required("packet") {
        Some(node) => headers::read(&node, len.unwrap_or(MIN_LEN_WITH_FCS)),
        None => None,
    };
    let rate = match flow.get("rate") {
        Some(node) => rate(&node, len.unwrap_or(MIN_LEN_WITH_FCS)),
        None => FrameRate::new(1000, 1).map(Rate::Frames),
    };
    let duration = match flow.get("duration") {
        Some(node) => duration(&node),
        None => Some(Duration::Continuous),
    };
    let (metrics, loss) =
        flow.get("metrics").map_or(Some((false, false)), |node| metrics(&node))?;
    flow.refuse(&["egress_packet"]);
    if let Some(node) = flow.get("payload") {
        payload(&node);
    }
    let (tx, rx) = ends?;
    len?;
    Some(FlowPlan { name, tx, rx, frame: frame?, rate: rate?, duration: duration?, metrics, loss })
}

fn tx_rx(node: &Node<'_>, ports: &[&str]) -> Option<(usize, Vec<usize>)> {
    let object = node.object(&["choice", "port"])?;
    object.choice(&["port"], Some("port"))?;
    let port = object.required("port")?.object(&["tx_name", "rx_name", "rx_names"])?;
    let tx = port.required("tx_name").and_then(|node| port_index(&node, ports));
    let mut rx: Vec<Node<'_>> =
        port.get("rx_names").map_or(Some(Vec::new()), |node| node.list())?;
    if let Some(one) = port.get("rx_name") {
        if !rx.is_empty() {
            return one.fault("given beside rx_names; give one of them");
        }
        rx.push(one);
    }
    let rx: Vec<Option<usize>> = rx.iter().map(|node| port_index(node, ports)).collect();
    Some((tx?, rx.into_iter().collect::<Option<_>>()?))
}

fn port_index(node: &Node<'_>, ports: &[&str]) -> Option<usize> {
    let name = node.text()?;
    match ports.iter().position(|port| *port == name) {
        Some(index) => Some(index),
        None => {
            let shown: String = name.chars().take(60).collect();
            node.fault(format!("there is no port named {shown:?}"))
        }
    }
}

fn size(node: &Node<'_>) -> Option<usize> {
    let object = node.object(&["choice", "fixed"])?;
    object.choice(&["fixed"], Some("fixed"))?;
    match object.get("fixed") {
        Some(node) => {
            node.integer(MIN_LEN_WITH_FCS as u64, MAX_LEN_WITH_FCS as u64).map(|len| len as usize)
        }
        None => Some(MIN_LEN_WITH_FCS),
    }
}

fn rate(node: &Node<'_>, len_with_fcs: usize) -> Option<Rate> {
    const KINDS: [(&str, u64, u64); 4] = [
        ("bps", 1, 1_000_000_000),
        ("kbps", 1_000, 1_000_000),
        ("mbps", 1_000_000, 1_000),
        ("gbps", 1_000_000_000, 1),
    ];
    let object = node.object(&["choice", "pps", "bps", "kbps", "mbps", "gbps", "percentage"])?;
    let chosen =
        object.choice(&["pps", "bps", "kbps", "mbps", "gbps", "percentage"], Some("pps"))?;
    let value = object.get(chosen);
    if chosen == "percentage" {
        let percent = value.as_ref().map_or(Some(100.0), |node| node.number(0.0, 100.0))?;
        return match percent > 0.0 {
            true => Some(Rate::Percent(percent)),
            false => value?.fault("must be above 0"),
        };
    }
    // Bits count on layer 1: OTG's least rate, 672 bit/s, is one 64-byte frame with its 20 bytes.
    let frame_bits = ((len_with_fcs + packet::L1_OVERHEAD) * 8) as u64;
    let (unit, default, bits) = match KINDS.iter().find(|(kind, ..)| *kind == chosen) {
        Some((_, unit, default)) => (*unit, *default, frame_bits),
        None => (1, 1000, 1),
    };
    // The highest rate in the unit that was chosen, at which frames are still told apart.
    let max = MAX_FRAMES_PER_SECOND * bits / unit;
    let amount = value.as_ref().map_or(Some(default), |node| node.integer(1, max))?;
    FrameRate::new(amount.checked_mul(unit)?, bits).map(Rate::Frames)
}

fn duration(node: &Node<'_>) -> Option<Duration> {
    let object = node.object(&["choice", "continuous", "fixed_packets", "fixed_seconds"])?;
    let chosen =
        object.choice(&["continuous", "fixed_packets", "fixed_seconds"], Some("continuous"))?;
    let fields: &[&str] = match chosen {
        "fixed_packets" => &["packets", "gap", "delay"],
        "fixed_seconds" => &["seconds", "gap", "delay"],
        _ => &["gap", "delay"],
    };
    let details = match object.get(chosen) {
        Some(node) => Some(node.object(fields)?),
        None => None,
    };
    if let Some(details) = &details {
        no_gap(details)?;
    }
    let field = |key| details.as_ref().and_then(|details| details.get(key));
    match chosen {
        "fixed_packets" => field("packets")
            .map_or(Some(1), |node| node.integer(1, u64::from(u32::MAX)))
            .map(Duration::Packets),
        "fixed_seconds" => match field("seconds") {
            // Below a nanosecond there is nothing to send in.
            Some(node) => node
                .number(1e-9, MAX_SECONDS)
                .map(|seconds| Duration::Nanoseconds((seconds * 1e9).round() as u64)),
            None => Some(Duration::Nanoseconds(1_000_000_000)),
        },
        _ => Some(Duration::Continuous),
    }
}

fn no_gap(details: &Object<'_>) -> Option<()> {
    if let Some(gap) = details.get("gap") {
        if gap.integer(0, u64::from(u32::MAX))? != DEFAULT_GAP {
            return gap.fault(format!(
                "not supported; the rate sets the gap (leave it out or at {DEFAULT_GAP})"
            ));
        }
    }
    let Some(delay) = details.get("delay") else { return Some(()) };
    let kinds = ["bytes", "nanoseconds", "microseconds"];
    let delay = delay.object(&["choice", "bytes", "nanoseconds", "microseconds"])?;
    let chosen = delay.choice(&kinds, Some("bytes"))?;
    match delay.get(chosen) {
        Some(node) if node.number(0.0, f64::MAX)? > 0.0 => {
            node.fault("not supported; leave it out or at 0")
        }
        _ => Some(()),
    }
}

fn metrics(node: &Node<'_>) -> Option<(bool, bool)> {
    let object = node.object(&[
        "enable",
        "loss",
        "timestamps",
        "latency",
        "rx_tx_ratio",
        "predefined_metric_tags",
    ])?;
    object.refuse_true(&["timestamps"]);
    object.refuse(&["rx_tx_ratio", "predefined_metric_tags"]);
    if let Some(latency) = object.get("latency").and_then(|node| node.object(&["enable", "mode"])) {
        latency.refuse_true(&["enable"]);
    }
    let flag = |key| object.get(key).map_or(Some(false), |node| node.boolean());
    Some((flag("enable")?, flag("loss")?))
}

fn payload(node: &Node<'_>) -> Option<()> {
    let fixed = node.object(&["choice", "fixed"])?;
    fixed.choice(&["fixed"], Some("fixed"))?;
    let fixed = fixed.get("fixed")?.object(&["pattern", "repeat"])?;
    if let Some(repeat) = fixed.get("repeat") {
        repeat.boolean()?;
    }
    match fixed.get("pattern") {
        Some(pattern) if !pattern.text()?.bytes().all(|b| b == b'0') => {
            pattern.fault("not supported; the payload is zeros and a signature")
        }
        _ => Some(()),
    }
}
