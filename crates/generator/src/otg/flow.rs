// SPDX-License-Identifier: BSD-3-Clause
//! OTG's `Flow`: from where to where, which frames, how fast and for how long.

use std::cell::Cell;
use std::sync::Arc;

use packet::frame::{FrameError, FrameSpec, Header, SignatureSpec, min_len_with_fcs};
use packet::payload::Payload;
use packet::size::{MAX_LEN_WITH_FCS, MIN_LEN_WITH_FCS, Sizes};
use packet::writer::FrameWriter;
use packet::{L1_OVERHEAD, headers};

use super::devices::Devices;
use super::endpoints::{self, Pairs};
use super::walk::{Node, Object};
use super::{duration, headers as stack, hex, size, tags};
use crate::pacing::{FrameRate, MAX_FRAMES_PER_SECOND};
use crate::plan::{Duration, FlowPlan, Metrics, Rate, Source, Wait};

/// The fields of a flow that are looked at.
pub const FIELDS: &[&str] =
    &["name", "tx_rx", "packet", "egress_packet", "size", "rate", "duration", "metrics", "payload"];

/// What a flow is read for.
pub struct Context<'a> {
    /// Names of the ports.
    pub ports: &'a [&'a str],
    /// The devices; none if they are wrong.
    pub devices: Option<&'a Devices>,
    /// Size of the largest frame, in bytes with FCS.
    pub max_frame: usize,
    /// Whether payloads carry a checksum.
    pub integrity: bool,
    /// Values that the flows not read yet may keep in memory.
    pub values_left: Cell<usize>,
}

/// Values that all flows together may keep in memory, of 16 bytes at most. A request of a megabyte could
/// ask for more than a machine has.
pub const MAX_VALUES: usize = 1 << 24;

/// Reads flow number `index`, whose name is known.
pub fn read(
    flow: &Object<'_>,
    context: &Context<'_>,
    name: Option<String>,
    index: usize,
) -> Option<FlowPlan> {
    let ends = flow.required("tx_rx").and_then(|node| tx_rx(&node, context));
    let given = flow.get("size");
    let sizes = match &given {
        Some(node) => size::read(node, context.max_frame),
        None => Some(Sizes::Fixed(MIN_LEN_WITH_FCS)),
    };
    let mut headers = match flow.get("packet") {
        Some(node) => stack::read(&node),
        None => Some(vec![Header::new(&headers::ETHERNET)]),
    };
    let hops = match (&ends, &mut headers) {
        (Some(Ends { pairs: Some(pairs), .. }), Some(headers)) => pairs.address(flow, headers),
        _ => Vec::new(),
    };
    let duration = match flow.get("duration") {
        Some(node) => duration::read(&node),
        None => Some((Duration::Continuous, Wait::NONE)),
    };
    let receivers = ends.as_ref().map_or(1, |ends| ends.rx.len());
    let metrics = match flow.get("metrics") {
        Some(node) => metrics(&node, receivers),
        None => Some(Metrics::default()),
    };
    let payload =
        flow.get("payload").map_or_else(|| Some(Payload::default()), |node| payload(&node));
    let full = metrics.filter(|metrics| metrics.enable).map(|metrics| SignatureSpec::Full {
        stamped: metrics.latency,
        integrity: context.integrity,
    });
    let sizes = match (&given, &headers) {
        (None, Some(headers)) => least_size(flow, headers, full, context.max_frame),
        _ => sizes,
    };
    let signature = match (full, &headers, &sizes) {
        (Some(full), Some(headers), Some(sizes)) => signature(full, headers, sizes),
        _ => full,
    };
    // By the least size where the sizes are wrong, so that other faults show too.
    let mean = sizes.as_ref().map_or(MIN_LEN_WITH_FCS as f64, Sizes::mean_with_fcs);
    let rate = match flow.get("rate") {
        Some(node) => rate(&node, mean),
        None => FrameRate::new(1000, 1).map(Rate::Frames),
    };
    let spec = FrameSpec { headers: headers?, sizes: sizes?, payload: payload?, signature };
    let kept = spec.kept_values() + hops.len();
    let Some(left) = context.values_left.get().checked_sub(kept) else {
        return flow.fault(format!(
            "the flows up to this one have more than {MAX_VALUES} values in lists, random numbers and \
             mixes of sizes ({kept} of this flow); give fields increments, or random numbers a count \
             above 65536, which are made anew in each round"
        ));
    };
    context.values_left.set(left);
    // What the writer cannot do must show now, not when the flow starts.
    if let Err(error) = FrameWriter::new(&spec, u16::try_from(index).unwrap_or(u16::MAX)) {
        let (field, what) = match &error {
            FrameError::NoRoom { signature: Some(_), .. } => ("size", no_room(&error)),
            FrameError::Size(_) | FrameError::NoRoom { .. } => ("size", error.to_string()),
            _ => ("packet", error.to_string()),
        };
        return flow.child_fault(field, what);
    }
    let (Ends { tx, rx, .. }, (duration, delay)) = (ends?, duration?);
    let metrics = metrics?;
    let (packet, egress) = (flow.get("packet"), flow.get("egress_packet"));
    let tags =
        tags::read(packet.as_ref(), &spec, egress.as_ref(), metrics.rx_name, !hops.is_empty())?;
    if metrics.enable && tags.need_numbers() && spec.signature.is_none() {
        let least = min_len_with_fcs(&spec.headers, Some(SignatureSpec::Short));
        return flow.child_fault("packet", format!(
            "metric_tags need frames with a mark: choose {least} bytes or more, or give egress_packet the tags"
        ));
    }
    let Some(left) = context.values_left.get().checked_sub(tags.kept_values()) else {
        return flow.child_fault("packet", format!(
            "the values of fields with metric_tags are kept for each tag, and the flows up to this one have more than {MAX_VALUES} values"
        ));
    };
    context.values_left.set(left);
    let tagged = tags.rx_name || !tags.only_ports();
    if tagged && !metrics.enable {
        flow.child_warning("metrics.enable", "false: metric tags count nothing");
    }
    Some(FlowPlan {
        name: name?,
        tx,
        rx,
        source: Source::Frames(Box::new(spec)),
        hops,
        rate: rate?,
        duration,
        delay,
        metrics,
        tags: (tagged && metrics.enable).then(|| Arc::new(tags)),
    })
}

/// The signature of a flow with metrics: a full one if its smallest frame has room or if the flow needs it, else a short
/// one, or none.
fn signature(full: SignatureSpec, headers: &[Header], sizes: &Sizes) -> Option<SignatureSpec> {
    let fits =
        |mark: &SignatureSpec| min_len_with_fcs(headers, Some(*mark)) <= sizes.min_with_fcs();
    match full.is_stamped() || full.has_integrity() {
        true => Some(full),
        false => [full, SignatureSpec::Short].into_iter().find(fits),
    }
}

/// That a flow's frames have no room for the mark which its metrics need.
fn no_room(error: &FrameError) -> String {
    let FrameError::NoRoom { size, headers, headers_len, signature: Some(mark), least } = error
    else {
        return error.to_string();
    };
    let (needs, off) = match (mark.is_stamped(), mark.has_integrity()) {
        (true, true) => ("latency and data_integrity need", "both"),
        (true, false) => ("latency needs", "latency"),
        (false, _) => ("data_integrity needs", "it"),
    };
    format!(
        "a frame of {size} bytes has no room for {headers} headers ({headers_len} bytes) and the {}-byte mark that {needs}: \
         choose {least} bytes or more, or switch {off} off",
        mark.len()
    )
}

/// The size of a flow that gives none: the smallest that has room for its headers and for the mark that metrics need.
fn least_size(
    flow: &Object<'_>,
    headers: &[Header],
    signature: Option<SignatureSpec>,
    max_frame: usize,
) -> Option<Sizes> {
    let least = min_len_with_fcs(headers, signature);
    // Frames that no generator sends are the writer's to refuse.
    if (max_frame + 1..=MAX_LEN_WITH_FCS).contains(&least) {
        return flow.child_fault("size", size::too_long(least, max_frame));
    }
    if least > MIN_LEN_WITH_FCS {
        let mark = match signature {
            Some(mark) => format!(" and the {}-byte mark of flows with metrics", mark.len()),
            None => String::new(),
        };
        flow.child_warning(
            "size",
            format!("not given: frames have {least} bytes, the smallest size with room for the headers{mark}"),
        );
    }
    Some(Sizes::Fixed(least))
}

/// From where to where frames go.
struct Ends<'a> {
    /// Index of the port that sends.
    tx: usize,
    /// Indices of the ports that receive.
    rx: Vec<usize>,
    /// The ends, if they are devices'.
    pairs: Option<Pairs<'a>>,
}

fn tx_rx<'a>(node: &Node<'_>, context: &Context<'a>) -> Option<Ends<'a>> {
    let object = node.object(&["choice", "port", "device"])?;
    if object.choice(&["port", "device"], Some("port"))? == "device" {
        let pairs = endpoints::read(&object.required("device")?, context.devices)?;
        return Some(Ends { tx: pairs.tx, rx: pairs.rx.clone(), pairs: Some(pairs) });
    }
    let ports = context.ports;
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
    let mut rx = rx.into_iter().collect::<Option<Vec<usize>>>()?;
    rx.sort_unstable();
    rx.dedup();
    Some(Ends { tx: tx?, rx, pairs: None })
}

/// The index of the port that is named.
pub fn port_index(node: &Node<'_>, ports: &[&str]) -> Option<usize> {
    let name = node.text()?;
    match ports.iter().position(|port| *port == name) {
        Some(index) => Some(index),
        None => {
            let shown: String = name.chars().take(60).collect();
            node.fault(format!("there is no port named {shown:?}"))
        }
    }
}

/// A rate of frames of `mean_with_fcs` bytes on average.
fn rate(node: &Node<'_>, mean_with_fcs: f64) -> Option<Rate> {
    const BITS: [(&str, u64, u64); 4] = [
        ("bps", 1, 1_000_000_000),
        ("kbps", 1_000, 1_000_000),
        ("mbps", 1_000_000, 1_000),
        ("gbps", 1_000_000_000, 1),
    ];
    let kinds = ["pps", "bps", "kbps", "mbps", "gbps", "percentage"];
    let object = node.object(&[&["choice"][..], &kinds].concat())?;
    let chosen = object.choice(&kinds, Some("pps"))?;
    let value = object.get(chosen);
    if chosen == "percentage" {
        let percent = value.as_ref().map_or(Some(100.0), |node| node.number(0.0, 100.0))?;
        return match percent > 0.0 {
            true => Some(Rate::Percent(percent)),
            false => value?.fault("must be above 0"),
        };
    }
    let Some((_, unit, default)) = BITS.iter().find(|(kind, ..)| *kind == chosen) else {
        let frames = value.map_or(Some(1000), |node| node.integer(1, MAX_FRAMES_PER_SECOND))?;
        return FrameRate::new(frames, 1).map(Rate::Frames);
    };
    // Bits count on layer 1: OTG's least rate, 672 bit/s, is one 64-byte frame with its 20 bytes.
    let frame_bits = (mean_with_fcs + L1_OVERHEAD as f64) * 8.0;
    // The highest rate in this unit at which frames are still told apart.
    let max = (MAX_FRAMES_PER_SECOND as f64 * frame_bits / *unit as f64) as u64;
    let amount = value.map_or(Some(*default), |node| node.integer(1, max))?;
    Some(Rate::Bits { bits: amount.checked_mul(*unit)?, overhead: L1_OVERHEAD })
}

fn metrics(node: &Node<'_>, receivers: usize) -> Option<Metrics> {
    let object = node.object(&[
        "enable",
        "loss",
        "timestamps",
        "latency",
        "rx_tx_ratio",
        "predefined_metric_tags",
    ])?;
    let tags = object.inner("predefined_metric_tags", &["rx_name"])?;
    let latency = object.inner("latency", &["enable", "mode"])?;
    if let Some(mode) = latency.get("mode") {
        mode.word(&["store_forward", "cut_through"])?;
    }
    let ratio = object
        .get("rx_tx_ratio")
        .map_or(Some(Metrics::default().rx_tx_ratio), |node| rx_tx_ratio(&node, receivers));
    let (enable, loss) = (object.flag("enable", false), object.flag("loss", false));
    let (stamps, latency) = (object.flag("timestamps", false), latency.flag("enable", false));
    let rx_name = tags.flag("rx_name", false);
    Some(Metrics {
        enable: enable?,
        loss: loss?,
        rx_tx_ratio: ratio?,
        timestamps: stamps?,
        latency: latency?,
        rx_name: rx_name?,
    })
}

fn rx_tx_ratio(node: &Node<'_>, receivers: usize) -> Option<f64> {
    let object = node.object(&["choice", "value", "rx_count"])?;
    match object.choice(&["value", "rx_count"], Some("value"))? {
        "rx_count" => {
            object.inner("rx_count", &[])?;
            Some(receivers.max(1) as f64)
        }
        _ => object.get("value").map_or(Some(1.0), |node| node.number(1e-9, 1e9)),
    }
}

fn payload(node: &Node<'_>) -> Option<Payload> {
    let kinds = ["fixed", "increment_byte", "decrement_byte", "increment_word", "decrement_word"];
    let object = node.object(&["choice", "fixed"])?;
    match object.choice(&kinds, Some("fixed"))? {
        "increment_byte" => Some(Payload::IncrementByte),
        "decrement_byte" => Some(Payload::DecrementByte),
        "increment_word" => Some(Payload::IncrementWord),
        "decrement_word" => Some(Payload::DecrementWord),
        _ => {
            let fixed = object.inner("fixed", &["pattern", "repeat"])?;
            let repeat = fixed.flag("repeat", true);
            let pattern = match fixed.get("pattern") {
                Some(node) => {
                    let bytes = hex::read(&node)?;
                    if !(1..=packet::size::MAX_LEN_WITH_FCS).contains(&bytes.len()) {
                        return node.fault(format!(
                            "{} bytes; choose 1 to {}",
                            bytes.len(),
                            packet::size::MAX_LEN_WITH_FCS
                        ));
                    }
                    bytes
                }
                None => vec![0],
            };
            Some(Payload::Fixed { pattern, repeat: repeat? })
        }
    }
}
