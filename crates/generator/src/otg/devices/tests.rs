// SPDX-License-Identifier: BSD-3-Clause
//! Devices and the flows between them, as snappi writes them.

use packet::field::Pattern;
use packet::frame::{FieldValue, FrameSpec};
use serde_json::{Value, json};

use crate::location::Policy;
use crate::neighbors::{Hop, Tag, any_destination};
use crate::otg::config::{Limits, validate};
use crate::plan::{Plan, Source};

const LIMITS: Limits =
    Limits { locations: Policy::COMMAND_LINE, max_frame: 1518, capture_fcs: true };

/// The n-th device: an interface on a port, with an IPv4 and an IPv6 address.
fn device(n: usize, port: &str) -> Value {
    json!({"name": format!("d{n}"), "ethernets": [{
        "name": format!("e{n}"),
        "connection": {"choice": "port_name", "port_name": port},
        "mac": format!("02:00:00:00:00:0{n}"),
        "mtu": 1500,
        "ipv4_addresses": [{
            "name": format!("v4-{n}"), "address": format!("10.0.{n}.1"), "gateway": format!("10.0.{n}.254"), "prefix": 24,
            "gateway_mac": {"choice": "auto", "auto": "00:00:00:00:00:00"},
        }],
        "ipv6_addresses": [{
            "name": format!("v6-{n}"), "address": format!("2001:db8:{n}::1"), "gateway": format!("2001:db8:{n}::fe"), "prefix": 64,
        }],
    }]})
}

/// Devices 1 and 2 on port p, 3 and 4 on port q, and a flow between ends of these names.
fn config(tx: &[&str], rx: &[&str], packet: Value) -> Value {
    let devices = [device(1, "p"), device(2, "p"), device(3, "q"), device(4, "q")];
    json!({
        "ports": [{"name": "p", "location": "ring:p"}, {"name": "q", "location": "ring:q"}],
        "devices": devices,
        "flows": [{
            "name": "f",
            "tx_rx": {"choice": "device", "device": {"mode": "mesh", "tx_names": tx, "rx_names": rx}},
            "packet": packet,
        }],
    })
}

fn with(pointer: &str, value: Value) -> Value {
    let mut config = config(&["v4-1"], &["v4-3"], json!([{"ethernet": {}}, {"ipv4": {}}]));
    match config.pointer_mut(pointer) {
        Some(place) => *place = value,
        None => {
            let (parent, key) = pointer.rsplit_once('/').unwrap();
            config.pointer_mut(parent).unwrap()[key] = value;
        }
    }
    config
}

fn read(config: &Value) -> Result<(Plan, Vec<String>), String> {
    validate(config, &LIMITS).map_err(|error| error.errors.join("; "))
}

fn spec(plan: &Plan) -> &FrameSpec {
    match &plan.flows[0].source {
        Source::Frames(spec) => spec,
        Source::Replay(..) => panic!("OTG has no replays"),
    }
}

/// What a field of a flow's header holds.
fn field(plan: &Plan, header: usize, name: &str) -> Option<Pattern> {
    match spec(plan).headers[header].clone().take(name) {
        Some(FieldValue::Pattern(pattern)) => Some(pattern),
        Some(other) => panic!("{other:?}"),
        None => None,
    }
}

fn mac(n: u128) -> u128 {
    0x0200_0000_0000 + n
}

fn v4(n: u128) -> u128 {
    0x0a00_0001 + (n << 8)
}

fn gateway(n: usize) -> Hop {
    Hop::Gateway { interface: n - 1, address: format!("10.0.{n}.254").parse().unwrap() }
}

#[test]
fn addresses_of_a_flow_are_those_of_its_ends() {
    let packet = json!([{"choice": "ethernet", "ethernet": {}}, {"choice": "ipv4", "ipv4": {}}]);
    let (plan, warnings) = read(&config(&["v4-1"], &["v4-3"], packet.clone())).unwrap();
    assert_eq!(warnings, Vec::<String>::new());
    let flow = &plan.flows[0];
    assert_eq!((flow.tx, flow.rx.as_slice(), &flow.hops), (0, &[1][..], &vec![gateway(1)]));
    assert_eq!(field(&plan, 0, "dst"), Some(any_destination()));
    assert_eq!(field(&plan, 0, "src"), Some(Pattern::Value(mac(1))));
    assert_eq!(field(&plan, 1, "src"), Some(Pattern::Value(v4(1))));
    assert_eq!(field(&plan, 1, "dst"), Some(Pattern::Value(v4(3))));
    let interface = &plan.interfaces[0];
    assert_eq!(
        (interface.device.as_str(), interface.name.as_str(), interface.port),
        ("d1", "e1", 0)
    );
    assert_eq!((interface.mac.to_u64().into(), interface.addresses.len()), (mac(1), 2));
    // The ends of several pairs take turns, in step.
    let (plan, _) = read(&config(&["v4-1", "v4-2"], &["v4-3", "v4-4"], packet.clone())).unwrap();
    let turns = |values: [u128; 4]| Some(Pattern::Values(values.to_vec()));
    assert_eq!(field(&plan, 0, "src"), turns([1, 1, 2, 2].map(mac)));
    assert_eq!(field(&plan, 1, "src"), turns([1, 1, 2, 2].map(v4)));
    assert_eq!(field(&plan, 1, "dst"), turns([3, 4, 3, 4].map(v4)));
    assert_eq!(plan.flows[0].hops, [1, 1, 2, 2].map(gateway));
    let mut one_to_one = config(&["v4-1", "v4-2"], &["v4-3", "v4-4"], packet);
    one_to_one["flows"][0]["tx_rx"]["device"]["mode"] = json!("one_to_one");
    let (plan, _) = read(&one_to_one).unwrap();
    assert_eq!(field(&plan, 1, "dst"), Some(Pattern::Values([3, 4].map(v4).to_vec())));
    assert_eq!(plan.flows[0].hops, [1, 2].map(gateway));
}

#[test]
fn tags_leave_a_flow_the_addresses_of_its_ends() {
    let tag = json!([{"name": "from"}]);
    let packet = json!([{"ethernet": {}}, {"ipv4": {"src": {"metric_tags": tag}}}]);
    let mut tagged = config(&["v4-1"], &["v4-3"], packet);
    tagged["flows"][0]["metrics"] = json!({"enable": true});
    let (plan, _) = read(&tagged).unwrap();
    assert_eq!(field(&plan, 1, "src"), Some(Pattern::Value(v4(1))));
    let tags = plan.flows[0].tags.as_ref().unwrap();
    assert_eq!(tags.values(&tags.sent(0)), [Some(v4(1))]);
    // What gateways answer is not known yet.
    let dst = json!({"choice": "auto", "metric_tags": tag});
    let packet = json!([{"ethernet": {"dst": dst}}, {"ipv4": {}}]);
    let error = read(&config(&["v4-1"], &["v4-3"], packet)).unwrap_err();
    assert!(error.contains("flows[0].packet[0].ethernet.dst.metric_tags[0]: not supported for addresses of gateways"), "{error}");
}

#[test]
fn what_a_flow_gives_itself_stays() {
    let value = |value: &str| json!({"choice": "value", "value": value});
    let packet = json!([
        {"ethernet": {"src": value("02:00:00:00:00:77"), "dst": {"choice": "auto", "auto": "00:00:00:00:00:00"}}},
        {"ipv4": {"src": value("1.1.1.1"), "dst": value("2.2.2.2")}},
    ]);
    let (plan, _) = read(&config(&["v4-1"], &["v4-3"], packet)).unwrap();
    assert_eq!(field(&plan, 0, "src"), Some(Pattern::Value(mac(0x77))));
    assert_eq!(field(&plan, 1, "src"), Some(Pattern::Value(0x0101_0101)));
    assert_eq!(field(&plan, 1, "dst"), Some(Pattern::Value(0x0202_0202)));
    assert_eq!(plan.flows[0].hops, [gateway(1)]);
    let packet = json!([{"ethernet": {"dst": value("02:00:00:00:00:78")}}, {"ipv4": {}}]);
    let (plan, _) = read(&config(&["v4-1"], &["v4-3"], packet)).unwrap();
    assert_eq!(field(&plan, 0, "dst"), Some(Pattern::Value(mac(0x78))));
    assert_eq!(plan.flows[0].hops, []);
    // Headers of tunnels have their own addresses.
    let packet = json!([{"ethernet": {}}, {"ipv4": {}}, {"udp": {}}, {"vxlan": {}}, {"ethernet": {}}, {"ipv4": {}}]);
    let (plan, _) = read(&config(&["v4-1"], &["v4-3"], packet)).unwrap();
    assert_eq!((field(&plan, 4, "src"), field(&plan, 5, "src")), (None, None));
}

#[test]
fn an_interface_has_the_address_of_the_packets_kind() {
    let packet = json!([{"ethernet": {}}, {"ipv6": {}}]);
    for (tx, rx) in [("e1", "e3"), ("v6-1", "v6-3")] {
        let (plan, _) = read(&config(&[tx], &[rx], packet.clone())).unwrap();
        let own = 0x2001_0db8_0001_0000_0000_0000_0000_0001;
        assert_eq!(field(&plan, 1, "src"), Some(Pattern::Value(own)));
        let address = "2001:db8:1::fe".parse().unwrap();
        assert_eq!(plan.flows[0].hops, [Hop::Gateway { interface: 0, address }]);
    }
    // Frames without IP go to the other interface.
    let (plan, _) = read(&config(&["e1"], &["e3"], json!([{"ethernet": {}}]))).unwrap();
    assert_eq!(field(&plan, 0, "dst"), Some(Pattern::Value(mac(3))));
    assert_eq!(plan.flows[0].hops, []);
    // An address of the other kind says where frames go, and no more.
    let (plan, _) = read(&config(&["v4-1"], &["v4-3"], packet)).unwrap();
    assert_eq!((field(&plan, 1, "src"), &plan.flows[0].hops), (None, &vec![gateway(1)]));
    let value = json!({"choice": "value", "value": "02:00:00:00:00:99"});
    let (plan, _) =
        read(&with("/devices/0/ethernets/0/ipv4_addresses/0/gateway_mac", value)).unwrap();
    assert_eq!(field(&plan, 0, "dst"), Some(Pattern::Value(mac(0x99))));
    assert_eq!(plan.flows[0].hops, []);
}

#[test]
fn tags_are_those_of_the_interface() {
    let vlans = json!([
        {"name": "outer", "tpid": "x88A8", "priority": 5, "id": 7},
        {"name": "inner"},
    ]);
    let config = with("/devices/0/ethernets/0/vlans", vlans);
    let (plan, warnings) = read(&config).unwrap();
    let tag = |tpid, priority, id| Tag { tpid, priority, id };
    assert_eq!(plan.interfaces[0].tags, [tag(0x88a8, 5, 7), tag(0x8100, 0, 1)]);
    assert_eq!(
        warnings,
        [
            "flows[0].packet: frames have 0 VLAN tags, and ethernet \"e1\", which sends them, has 2: add vlan headers like its vlans"
        ]
    );
    let mut tagged = config;
    tagged["flows"][0]["packet"] =
        json!([{"ethernet": {}}, {"vlan": {}}, {"vlan": {}}, {"ipv4": {}}]);
    let (plan, warnings) = read(&tagged).unwrap();
    assert_eq!((warnings, field(&plan, 3, "src")), (vec![], Some(Pattern::Value(v4(1)))));
    let (_, warnings) = read(&with("/devices/0/ethernets/0/mtu", json!(9000))).unwrap();
    assert!(warnings[0].starts_with("devices[0].ethernets[0].mtu: ignored"), "{warnings:?}");
}

#[test]
fn faults_of_devices_are_named_by_their_paths() {
    let ethernet = "/devices/0/ethernets/0";
    let at = |path: &str, value: Value| with(&format!("{ethernet}/{path}"), value);
    let address = "ipv4_addresses/0";
    for (config, wanted) in [
        (with("/devices/1", json!({})), "devices[1].name: is missing"),
        (
            with("/devices/1/name", json!("d1")),
            "devices[1].name: \"d1\" is at devices[0].name already",
        ),
        (
            with("/devices/1/name", json!("e1")),
            "devices[1].name: \"e1\" is at devices[0].ethernets[0].name",
        ),
        (
            with("/devices/1/bgp", json!({"router_id": "1.1.1.1"})),
            "devices[1].bgp: not supported; devices resolve addresses",
        ),
        (
            with("/devices/1/ipv4_loopbacks", json!([{}])),
            "devices[1].ipv4_loopbacks: not supported",
        ),
        (with("/devices/1/vxlan", json!({})), "devices[1].vxlan: not supported; devices"),
        (with("/devices/1/lacp", json!([{}])), "devices[1].lacp: not supported"),
        (at("dhcpv4_interfaces", json!([{}])), "devices[0].ethernets[0].dhcpv4_interfaces: not"),
        (at("connection", json!(null)), "devices[0].ethernets[0].connection: is missing"),
        (
            at("connection", json!({"choice": "lag_name", "lag_name": "l"})),
            "devices[0].ethernets[0].connection.lag_name: not supported",
        ),
        (
            at("connection/port_name", json!("x")),
            "devices[0].ethernets[0].connection.port_name: there is no port named \"x\"",
        ),
        (at("mac", json!(null)), "devices[0].ethernets[0].mac: is missing"),
        (
            at("mac", json!("01:00:00:00:00:01")),
            "devices[0].ethernets[0].mac: 01:00:00:00:00:01 is not",
        ),
        (
            at("mac", json!("00:00:00:00:00:00")),
            "devices[0].ethernets[0].mac: 00:00:00:00:00:00 is",
        ),
        (at("mtu", json!(70_000)), "devices[0].ethernets[0].mtu: must be a whole number"),
        (
            at("vlans", json!([{"name": "v", "id": 4096}])),
            "devices[0].ethernets[0].vlans[0].id: must be",
        ),
        (
            at("vlans", json!([{"name": "v", "tpid": "x88a8"}])),
            "devices[0].ethernets[0].vlans[0].tpid: \"x88a8\"",
        ),
        (
            at("vlans", json!([{}, {}, {}, {}, {}])),
            "devices[0].ethernets[0].vlans: 5 entries; at most 4",
        ),
        (
            at(&format!("{address}/address"), json!("10.0.1")),
            "devices[0].ethernets[0].ipv4_addresses[0].address: \"10.0.1\" is not",
        ),
        (
            at(&format!("{address}/address"), json!("224.0.0.1")),
            "devices[0].ethernets[0].ipv4_addresses[0].address: 224.0.0.1 is not",
        ),
        (
            at(&format!("{address}/address"), json!("10.0.2.1")),
            "devices[1].ethernets[0].ipv4_addresses[0].address: 10.0.2.1 is at devices[0].ethernets[0].ipv4_addresses[0].address already",
        ),
        (
            at(&format!("{address}/gateway"), json!(null)),
            "devices[0].ethernets[0].ipv4_addresses[0].gateway: is missing",
        ),
        (
            at(&format!("{address}/gateway"), json!("10.0.1.1")),
            "devices[0].ethernets[0].ipv4_addresses[0].gateway: is the interface's own",
        ),
        (
            at(&format!("{address}/prefix"), json!(33)),
            "devices[0].ethernets[0].ipv4_addresses[0].prefix: must be",
        ),
        (
            at(&format!("{address}/gateway_mac"), json!({"choice": "value"})),
            "devices[0].ethernets[0].ipv4_addresses[0].gateway_mac.value: is missing",
        ),
        (
            at("ipv6_addresses/0/gateway", json!("10.0.0.1")),
            "devices[0].ethernets[0].ipv6_addresses[0].gateway: \"10.0.0.1\" is not an IPv6 address",
        ),
        (with("/devices", json!(vec![json!({}); 1025])), "devices: 1025 entries; at most 1024"),
    ] {
        let error = read(&config).map(drop).unwrap_err();
        assert!(error.starts_with(wanted), "{wanted}: {error}");
        // The flow is not blamed for it.
        assert!(!error.contains("flows[0]"), "{error}");
    }
    // A list without entries is none.
    assert!(read(&with("/devices/0/ipv4_loopbacks", json!([]))).is_ok());
    // The same address in another VLAN or on another port is another one.
    let mut config = at(&format!("{address}/address"), json!("10.0.2.1"));
    config["devices"][0]["ethernets"][0]["vlans"] = json!([{"name": "v"}]);
    assert!(read(&config).is_ok());
    assert!(
        read(&with("/devices/2/ethernets/0/ipv4_addresses/0/address", json!("10.0.2.1"))).is_ok()
    );
}

#[test]
fn faults_of_ends_are_named_by_their_paths() {
    let device = |key: &str, value: Value| with(&format!("/flows/0/tx_rx/device/{key}"), value);
    let path = "flows[0].tx_rx.device";
    for (config, wanted) in [
        (
            device("tx_names", json!(["x"])),
            ".tx_names[0]: no device has an ethernet, ipv4_addresses or ipv6_addresses entry named \"x\"",
        ),
        (device("rx_names", json!(["d3"])), ".rx_names[0]: no device has"),
        (device("rx_names", json!([])), ".rx_names: must have at least one name"),
        (device("rx_names", json!(null)), ".rx_names: is missing"),
        (device("rx_names", json!(["v4-3", "v4-1"])), ": the ends of pair 1 are the same"),
        (
            device("tx_names", json!(["v4-1", "v4-4"])),
            ".tx_names[1]: is on another port than the first one",
        ),
        (device("bidirectional", json!(true)), ".bidirectional: not supported"),
        (
            device("mode", json!("ring")),
            ".mode: \"ring\" is not supported; choose mesh, one_to_one",
        ),
    ] {
        let error = read(&config).map(drop).unwrap_err();
        assert!(error.starts_with(&format!("{path}{wanted}")), "{wanted}: {error}");
    }
    let mut config = device("tx_names", json!(["v4-1", "v4-2"]));
    config["flows"][0]["tx_rx"]["device"]["mode"] = json!("one_to_one");
    let error = read(&config).map(drop).unwrap_err();
    assert!(error.contains("needs as many rx_names as tx_names; there are 1 and 2"), "{error}");
    let dhcp = json!([{"ethernet": {}}, {"ipv4": {"src": {"choice": "auto", "auto": {"choice": "dhcp"}}}}]);
    let error = read(&with("/flows/0/packet", dhcp)).map(drop).unwrap_err();
    assert!(
        error.starts_with("flows[0].packet[1].ipv4.src.auto: not supported: addresses by DHCP"),
        "{error}"
    );
}

#[test]
fn devices_may_wait_for_a_request_that_starts_them() {
    let manual = json!({"protocol_options": {"auto_start_all": false}});
    let (plan, warnings) = read(&with("/options", manual.clone())).unwrap();
    assert_eq!((plan.manual_start, warnings), (true, vec![]));
    let (plan, warnings) = read(&json!({"options": manual})).unwrap();
    assert_eq!((plan.manual_start, warnings.len()), (true, 1));
    assert!(warnings[0].starts_with("options.protocol_options.auto_start_all: ignored"));
}

#[test]
fn a_flow_whose_destination_is_not_known_yet_is_known_by_any() {
    // 64 bytes have no room for a mark: header fields tell the two flows apart, and of these only the source address differs.
    let packet = |n: u32| {
        let source = json!({"value": format!("02:00:00:00:00:0{n}")});
        let address = json!({"value": "10.0.0.1"});
        json!([{"ethernet": {"src": source}}, {"vlan": {}}, {"ipv4": {"src": address, "dst": address}}, {"tcp": {}}])
    };
    let mut config = config(&["v4-1"], &["v4-3"], packet(1));
    let mut other = config["flows"][0].clone();
    (other["name"], other["packet"]) = (json!("g"), packet(2));
    config["flows"].as_array_mut().unwrap().push(other);
    for flow in config["flows"].as_array_mut().unwrap() {
        flow["size"] = json!({"choice": "fixed", "fixed": 64});
        flow["metrics"] = json!({"enable": true});
    }
    let (plan, _) = read(&config).unwrap();
    let rules: Vec<_> = plan
        .flows
        .iter()
        .map(|flow| match &flow.source {
            Source::Frames(spec) => {
                let mut known = spec.clone();
                crate::neighbors::set_destinations(
                    &mut known,
                    &[packet::MacAddr([2, 0, 0, 0, 0, 0x99])],
                );
                let mut frames = [Vec::new()];
                packet::writer::FrameWriter::new(&known, 0).unwrap().write(&mut frames, 0, false);
                let [frame] = frames;
                (spec.rule(true), frame)
            }
            Source::Replay(..) => panic!("OTG has no replays"),
        })
        .collect();
    let classifier = packet::classifier::Classifier::new(
        rules.iter().enumerate().map(|(number, (rule, _))| (number as u16, rule.clone())),
    );
    for (number, (_, frame)) in rules.iter().enumerate() {
        assert_eq!(classifier.find(frame, |_| true), Some(number as u16));
    }
}
