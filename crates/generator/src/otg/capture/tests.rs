// SPDX-License-Identifier: BSD-3-Clause

use super::*;
use crate::otg::walk::Faults;
use proptest::prelude::*;
use serde_json::{Value, json};

fn plan(value: &Value) -> Result<CapturePlan, String> {
    let faults = Faults::default();
    let plan = read(&Node::root(value, &faults), &["p1", "p2"], true);
    faults.finish(plan).map_err(|error| error.errors.join("; "))
}

fn with_filters(filters: Value) -> Result<CapturePlan, String> {
    plan(&json!({"name": "c", "port_names": ["p1"], "filters": filters}))
}

fn frame() -> Vec<u8> {
    let mut frame = vec![0; 60];
    frame[..12].copy_from_slice(&[0, 8, 6, 2, 0, 0, 0, 0, 0xff, 0, 0, 0]);
    frame[12..18].copy_from_slice(&[0x81, 0, 0xf0, 6, 8, 0]);
    frame[18] = 0x45;
    frame[27] = 17;
    frame
}

#[test]
fn the_defaults_are_those_of_the_model() {
    let plan = plan(&json!({"name": "c", "port_names": ["p2", "p1"]})).unwrap();
    assert_eq!((plan.name.as_str(), plan.ports), ("c", vec!["p2".to_owned(), "p1".to_owned()]));
    assert_eq!((plan.snap, plan.overwrite, plan.format), (MAX_SNAP, true, Format::Pcap));
    assert!(plan.filter.is_empty());
}

#[test]
fn everything_that_can_be_said_is_read() {
    let plan = plan(&json!({
        "name": "c", "port_names": ["p1"], "overwrite": false, "packet_size": 100,
        "format": "pcapng",
        "filters": [
            {"choice": "ethernet", "ethernet": {
                "src": {"value": "0000ff000000", "mask": "000000000000", "negate": false},
                "dst": {"value": "0x80602FFFF", "mask": "FFFFFFFF0000"},
                "pfc_queue": {"value": "00", "mask": "00", "negate": false},
            }},
        ],
    }));
    assert!(plan.unwrap_err().contains("filters[0].ethernet.dst: the value has bits outside"));
    let plan = with_filters(json!([
        {"choice": "ethernet", "ethernet": {
            "src": {"value": "0000ff000000", "mask": "000000000000", "negate": false},
            "dst": {"value": "0x806020000", "mask": "FFFFFFFF0000"},
            "ether_type": {"value": "00", "mask": "00", "negate": false},
            "pfc_queue": {"value": "00", "mask": "00", "negate": false},
        }},
        {"choice": "vlan", "vlan": {"id": {"value": "006"}, "priority": {"value": "3", "negate": true}}},
        {"ipv4": {"protocol": {"value": "11"}}},
        {"custom": {"offset": 8, "bit_length": 8, "value": "01", "mask": "ff", "negate": true}},
        {},
    ]))
    .unwrap();
    assert!(plan.filter.matches(&frame()));
    for (at, value) in [(0, 1), (11, 1), (14, 0x70), (15, 7), (27, 6), (39, 1)] {
        let mut other = frame();
        other[at] = value;
        assert!(!plan.filter.matches(&other), "byte {at}");
    }
}

#[test]
fn faults_have_their_path_and_come_all_at_once() {
    let all = plan(&json!({
        "name": 7, "port_names": ["p1", "nope"], "overwrite": "yes", "packet_size": 0,
        "format": "erf", "colour": 1,
        "filters": [
            {"choice": "ipv4", "ipv4": {"ttl": {}, "src": {"value": "xyz"}, "dst": {"value": "1234567890"}}},
            {"choice": "ipv6"},
            {"choice": "ethernet", "ethernet": {"pfc_queue": {"value": "3"}}},
            {"custom": {"bit_length": 0}},
            {"custom": {"bit_length": 8, "value": "010101"}},
            {"vlan": {"cfi": {"negate": true}}},
        ],
    }))
    .unwrap_err();
    for fault in [
        "colour: not supported",
        "name: must be a string",
        "port_names[1]: there is no port \"nope\"",
        "overwrite: must be true or false",
        "packet_size: must be a whole number from 1 to 65535",
        "format: \"erf\" is not supported; choose pcap, pcapng",
        "filters[0].ipv4.ttl: not supported",
        "filters[0].ipv4.src.value: must be 1 to 256 hexadecimal digits",
        "filters[0].ipv4.dst: the value has 37 bits, the field 32",
        "filters[1]: all filters must match, and no frame is both",
        "filters[2].ethernet.pfc_queue: ethernet has no field \"pfc_queue\"",
        "filters[3].custom.bit_length: must be a whole number from 1 to 1024",
        "filters[4].custom: the value has 17 bits, the field 8",
        "filters[5].vlan.cfi: negate with value and mask 0 compares nothing",
    ] {
        assert!(all.contains(fault), "{fault}\nnot in {all}");
    }
    for (value, fault) in [
        (json!({"name": "c", "port_names": []}), "port_names: name at least one port"),
        (json!({"name": "c"}), "port_names: is missing"),
        (json!({"name": "c", "port_names": ["p1", "p1"]}), "port_names[1]: \"p1\" is in the list"),
        (json!([]), "must be an object"),
    ] {
        assert!(plan(&value).unwrap_err().contains(fault), "{value}");
    }
    let many = json!((0..=MAX_FILTERS).map(|_| json!({})).collect::<Vec<_>>());
    assert!(with_filters(many).unwrap_err().contains("filters: at most 32 filters"));
}

proptest! {
    #[test]
    fn hexadecimal_numbers_are_read_as_they_are_written(number in any::<u64>(), zeros in 0usize..5) {
        let text = json!(format!("{}{number:X}", "0".repeat(zeros)));
        let faults = Faults::default();
        let bytes = hex(&Node::root(&text, &faults)).unwrap();
        let read = bytes.iter().fold(0u64, |number, byte| number << 8 | u64::from(*byte));
        prop_assert_eq!(read, number);
        prop_assert!(bytes.first() != Some(&0));
    }
}
