// SPDX-License-Identifier: BSD-3-Clause
//! OTG's `Layer1`: what a port's link is like.
//!
//! The generator changes no link: it does not negotiate, and it neither sends nor obeys pause
//! frames of itself. What would only change how a link comes up is ignored with a warning, for the frames
//! are the same. Flow control would change when frames leave: anything but the model's defaults is refused.

use super::flow::port_index;
use super::walk::{Node, Object};
use packet::size::MAX_LEN_WITH_FCS;

/// Why settings of a link are ignored.
const LEFT_ALONE: &str = "ignored: the generator leaves the link's settings as they are";

/// Bytes of a frame that are not its MTU: addresses, type and FCS.
const NOT_MTU: u64 = 18;

/// An entry of `layer1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer1 {
    /// Its name.
    pub name: String,
    /// Indices of the ports that it is for.
    pub ports: Vec<usize>,
    /// The line rate in Mbit/s, if it says so.
    pub speed_mbps: Option<u32>,
    /// Whether frames for other addresses are received too.
    pub promiscuous: bool,
}

const FIELDS: &[&str] = &[
    "name",
    "port_names",
    "speed",
    "media",
    "promiscuous",
    "mtu",
    "ieee_media_defaults",
    "auto_negotiate",
    "auto_negotiation",
    "flow_control",
];

const MEDIA: [&str; 3] = ["copper", "fiber", "sgmii"];

const SPEEDS: [(&str, u32); 11] = [
    ("speed_10_fd_mbps", 10),
    ("speed_100_fd_mbps", 100),
    ("speed_1_gbps", 1_000),
    ("speed_10_gbps", 10_000),
    ("speed_25_gbps", 25_000),
    ("speed_40_gbps", 40_000),
    ("speed_50_gbps", 50_000),
    ("speed_100_gbps", 100_000),
    ("speed_200_gbps", 200_000),
    ("speed_400_gbps", 400_000),
    ("speed_800_gbps", 800_000),
];

/// Reads an entry. Its ports take frames of `max_frame` bytes, FCS included.
pub fn read(node: &Node<'_>, ports: &[&str], max_frame: usize) -> Option<Layer1> {
    let object = node.object(FIELDS)?;
    if let Some(node) = object.get("media") {
        node.word(&MEDIA)?;
        node.warn(LEFT_ALONE);
    }
    flags(&object, &[("ieee_media_defaults", true), ("auto_negotiate", true)]);
    if let Some(node) = object.get("auto_negotiation") {
        auto_negotiation(&node);
    }
    if let Some(node) = object.get("flow_control") {
        flow_control(&node);
    }
    if let Some(node) = object.get("mtu") {
        let longest = node.integer(64, 14_000)? + NOT_MTU;
        if longest > MAX_LEN_WITH_FCS as u64 {
            node.warn(format!(
                "ignored: the ports have frames of at most {max_frame} bytes; --max-frame goes up to \
                 {MAX_LEN_WITH_FCS}"
            ));
        } else if longest > max_frame as u64 {
            node.warn(format!(
                "ignored: the ports have frames of at most {max_frame} bytes; for frames of {longest} bytes, \
                 start the generator with --max-frame {longest}"
            ));
        }
    }
    let name = object.required("name").and_then(|node| node.text().map(str::to_owned));
    let names = object.required("port_names").and_then(|node| node.list());
    let indices = names.and_then(|names| {
        let indices: Vec<_> = names.iter().map(|node| port_index(node, ports)).collect();
        indices.into_iter().collect::<Option<Vec<usize>>>()
    });
    let speed = match object.get("speed") {
        Some(node) => Some(speed(&node)?),
        None => None,
    };
    let promiscuous = object.flag("promiscuous", true);
    Some(Layer1 { name: name?, ports: indices?, speed_mbps: speed, promiscuous: promiscuous? })
}

fn speed(node: &Node<'_>) -> Option<u32> {
    let word = node.word(&SPEEDS.map(|(word, _)| word))?;
    SPEEDS.iter().find(|(known, _)| *known == word).map(|(_, mbps)| *mbps)
}

/// Notes a warning at each flag that is not as the model has it by default.
fn flags(object: &Object<'_>, defaults: &[(&str, bool)]) {
    for (key, default) in defaults {
        if object.flag(key, *default) == Some(!default) {
            object.child_warning(key, LEFT_ALONE);
        }
    }
}

fn auto_negotiation(node: &Node<'_>) -> Option<()> {
    const DEFAULTS: [(&str, bool); 7] = [
        ("advertise_1000_mbps", true),
        ("advertise_100_fd_mbps", true),
        ("advertise_100_hd_mbps", true),
        ("advertise_10_fd_mbps", true),
        ("advertise_10_hd_mbps", true),
        ("link_training", false),
        ("rs_fec", false),
    ];
    let object = node.object(&DEFAULTS.map(|(key, _)| key))?;
    flags(&object, &DEFAULTS);
    Some(())
}

fn flow_control(node: &Node<'_>) -> Option<()> {
    const CLASSES: [&str; 8] = [
        "pfc_class_0",
        "pfc_class_1",
        "pfc_class_2",
        "pfc_class_3",
        "pfc_class_4",
        "pfc_class_5",
        "pfc_class_6",
        "pfc_class_7",
    ];
    let object = node.object(&["directed_address", "choice", "ieee_802_1qbb"])?;
    if let Some(node) = object.get("directed_address") {
        let address: packet::MacAddr = node.parse()?;
        if address.to_u64() != 0x0180_c200_0001 {
            node.fault::<()>("not supported; leave it out or at 01:80:C2:00:00:01");
        }
    }
    object.choice(&["ieee_802_1qbb"], Some("ieee_802_1qbb"))?;
    let pfc = object.inner("ieee_802_1qbb", &[&["pfc_delay"][..], &CLASSES].concat())?;
    let classes = CLASSES.iter().zip(0..);
    for (key, default) in [("pfc_delay", 0)].into_iter().chain(classes.map(|(key, n)| (*key, n))) {
        let Some(node) = pfc.get(key) else { continue };
        if node.integer(0, 65_535)? != default {
            node.fault::<()>(format!("not supported; leave it out or at {default}"));
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::otg::walk::Faults;
    use serde_json::{Value, json};

    fn layer1(more: &[(&str, Value)]) -> Result<Layer1, String> {
        let mut json = json!({"name": "l", "port_names": ["q"], "promiscuous": true, "mtu": 1500});
        for (key, value) in more {
            json[*key] = value.clone();
        }
        let faults = Faults::default();
        let read = read(&Node::root(&json, &faults), &["p", "q"], 1518);
        faults.finish(read).map_err(|error| error.errors.join("; "))
    }

    #[test]
    fn speed_and_promiscuity_are_read() {
        let plain =
            Layer1 { name: "l".into(), ports: vec![1], speed_mbps: None, promiscuous: true };
        assert_eq!(layer1(&[]), Ok(plain.clone()));
        let speed = [("speed", json!("speed_25_gbps")), ("promiscuous", json!(false))];
        let wanted = Layer1 { speed_mbps: Some(25_000), promiscuous: false, ..plain.clone() };
        assert_eq!(layer1(&speed), Ok(wanted));
        let defaults = [
            ("auto_negotiate", json!(true)),
            ("auto_negotiation", json!({"advertise_1000_mbps": true, "rs_fec": false})),
            (
                "flow_control",
                json!({"directed_address": "01:80:C2:00:00:01", "choice": "ieee_802_1qbb", "ieee_802_1qbb": {"pfc_delay": 0, "pfc_class_3": 3}}),
            ),
        ];
        assert_eq!(layer1(&defaults), Ok(plain));
    }

    #[test]
    fn what_changes_no_frame_is_ignored_with_a_warning() {
        for (key, value, wanted) in [
            ("media", json!("fiber"), "media: ignored: the generator leaves"),
            ("auto_negotiate", json!(false), "auto_negotiate: ignored"),
            ("ieee_media_defaults", json!(false), "ieee_media_defaults: ignored"),
            ("auto_negotiation", json!({"rs_fec": true}), "auto_negotiation.rs_fec: ignored"),
            (
                "mtu",
                json!(1501),
                "mtu: ignored: the ports have frames of at most 1518 bytes; for frames of 1519 bytes, start the generator with --max-frame 1519",
            ),
            (
                "mtu",
                json!(14_000),
                "mtu: ignored: the ports have frames of at most 1518 bytes; --max-frame goes up to 9216",
            ),
        ] {
            let json = json!({"name": "l", "port_names": ["q"], key: value});
            let faults = Faults::default();
            let read = read(&Node::root(&json, &faults), &["p", "q"], 1518);
            let (read, warnings) = faults.finish_with_warnings(read).unwrap();
            assert_eq!((read.ports, read.speed_mbps), (vec![1], None));
            assert!(warnings.len() == 1 && warnings[0].starts_with(wanted), "{warnings:?}");
        }
    }

    #[test]
    fn what_the_generator_does_not_set_is_refused() {
        for (key, value, wanted) in [
            ("speed", json!("speed_10_hd_mbps"), "speed: \"speed_10_hd_mbps\" is not supported"),
            ("media", json!("wool"), "media: \"wool\" is not supported; choose copper"),
            ("auto_negotiate", json!(0), "auto_negotiate: must be true or false"),
            ("auto_negotiation", json!({"fec": true}), "auto_negotiation.fec: not supported"),
            ("mtu", json!(63), "mtu: must be a whole number"),
            (
                "flow_control",
                json!({"choice": "ieee_802_3x"}),
                "flow_control.choice: \"ieee_802_3x",
            ),
            (
                "flow_control",
                json!({"ieee_802_1qbb": {"pfc_class_3": 2}}),
                "flow_control.ieee_802_1qbb.pfc_class_3: not supported; leave it out or at 3",
            ),
            ("port_names", json!(["x"]), "port_names[0]: there is no port named \"x\""),
            ("macsec", json!({"a": 1}), "macsec: not supported"),
        ] {
            let error = layer1(&[(key, value)]).unwrap_err();
            assert!(error.starts_with(wanted), "{wanted}: {error}");
        }
    }
}
