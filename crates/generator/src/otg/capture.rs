// SPDX-License-Identifier: BSD-3-Clause
//! OTG's captures: which frames of which ports, and in which format.

use std::sync::Arc;

use crate::capture::filter::{
    FilterBuilder, FilterError, Layer, MAX_CUSTOM_BITS, MAX_CUSTOM_OFFSET, Wanted,
};
use crate::capture::{CapturePlan, Format, MAX_SNAP};

use super::walk::{Node, Object};

mod request;

pub use request::{Request, request};

/// Most filters of one capture.
const MAX_FILTERS: usize = 32;
/// Most hexadecimal digits of a value or a mask.
const MAX_DIGITS: usize = MAX_CUSTOM_BITS as usize / 4;

/// An entry of `captures`. `ports` are the names of the configured ports, and `fcs` is whether frames are captured with
/// their FCS. That no port and no name is in two entries is for the reader of the list to say.
pub fn read(node: &Node<'_>, ports: &[&str], fcs: bool) -> Option<CapturePlan> {
    let object =
        node.object(&["name", "port_names", "filters", "overwrite", "packet_size", "format"])?;
    let name = object.required("name").and_then(|node| node.text().map(str::to_owned));
    let names = object.required("port_names").and_then(|node| port_names(&node, ports));
    let filter = filters(&object);
    let overwrite = object.get("overwrite").map_or(Some(true), |node| node.boolean());
    let snap = object
        .get("packet_size")
        .map_or(Some(MAX_SNAP as u64), |node| node.integer(1, MAX_SNAP as u64));
    let format = object.get("format").map_or(Some("pcap"), |node| node.word(&["pcap", "pcapng"]));
    Some(CapturePlan {
        name: name?,
        ports: names?,
        filter: Arc::new(filter?.build()),
        snap: snap? as usize,
        fcs,
        overwrite: overwrite?,
        format: if format? == "pcapng" { Format::PcapNg } else { Format::Pcap },
        file: None,
    })
}

fn port_names(node: &Node<'_>, ports: &[&str]) -> Option<Vec<String>> {
    let mut names = Vec::new();
    for node in node.list()? {
        let name = node.text()?;
        if !ports.contains(&name) {
            let shown: String = name.chars().take(60).collect();
            return node.fault(format!("there is no port {shown:?}"));
        }
        if names.iter().any(|other| other == name) {
            return node.fault(format!("{name:?} is in the list already"));
        }
        names.push(name.to_owned());
    }
    if names.is_empty() { node.fault("name at least one port") } else { Some(names) }
}

fn filters(object: &Object<'_>) -> Option<FilterBuilder> {
    let mut builder = FilterBuilder::default();
    let Some(node) = object.get("filters") else { return Some(builder) };
    let list = node.list()?;
    if list.len() > MAX_FILTERS {
        return node.fault(format!("at most {MAX_FILTERS} filters are supported"));
    }
    let mut good = true;
    for node in &list {
        good &= filter(node, &mut builder).is_some();
    }
    good.then_some(builder)
}

fn filter(node: &Node<'_>, builder: &mut FilterBuilder) -> Option<()> {
    const KINDS: [&str; 5] = ["custom", "ethernet", "vlan", "ipv4", "ipv6"];
    let object = node.object(&["choice", "custom", "ethernet", "vlan", "ipv4", "ipv6"])?;
    let kind = object.choice(&KINDS, Some("custom"))?;
    let layer = match kind {
        "ethernet" => Layer::Ethernet,
        "vlan" => Layer::Vlan,
        "ipv4" => Layer::Ipv4,
        "ipv6" => Layer::Ipv6,
        _ => return custom(&object, builder),
    };
    if let Err(error) = builder.header(layer) {
        return node.fault(error.to_string());
    }
    let Some(node) = object.get(kind) else { return Some(()) };
    let names: Vec<&str> = layer
        .fields()
        .chain(["pfc_queue"].into_iter().filter(|_| layer == Layer::Ethernet))
        .collect();
    let header = node.object(&names)?;
    let mut good = true;
    for name in names {
        let Some(node) = header.get(name) else { continue };
        good &= field(&node, name, builder).is_some();
    }
    good.then_some(())
}

fn field(node: &Node<'_>, name: &str, builder: &mut FilterBuilder) -> Option<()> {
    let wanted = wanted(&node.object(&["value", "mask", "negate"])?)?;
    // snappi may write a field without content; a PFC queue is not in a frame that arrives.
    if name == "pfc_queue" && wanted == Wanted::default() {
        return Some(());
    }
    entered(node, builder.field(name, &wanted))
}

fn custom(object: &Object<'_>, builder: &mut FilterBuilder) -> Option<()> {
    const FIELDS: &[&str] = &["offset", "bit_length", "value", "mask", "negate"];
    let node = object.get("custom");
    let inner = match &node {
        Some(node) => node.object(FIELDS)?,
        None => object.empty("custom")?,
    };
    let number = |key, default, min, max: u32| {
        inner.get(key).map_or(Some(default), |node| node.integer(min, u64::from(max)))
    };
    let offset = number("offset", 0, 0, MAX_CUSTOM_OFFSET);
    let bits = number("bit_length", 8, 1, MAX_CUSTOM_BITS);
    let wanted = wanted(&inner)?;
    let result = builder.custom(offset? as u32, bits? as u32, &wanted);
    match node {
        Some(node) => entered(&node, result),
        None => Some(()),
    }
}

fn entered(node: &Node<'_>, result: Result<(), FilterError>) -> Option<()> {
    result.map_or_else(|error| node.fault(error.to_string()), Some)
}

fn wanted(object: &Object<'_>) -> Option<Wanted> {
    let number = |key| object.get(key).map_or(Some(Vec::new()), |node| hex(&node));
    let (value, mask) = (number("value"), number("mask"));
    let negate = object.get("negate").map_or(Some(false), |node| node.boolean());
    Some(Wanted { value: value?, mask: mask?, negate: negate? })
}

/// A number in hexadecimal digits, as big-endian bytes without leading zeros.
fn hex(node: &Node<'_>) -> Option<Vec<u8>> {
    let text = node.text()?;
    let digits = text.strip_prefix("0x").unwrap_or(text).as_bytes();
    let nibbles: Option<Vec<u8>> =
        digits.iter().map(|digit| Some((*digit as char).to_digit(16)? as u8)).collect();
    match nibbles {
        Some(nibbles) if !nibbles.is_empty() && nibbles.len() <= MAX_DIGITS => {
            let pairs = nibbles.rchunks(2).rev();
            let bytes = pairs.map(|pair| pair.iter().fold(0, |byte, nibble| byte << 4 | nibble));
            Some(bytes.skip_while(|byte| *byte == 0).collect())
        }
        _ => node.fault(format!("must be 1 to {MAX_DIGITS} hexadecimal digits")),
    }
}

#[cfg(test)]
mod tests;
