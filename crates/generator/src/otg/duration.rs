// SPDX-License-Identifier: BSD-3-Clause
//! OTG's durations: how long a flow lasts, and when it begins.

use super::walk::{Node, Object};
use crate::plan::{Duration, Wait};

/// OTG's default gap between frames in bytes: Ethernet's own. The flow's rate sets another.
const DEFAULT_GAP: u64 = 12;
/// Longest time in seconds: a year.
const MAX_SECONDS: f64 = 366.0 * 86_400.0;
/// Most bytes that may be waited for.
const MAX_BYTES: f64 = 1e15;
/// The model's greatest number of frames or bursts.
const MAX_COUNT: u64 = u32::MAX as u64;

/// How long a flow lasts, and how long after the start it begins.
pub fn read(node: &Node<'_>) -> Option<(Duration, Wait)> {
    let kinds = ["continuous", "fixed_packets", "fixed_seconds", "burst"];
    let object = node.object(&[&["choice"][..], &kinds].concat())?;
    let chosen = object.choice(&kinds, Some("continuous"))?;
    let fields: &[&str] = match chosen {
        "fixed_packets" => &["packets", "gap", "delay"],
        "fixed_seconds" => &["seconds", "gap", "delay"],
        "burst" => &["bursts", "packets", "gap", "inter_burst_gap"],
        _ => &["gap", "delay"],
    };
    let details = object.inner(chosen, fields)?;
    let gap = details.get("gap").map_or(Some(()), |node| default_gap(&node));
    let delay = details.get("delay").map_or(Some(Wait::NONE), |node| wait(&node, 0.0));
    let packets = || details.get("packets").map_or(Some(1), |node| node.integer(1, MAX_COUNT));
    let duration = match chosen {
        "fixed_packets" => packets().map(Duration::Packets),
        "fixed_seconds" => seconds(&details),
        "burst" => bursts(&details, packets()),
        _ => Some(Duration::Continuous),
    };
    gap?;
    Some((duration?, delay?))
}

fn default_gap(node: &Node<'_>) -> Option<()> {
    match node.integer(0, MAX_COUNT)? {
        DEFAULT_GAP => Some(()),
        _ => node.fault(format!(
            "not supported; the rate sets the gap (leave it out or at {DEFAULT_GAP})"
        )),
    }
}

fn seconds(details: &Object<'_>) -> Option<Duration> {
    // Below a nanosecond there is nothing to send in.
    let seconds =
        details.get("seconds").map_or(Some(1.0), |node| node.number(1e-9, MAX_SECONDS))?;
    Some(Duration::Nanoseconds((seconds * 1e9).round() as u64))
}

fn bursts(details: &Object<'_>, packets: Option<u64>) -> Option<Duration> {
    let bursts = details.get("bursts").map_or(Some(0), |node| node.integer(0, MAX_COUNT));
    // The gap that every frame has on the wire is part of the flow's interval already.
    let own = DEFAULT_GAP as f64;
    let gap = details.get("inter_burst_gap").map_or(Some(Wait::NONE), |node| wait(&node, own));
    Some(Duration::Bursts { bursts: bursts?, packets: packets?, gap: gap? })
}

/// A wait, less the bytes that are waited for anyway; these are its default.
fn wait(node: &Node<'_>, anyway: f64) -> Option<Wait> {
    let kinds = ["bytes", "nanoseconds", "microseconds"];
    let object = node.object(&[&["choice"][..], &kinds].concat())?;
    let chosen = object.choice(&kinds, Some("bytes"))?;
    let (max, in_nanoseconds) = match chosen {
        "bytes" => (MAX_BYTES, None),
        "nanoseconds" => (MAX_SECONDS * 1e9, Some(1.0)),
        _ => (MAX_SECONDS * 1e6, Some(1e3)),
    };
    // Twelve bytes take 96 ns at 1 Gbit/s: the model's defaults of an inter-burst gap.
    let default = match in_nanoseconds {
        None => anyway,
        Some(unit) => anyway * 8.0 / unit,
    };
    let value = object.get(chosen).map_or(Some(default), |node| node.number(0.0, max))?;
    Some(match in_nanoseconds {
        Some(unit) => Wait::Nanoseconds(value * unit),
        None => Wait::Bytes((value - anyway).max(0.0)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::otg::walk::Faults;
    use serde_json::{Value, json};

    fn duration(json: Value) -> Result<(Duration, Wait), String> {
        let faults = Faults::default();
        let duration = read(&Node::root(&json, &faults));
        faults.finish(duration).map_err(|error| error.errors.join("; "))
    }

    #[test]
    fn every_kind_is_read() {
        let bursts = |bursts, packets, gap| Duration::Bursts { bursts, packets, gap };
        for (json, wanted, delay) in [
            (json!({}), Duration::Continuous, Wait::NONE),
            (
                json!({"choice": "continuous", "continuous": {"gap": 12, "delay": {"choice": "bytes", "bytes": 0.0}}}),
                Duration::Continuous,
                Wait::Bytes(0.0),
            ),
            (
                json!({"fixed_packets": {"packets": 9, "delay": {"choice": "microseconds", "microseconds": 1.5}}}),
                Duration::Packets(9),
                Wait::Nanoseconds(1500.0),
            ),
            (json!({"choice": "fixed_packets"}), Duration::Packets(1), Wait::NONE),
            (
                json!({"fixed_seconds": {"seconds": 1.5, "delay": {"bytes": 64}}}),
                Duration::Nanoseconds(1_500_000_000),
                Wait::Bytes(64.0),
            ),
            (json!({"choice": "burst"}), bursts(0, 1, Wait::NONE), Wait::NONE),
            (
                json!({"burst": {"bursts": 3, "packets": 10, "inter_burst_gap": {"choice": "bytes", "bytes": 12.0}}}),
                bursts(3, 10, Wait::Bytes(0.0)),
                Wait::NONE,
            ),
            (
                json!({"burst": {"packets": 10, "inter_burst_gap": {"bytes": 1012}}}),
                bursts(0, 10, Wait::Bytes(1000.0)),
                Wait::NONE,
            ),
            (
                json!({"burst": {"inter_burst_gap": {"choice": "microseconds"}}}),
                bursts(0, 1, Wait::Nanoseconds(96.0)),
                Wait::NONE,
            ),
        ] {
            assert_eq!(duration(json.clone()), Ok((wanted, delay)), "{json}");
        }
    }

    #[test]
    fn what_cannot_be_is_named() {
        for (json, wanted) in [
            (json!({"continuous": {"gap": 13}}), "continuous.gap: not supported; the rate sets"),
            (json!({"fixed_packets": {"packets": 0}}), "fixed_packets.packets: must be"),
            (json!({"fixed_seconds": {"seconds": 0}}), "fixed_seconds.seconds: must be"),
            (json!({"fixed_seconds": {"seconds": 1e30}}), "fixed_seconds.seconds: must be"),
            (json!({"burst": {"delay": {}}}), "burst.delay: not supported"),
            (json!({"burst": {"packets": 0}}), "burst.packets: must be"),
            (
                json!({"burst": {"inter_burst_gap": {"bytes": -1}}}),
                "burst.inter_burst_gap.bytes: must",
            ),
            (
                json!({"continuous": {"delay": {"hours": 1}}}),
                "continuous.delay.hours: not supported",
            ),
        ] {
            let error = duration(json).unwrap_err();
            assert!(error.starts_with(wanted), "{wanted}: {error}");
        }
    }
}
