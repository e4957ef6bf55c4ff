// SPDX-License-Identifier: BSD-3-Clause
//! What is wrong, too much or ill-meant is named, and nothing else happens.

use super::*;
use proptest::prelude::*;

fn faults_with(path: &str, value: Value) -> Vec<String> {
    let mut config = published();
    set(&mut config, path, value);
    known(&config).err().map(|error| error.errors).unwrap_or_default()
}

#[test]
fn every_fault_names_its_field() {
    for (path, value, wanted) in [
        ("/lags", json!([{"name": "l"}]), "lags: not supported"),
        ("/devices", json!([{}]), "devices[0].name: is missing"),
        ("/surprise", json!(1), "surprise: not supported"),
        ("/ports/1/name", json!("p"), "ports[1].name: \"p\" is at ports[0].name already"),
        ("/ports/1/name", json!("a,b"), "ports[1].name: must be"),
        (
            "/ports/1/location",
            json!("memif:/tmp/s"),
            "ports[1].location: ports[0] is there already",
        ),
        (
            "/ports/1/location",
            json!("memif:/tmp/s,role=client"),
            "ports[1].location: ports[0] is there already; both ends of a link",
        ),
        ("/ports/0/location", json!("tcp:1"), "ports[0].location: \"tcp\" is no kind of location"),
        ("/ports/0", json!("p"), "ports[0]: must be an object"),
        ("/ports", json!({}), "ports: must be a list"),
        ("/flows/0/name", json!(null), "flows[0].name: is missing"),
        (
            "/flows/0/tx_rx/port/tx_name",
            json!("x"),
            "flows[0].tx_rx.port.tx_name: there is no port named \"x\"",
        ),
        (
            "/flows/0/tx_rx/port/rx_names",
            json!(["q", "y"]),
            "flows[0].tx_rx.port.rx_names[1]: there is no port named \"y\"",
        ),
        (
            "/flows/0/tx_rx/port/rx_name",
            json!("q"),
            "flows[0].tx_rx.port.rx_name: given beside rx_names",
        ),
        (
            "/flows/0/tx_rx",
            json!({"choice": "device", "device": {}}),
            "flows[0].tx_rx.device.tx_names: is missing",
        ),
        (
            "/flows/0/size",
            json!({"choice": "fixed", "fixed": 63}),
            "flows[0].size.fixed: must be a whole number from 64 to 9216",
        ),
        (
            "/flows/0/size",
            json!({"choice": "random", "random": {"max": 9000}}),
            "flows[0].size.random: frames of 9000 bytes are longer than 1518",
        ),
        (
            "/flows/0/duration",
            json!({"choice": "burst", "burst": {"gap": 1}}),
            "flows[0].duration.burst.gap: not supported",
        ),
        (
            "/flows/0/metrics/latency/mode",
            json!("store"),
            "flows[0].metrics.latency.mode: \"store\" is not supported",
        ),
        (
            "/flows/0/metrics/predefined_metric_tags",
            json!({"rx_name": 1}),
            "flows[0].metrics.predefined_metric_tags.rx_name: must be true or false",
        ),
        (
            "/flows/0/metrics/rx_tx_ratio",
            json!({"value": "two"}),
            "flows[0].metrics.rx_tx_ratio.value: must be a number",
        ),
        (
            "/flows/0/payload/fixed/pattern",
            json!("0"),
            "flows[0].payload.fixed.pattern: must be pairs",
        ),
        ("/flows/0/payload/fixed/pattern", json!(""), "flows[0].payload.fixed.pattern: 0 bytes"),
        (
            "/flows/0/packet/1/ipv4/priority",
            json!({"choice": "tos", "tos": {"delay": {"value": 2}}}),
            "flows[0].packet[1].ipv4.priority.tos.delay.value: must be",
        ),
        (
            "/flows/0/packet/1/ipv4/options",
            json!(["router_alert"]),
            "flows[0].packet[1].ipv4.options[0]: must be an object",
        ),
        (
            "/layer1",
            json!([{"name": "l", "port_names": ["p"]}, {"name": "m", "port_names": ["p"]}]),
            "layer1[1].port_names: port \"p\" is in layer1[0] already",
        ),
        (
            "/layer1",
            json!([{"name": "l", "port_names": ["p"]}, {"name": "l", "port_names": ["q"]}]),
            "layer1[1]: \"l\" is at layer1[0] already",
        ),
        ("/layer1", json!([{}]), "layer1[0].name: is missing"),
        (
            "/captures",
            json!([{"name": "l", "port_names": ["p"]}, {"name": "m", "port_names": ["q", "p"]}]),
            "captures[1].port_names: port \"p\" is in captures[0] already",
        ),
        (
            "/captures",
            json!([{"name": "l", "port_names": ["p"]}, {"name": "l", "port_names": ["q"]}]),
            "captures[1]: \"l\" is at captures[0] already",
        ),
        ("/lldp", json!([{"name": "l"}]), "lldp: not supported"),
        ("/events", json!({"cp_events": {}}), "events: not supported"),
        ("/stateful_flows", json!({"rocev2": []}), "stateful_flows: not supported"),
        ("/egress_only_tracking", json!([{}]), "egress_only_tracking: not supported"),
        ("/options/surprise", json!({}), "options.surprise: not supported"),
        ("/flows/0/rate/pps", json!("fast"), "flows[0].rate.pps: must be a whole number"),
        ("/flows/0/rate/bps", json!("1000"), "flows[0].rate.bps: given, but the choice is pps"),
        (
            "/flows/0/duration/fixed_seconds/gap",
            json!(13),
            "flows[0].duration.fixed_seconds.gap: not supported",
        ),
        (
            "/flows/0/duration/fixed_seconds/seconds",
            json!(-1),
            "flows[0].duration.fixed_seconds.seconds: must be",
        ),
        (
            "/flows/0/egress_packet",
            json!([{"rsvp": {}}]),
            "flows[0].egress_packet[0].rsvp: not supported",
        ),
        (
            "/flows/0/packet/0/ethernet/pfc_queue",
            json!({"choice": "value", "value": 3}),
            "flows[0].packet[0].ethernet.pfc_queue.value: 3 is not",
        ),
        (
            "/flows/0/packet/0/ethernet/dst/value",
            json!("1:2"),
            "flows[0].packet[0].ethernet.dst.value: \"1:2\" is not an Ethernet address",
        ),
        (
            "/flows/0/packet/1/ipv4/src/increment/start",
            json!("1.2.3"),
            "flows[0].packet[1].ipv4.src.increment.start: \"1.2.3\" is not",
        ),
        (
            "/flows/0/packet/1/ipv4/src/increment/count",
            json!(0),
            "flows[0].packet[1].ipv4.src.increment.count: must be",
        ),
        (
            "/flows/0/packet/1/ipv4/dst/values",
            json!([]),
            "flows[0].packet[1].ipv4.dst.values: must have",
        ),
        (
            "/flows/0/packet/1/ipv4/time_to_live",
            json!({"choice": "value", "value": 256}),
            "flows[0].packet[1].ipv4.time_to_live.value: must be a whole number from 0 to 255",
        ),
        (
            "/flows/0/packet/2/udp/src_port/increment/start",
            json!(65536),
            "flows[0].packet[2].udp.src_port.increment.start: must be",
        ),
    ] {
        let faults = faults_with(path, value.clone());
        assert!(
            faults.iter().any(|fault| fault.starts_with(wanted)),
            "{path} = {value}: {faults:?}"
        );
    }
}

#[test]
fn all_faults_are_told_at_once() {
    let mut config = published();
    config["flows"][0]["size"]["fixed"] = json!(1);
    config["flows"][0]["rate"]["pps"] = json!(0);
    config["flows"][0]["packet"][2]["udp"]["src_port"] = json!(3);
    assert_eq!(known(&config).unwrap_err().errors.len(), 3);
}

#[test]
fn what_the_writer_cannot_do_is_found_at_once() {
    for (path, value, wanted) in [
        ("/flows/0/size/fixed", json!(64), ""),
        (
            "/flows/0/packet/1",
            json!({"choice": "ipv6"}),
            "flows[0].size: a frame of 64 bytes has no room for ethernet/ipv6/udp headers (62 \
             bytes): 66 bytes or more",
        ),
        (
            "/flows/0/packet/1/ipv4/priority",
            json!({"choice": "tos", "tos": {"delay": {"values": [0, 1]}}}),
            "",
        ),
        (
            "/flows/0/packet/2",
            json!({"choice": "gre", "gre": {"checksum_present": {"values": [0, 1]}}}),
            "flows[0].packet: gre.checksum_present decides how long the header is",
        ),
    ] {
        let mut config = published();
        config["flows"][0]["size"]["fixed"] = json!(64);
        set(&mut config, path, value);
        let errors = known(&config).err().map(|error| error.errors).unwrap_or_default();
        match wanted {
            "" => assert_eq!(errors, [""; 0], "{path}"),
            _ => assert!(errors[0].starts_with(wanted), "{path}: {errors:?}"),
        }
    }
}

#[test]
fn too_much_of_anything_is_refused() {
    let mut config = published();
    let flow = config["flows"][0].clone();
    config["flows"] = Value::Array(vec![flow; 20_000]);
    let error = known(&config).unwrap_err();
    assert_eq!(error.errors, ["flows: 20000 entries; at most 16384 are supported"]);
    let mut config = published();
    let port = config["ports"][0].clone();
    config["ports"] = Value::Array(vec![port; 17]);
    let error = known(&config).unwrap_err();
    assert_eq!(error.errors, ["ports: 17 entries; at most 16 are supported"]);
    let mut config = published();
    config["ports"] = Value::Array(vec![json!(7); 17]);
    config["layer1"] = Value::Array(vec![json!(7); 17]);
    assert_eq!(known(&config).unwrap_err().errors.len(), 2);
    config["ports"] = Value::Array(vec![json!({"a": 1, "b": 2, "c": 3, "d": 4}); 16]);
    assert_eq!(known(&config).unwrap_err().errors.len(), 50, "no more than a reader wants");
}

#[test]
fn larger_frames_need_an_option() {
    let mut config = published();
    config["flows"][0]["size"]["fixed"] = json!(9000);
    let error = known(&config).unwrap_err();
    assert!(error.errors[0].contains("start the generator with --max-frame 9000"), "{error}");
    assert!(validate(&config, &Limits { max_frame: 9000, ..LIMITS }).is_ok());
}

/// Any JSON, small.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-z0-9:.]{0,12}".prop_map(Value::from),
        prop::sample::select(&["value", "choice", "udp", "random", "auto", "p", "::1"][..])
            .prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key(), inner), 0..4).prop_map(Value::from_iter),
        ]
    })
}

fn key() -> impl Strategy<Value = String> {
    prop::sample::select(
        &["choice", "value", "values", "increment", "count", "udp", "size", "fixed", "name", "x"][..],
    )
    .prop_map(str::to_owned)
}

/// All places of a tree.
fn places(value: &Value, path: &str, into: &mut Vec<String>) {
    into.push(path.to_owned());
    match value {
        Value::Array(items) => {
            items
                .iter()
                .enumerate()
                .for_each(|(i, item)| places(item, &format!("{path}/{i}"), into));
        }
        Value::Object(map) => {
            map.iter().for_each(|(key, item)| places(item, &format!("{path}/{key}"), into));
        }
        _ => {}
    }
}

proptest! {
    #[test]
    fn anything_anywhere_is_understood_or_refused(at: prop::sample::Index, value in any_json()) {
        let mut config = published();
        let mut paths = Vec::new();
        places(&config, "", &mut paths);
        let path = at.get(&paths);
        *config.pointer_mut(path).unwrap() = value;
        if let Err(error) = known(&config) {
            prop_assert!(error.status == 400 && (1..=50).contains(&error.errors.len()), "{error}");
        }
    }
}

#[test]
fn few_words_cannot_ask_for_more_memory_than_there_is() {
    let address = json!({"choice": "random", "random": {"count": 65_536}});
    let header = json!({"choice": "ipv6", "ipv6": {"src": address, "dst": address}});
    let with_flows = |count: usize| {
        let flow = |number| {
            json!({"name": format!("f{number}"), "tx_rx": {"port": {"tx_name": "p"}},
                "size": {"fixed": 1518}, "packet": vec![&header; 16]})
        };
        let flows: Vec<Value> = (0..count).map(flow).collect();
        known(&json!({"ports": [{"name": "p", "location": "ring:r"}], "flows": flows}))
    };
    // Each has 2^21 values, all together may have 2^24.
    let error = with_flows(9).unwrap_err();
    assert_eq!(error.errors.len(), 1);
    assert!(error.errors[0].starts_with("flows[8]: the flows up to this one have more than"));
    assert!(with_flows(1).is_ok());
    let tags: Vec<Value> = (0..16).map(|n| json!({"name": format!("t{n}"), "length": 1})).collect();
    let port = json!({"choice": "random", "random": {"count": 65_536}, "metric_tags": tags});
    let flow = |number| json!({"name": format!("f{number}"), "tx_rx": {"port": {"tx_name": "p"}}, "packet": [{"udp": {"src_port": port}}]});
    let tagged = |count: usize| {
        let flows: Vec<Value> = (0..count).map(flow).collect();
        known(&json!({"ports": [{"name": "p", "location": "ring:r"}], "flows": flows}))
    };
    let error = tagged(16).unwrap_err();
    assert!(error.errors[0].starts_with("flows[15].packet: the values of fields with metric_tags"));
    assert!(tagged(1).is_ok());
}
