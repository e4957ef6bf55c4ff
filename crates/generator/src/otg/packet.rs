// SPDX-License-Identifier: BSD-3-Clause
//! OTG's packet headers: Ethernet, IPv4 and UDP, in this order, with patterns on their fields.

use std::net::Ipv4Addr;

use packet::MacAddr;
use packet::ethernet;
use packet::field::Pattern;
use packet::ipv4;
use packet::template::UdpFrame;
use packet::udp;

use super::walk::{Node, Object};

/// How a kind of value is written in JSON.
type Read = fn(&Node<'_>) -> Option<u64>;

/// Most values of a list pattern.
const MAX_VALUES: usize = 65_536;

fn mac(node: &Node<'_>) -> Option<u64> {
    node.parse::<MacAddr>().map(MacAddr::to_u64)
}

fn address(node: &Node<'_>) -> Option<u64> {
    let text = node.text()?;
    match text.parse::<Ipv4Addr>() {
        Ok(address) => Some(u64::from(u32::from(address))),
        Err(_) => node.fault(format!(
            "{:?} is not an IPv4 address",
            text.chars().take(40).collect::<String>()
        )),
    }
}

fn port(node: &Node<'_>) -> Option<u64> {
    node.integer(0, 0xffff)
}

/// The stack of headers of a frame of `len_with_fcs` bytes.
pub fn read(node: &Node<'_>, len_with_fcs: usize) -> Option<UdpFrame> {
    const STACK: [&str; 3] = ["ethernet", "ipv4", "udp"];
    let list = node.list()?;
    let headers: Vec<Option<Object<'_>>> =
        list.iter().zip(STACK).map(|(node, wanted)| header(node, wanted)).collect();
    for extra in list.iter().skip(STACK.len()) {
        let name = chosen(extra).unwrap_or_default();
        extra.child_fault(&name, "not supported; the headers are ethernet, ipv4, udp");
    }
    if list.len() < STACK.len() {
        return node.fault("the headers must be ethernet, ipv4, udp, in this order");
    }
    let [ethernet, ipv4, udp]: [Option<Object<'_>>; 3] = headers.try_into().ok()?;
    let mut frame = UdpFrame { len_with_fcs, ..UdpFrame::default() };
    let ethernet = ethernet.and_then(|object| read_ethernet(&object, &mut frame));
    let ipv4 = ipv4.and_then(|object| read_ipv4(&object, &mut frame));
    let udp = udp.and_then(|object| read_udp(&object, &mut frame));
    (ethernet.is_some() && ipv4.is_some() && udp.is_some() && list.len() == STACK.len())
        .then_some(frame)
}

/// What kind of header an entry is, said or inferred; OTG's default is Ethernet.
fn chosen(node: &Node<'_>) -> Option<String> {
    let map = node.raw_object()?;
    match map.get("choice") {
        Some(choice) => choice.as_str().map(|text| text.chars().take(60).collect()),
        None => Some(
            map.keys().next().map_or("ethernet".to_owned(), |key| key.chars().take(60).collect()),
        ),
    }
}

fn header<'a>(node: &Node<'a>, wanted: &str) -> Option<Object<'a>> {
    match chosen(node) {
        Some(name) if name == wanted => {}
        Some(name) => {
            node.child_fault(&name, &format!("not supported here; the headers are ethernet, ipv4, udp, and this is {wanted}'s place"));
            return None;
        }
        None => return node.fault("must be an object with a choice"),
    }
    let object = node.object(&["choice", wanted])?;
    let fields: &[&str] = match wanted {
        "ethernet" => &["dst", "src", "ether_type", "pfc_queue"],
        "ipv4" => &[
            "version",
            "header_length",
            "priority",
            "total_length",
            "identification",
            "reserved",
            "dont_fragment",
            "more_fragments",
            "fragment_offset",
            "time_to_live",
            "protocol",
            "header_checksum",
            "src",
            "dst",
            "options",
        ],
        _ => &["src_port", "dst_port", "length", "checksum"],
    };
    match object.get(wanted) {
        Some(node) => node.object(fields),
        None => object.empty(wanted),
    }
}

fn read_ethernet(header: &Object<'_>, frame: &mut UdpFrame) -> Option<()> {
    let destination = pattern(header, "dst", mac, 48, true, 0);
    let source = pattern(header, "src", mac, 48, false, 0);
    let kind = constant(
        header,
        "ether_type",
        true,
        u64::from(ethernet::ETHERTYPE_IPV4),
        &[u64::from(ethernet::ETHERTYPE_IPV4)],
    );
    let queue = constant(header, "pfc_queue", false, 0, &[0]);
    frame.mac_destination = destination?;
    frame.mac_source = source?;
    kind.and(queue).map(drop)
}

fn read_ipv4(header: &Object<'_>, frame: &mut UdpFrame) -> Option<()> {
    let total = (frame.len_with_fcs - packet::FCS_LEN - ethernet::LEN) as u64;
    header.refuse(&["options"]);
    let source = pattern(header, "src", address, 32, false, 0);
    let destination = pattern(header, "dst", address, 32, false, 0);
    let fixed = [
        constant(header, "version", false, 4, &[4]),
        constant(header, "header_length", true, 5, &[5]),
        constant(header, "total_length", true, total, &[total]),
        constant(header, "reserved", false, 0, &[0]),
        constant(header, "more_fragments", false, 0, &[0]),
        constant(header, "fragment_offset", false, 0, &[0]),
        constant(
            header,
            "protocol",
            true,
            u64::from(ipv4::PROTOCOL_UDP),
            &[u64::from(ipv4::PROTOCOL_UDP)],
        ),
    ];
    let dont_fragment = constant(header, "dont_fragment", false, 0, &[0, 1]);
    let identification = constant(header, "identification", false, 0, &[]);
    let ttl = constant(header, "time_to_live", false, 64, &[]);
    let tos = header.get("priority").map_or(Some(0), |node| priority(&node));
    let checksum = checksum(header, "header_checksum");
    frame.ip_source = source?;
    frame.ip_destination = destination?;
    frame.dont_fragment = dont_fragment? == 1;
    frame.identification = in_range(header, "identification", identification?, 0xffff)? as u16;
    frame.ttl = in_range(header, "time_to_live", ttl?, 0xff)? as u8;
    frame.tos = tos?;
    checksum?;
    fixed.iter().all(Option::is_some).then_some(())
}

fn read_udp(header: &Object<'_>, frame: &mut UdpFrame) -> Option<()> {
    let length = (frame.len_with_fcs - packet::FCS_LEN - ethernet::LEN - ipv4::LEN) as u64;
    debug_assert!(length >= udp::LEN as u64);
    let source = pattern(header, "src_port", port, 16, false, 0);
    let destination = pattern(header, "dst_port", port, 16, false, 0);
    // snappi writes 0 for a length that nobody set.
    let length = constant(header, "length", false, 0, &[0, length]);
    let checksum = checksum(header, "checksum");
    frame.port_source = source?;
    frame.port_destination = destination?;
    length.and(checksum)
}

/// A field that may change from frame to frame.
fn pattern(
    header: &Object<'_>,
    key: &str,
    read: Read,
    bits: u32,
    auto: bool,
    default: u64,
) -> Option<Pattern> {
    let Some(node) = header.get(key) else { return Some(Pattern::Value(default.into())) };
    let kinds: &[&str] = if auto {
        &["value", "values", "increment", "decrement", "auto"]
    } else {
        &["value", "values", "increment", "decrement"]
    };
    let object = node.object(&[
        "choice",
        "value",
        "values",
        "increment",
        "decrement",
        "metric_tags",
        "auto",
    ])?;
    object.refuse(&["metric_tags"]);
    let chosen = object.choice(kinds, Some(if auto { "auto" } else { "value" }))?;
    let value = object.get(chosen);
    match chosen {
        "auto" => Some(Pattern::Value(default.into())),
        "value" => {
            let value = value.map_or(Some(default), |node| read(&node));
            value.map(|value| Pattern::Value(value.into()))
        }
        "values" => {
            let Some(node) = value else { return Some(Pattern::Value(default.into())) };
            let list = node.list()?;
            if list.is_empty() || list.len() > MAX_VALUES {
                return node.fault(format!("must have 1 to {MAX_VALUES} values"));
            }
            let values: Vec<Option<u64>> = list.iter().map(read).collect();
            let values = values.into_iter().map(|value| value.map(u128::from));
            values.collect::<Option<_>>().map(Pattern::Values)
        }
        _ => {
            let counter = match value {
                Some(node) => node.object(&["start", "step", "count"])?,
                None => object.empty(chosen)?,
            };
            let part = |key, default| counter.get(key).map_or(Some(default), |node| read(&node));
            let (start, step) = (part("start", default), part("step", 1));
            let most = if bits == 16 { 65_536 } else { u64::from(u32::MAX) };
            let count = counter.get("count").map_or(Some(1), |node| node.integer(1, most));
            let (start, step, count) = (start?.into(), step?.into(), count?);
            Some(if chosen == "increment" {
                Pattern::Increment { start, step, count }
            } else {
                Pattern::Decrement { start, step, count }
            })
        }
    }
}

/// A field that is the same in every frame; `allowed` empty means any value.
fn constant(
    header: &Object<'_>,
    key: &str,
    auto: bool,
    default: u64,
    allowed: &[u64],
) -> Option<u64> {
    let Some(node) = header.get(key) else { return Some(default) };
    let object = node.object(&["choice", "value", "auto", "metric_tags"])?;
    object.refuse(&["metric_tags"]);
    let kinds: &[&str] = if auto { &["value", "auto"] } else { &["value"] };
    let chosen = object.choice(kinds, Some(if auto { "auto" } else { "value" }))?;
    let (true, Some(node)) = (chosen == "value", object.get("value")) else { return Some(default) };
    let value = node.integer(0, u64::from(u32::MAX))?;
    if allowed.is_empty() || allowed.contains(&value) {
        return Some(value);
    }
    let allowed: Vec<String> = allowed.iter().map(u64::to_string).collect();
    node.fault(format!("{value} is not supported; choose {}", allowed.join(" or ")))
}

fn in_range(header: &Object<'_>, key: &str, value: u64, max: u64) -> Option<u64> {
    match value <= max {
        true => Some(value),
        false => header.get(key)?.fault(format!("must be at most {max}")),
    }
}

fn checksum(header: &Object<'_>, key: &str) -> Option<()> {
    let Some(node) = header.get(key) else { return Some(()) };
    let object = node.object(&["choice", "generated"])?;
    object.choice(&["generated"], Some("generated"))?;
    object.get("generated").map_or(Some(()), |node| node.word(&["good"]).map(drop))
}

/// OTG's IPv4 priority as the type-of-service byte.
fn priority(node: &Node<'_>) -> Option<u8> {
    let object = node.object(&["choice", "raw", "dscp"])?;
    match object.choice(&["raw", "dscp"], Some("dscp"))? {
        "raw" => {
            let raw = constant(&object, "raw", false, 0, &[])?;
            in_range(&object, "raw", raw, 0xff).map(|tos| tos as u8)
        }
        _ => {
            let Some(dscp) = object.get("dscp") else { return Some(0) };
            let dscp = dscp.object(&["phb", "ecn"])?;
            let (phb, ecn) =
                (constant(&dscp, "phb", false, 0, &[]), constant(&dscp, "ecn", false, 0, &[]));
            let (phb, ecn) = (in_range(&dscp, "phb", phb?, 63)?, in_range(&dscp, "ecn", ecn?, 3)?);
            Some((phb << 2 | ecn) as u8)
        }
    }
}
