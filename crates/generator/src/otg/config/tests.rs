// SPDX-License-Identifier: BSD-3-Clause
//! What snappi writes is understood.

mod hostile;

use super::*;
use crate::location::Vdevs;
use crate::pacing::FrameRate;
use crate::plan::{Duration, Mark, Metrics, Rate, Source, Wait};
use packet::field::Pattern;
use packet::frame::{Checksum, FieldValue, FrameSpec, Header, SignatureSpec};
use packet::headers;
use packet::payload::Payload;
use packet::size::Sizes;
use serde_json::{Value, json};

const LIMITS: Limits =
    Limits { locations: Policy::COMMAND_LINE, max_frame: 1518, capture_fcs: true };

fn known(config: &Value) -> Result<Plan, ApiError> {
    validate(config, &LIMITS).map(|(plan, _)| plan)
}

fn spec(flow: &FlowPlan) -> &FrameSpec {
    match &flow.source {
        Source::Frames(spec) => spec,
        Source::Replay(..) => panic!("OTG has no replays"),
    }
}

/// The published traffic, as snappi 1.62 serialises it.
fn published() -> Value {
    json!({
        "ports": [{"name": "p", "location": "memif:/tmp/s"}, {"name": "q", "location": "memif:/tmp/s,id=1"}],
        "options": {"port_options": {"data_integrity": false, "location_preemption": false}},
        "flows": [{
            "name": "f",
            "tx_rx": {"choice": "port", "port": {"tx_name": "p", "rx_names": ["q"]}},
            "packet": [
                {"choice": "ethernet", "ethernet": {"dst": {"choice": "value", "value": "02:00:00:00:00:01"}, "ether_type": {"choice": "auto", "auto": 65535}}},
                {"choice": "ipv4", "ipv4": {
                    "src": {"choice": "increment", "increment": {"start": "198.18.0.1", "step": "0.0.0.1", "count": 16126}},
                    "dst": {"choice": "values", "values": ["198.19.0.1", "198.19.0.2"]},
                    "header_checksum": {"choice": "generated", "generated": "good"},
                    "options": [],
                    "priority": {"choice": "dscp", "dscp": {"phb": {"choice": "value", "value": 46}}},
                    "total_length": {"choice": "auto", "auto": 46},
                }},
                {"choice": "udp", "udp": {
                    "src_port": {"choice": "increment", "increment": {"start": 10000, "step": 1, "count": 1000}},
                    "dst_port": {"choice": "decrement", "decrement": {"start": 10000, "step": 1, "count": 1000}},
                    "checksum": {"choice": "generated", "generated": "good"},
                    "length": {"choice": "value", "value": 0},
                }},
            ],
            "size": {"choice": "fixed", "fixed": 128},
            "rate": {"choice": "pps", "pps": "1000000"},
            "duration": {"choice": "fixed_seconds", "fixed_seconds": {"seconds": 1.5, "gap": 12, "delay": {"choice": "bytes", "bytes": 0.0}}},
            "metrics": {"enable": true, "loss": true, "timestamps": false, "latency": {"enable": false, "mode": "store_forward"}},
            "payload": {"choice": "fixed", "fixed": {"pattern": "00", "repeat": true}},
        }],
    })
}

fn set(config: &mut Value, path: &str, value: Value) {
    match config.pointer_mut(path) {
        Some(place) => *place = value,
        None => {
            let (parent, key) = path.rsplit_once('/').unwrap();
            config.pointer_mut(parent).unwrap()[key] = value;
        }
    }
}

#[test]
fn the_published_traffic_is_understood() {
    let plan = known(&published()).unwrap();
    let flow = &plan.flows[0];
    assert_eq!((flow.tx, flow.rx.as_slice(), flow.rx_mask()), (0, &[1][..], 2));
    assert_eq!(flow.rate, Rate::Frames(FrameRate::new(1_000_000, 1).unwrap()));
    assert_eq!(flow.duration, Duration::Nanoseconds(1_500_000_000));
    let wanted = Metrics { enable: true, loss: true, ..Metrics::default() };
    assert_eq!((flow.metrics, flow.is_stamped()), (wanted, false));
    let spec = spec(flow);
    assert_eq!(spec.sizes, Sizes::Fixed(128));
    assert_eq!(spec.signature, Some(SignatureSpec::Full { stamped: false, integrity: false }));
    let values = Pattern::Values(vec![0xc613_0001, 0xc613_0002]);
    let ports = Pattern::Decrement { start: 10000, step: 1, count: 1000 };
    let length = Pattern::Value(0);
    let stack = [
        Header::new(&headers::ETHERNET)
            .with("dst", 0x0200_0000_0001)
            .and_then(|header| header.with("ether_type", FieldValue::Auto)),
        Header::new(&headers::IPV4)
            .with("priority.dscp.phb", 46)
            .and_then(|header| header.with("total_length", FieldValue::Auto))
            .and_then(|header| header.with("header_checksum", Checksum::Good))
            .and_then(|header| {
                header.with("src", Pattern::Increment { start: 0xc612_0001, step: 1, count: 16126 })
            })
            .and_then(|header| header.with("dst", values)),
        Header::new(&headers::UDP)
            .with("src_port", Pattern::Increment { start: 10000, step: 1, count: 1000 })
            .and_then(|header| header.with("dst_port", ports))
            .and_then(|header| header.with("length", length))
            .and_then(|header| header.with("checksum", Checksum::Good)),
    ];
    assert_eq!(spec.headers, stack.map(Result::unwrap));
}

#[test]
fn what_is_left_out_has_otg_s_defaults() {
    let plan = known(&json!({
        "ports": [{"name": "p", "location": "lo"}],
        "flows": [{"name": "f", "tx_rx": {"port": {"tx_name": "p"}}}],
    }))
    .unwrap();
    let flow = &plan.flows[0];
    assert_eq!(flow.rate, Rate::Frames(FrameRate::new(1000, 1).unwrap()));
    assert_eq!((flow.duration, flow.delay), (Duration::Continuous, Wait::NONE));
    assert_eq!((flow.rx_mask(), flow.metrics), (u64::MAX, Metrics::default()));
    let ethernet = FrameSpec {
        headers: vec![Header::new(&headers::ETHERNET)],
        sizes: Sizes::Fixed(64),
        payload: Payload::default(),
        signature: None,
    };
    assert_eq!(spec(flow), &ethernet);
    assert_eq!((plan.ports[0].speed_mbps, plan.ports[0].promiscuous), (None, true));
    let nothing = known(&json!({})).unwrap();
    assert!(nothing.ports.is_empty() && nothing.flows.is_empty() && nothing.captures.is_empty());
    assert!(!nothing.integrity && !nothing.loss_duration);
}

#[test]
fn bits_count_on_layer_one() {
    let rate = |value: Value| {
        let mut config = published();
        config["flows"][0]["rate"] = value;
        known(&config).map(|plan| plan.flows[0].rate)
    };
    let gigabit = Rate::Bits { bits: 1_000_000_000, overhead: 20 };
    assert_eq!(rate(json!({"choice": "gbps", "gbps": 1})), Ok(gigabit));
    assert_eq!(rate(json!({"choice": "mbps", "mbps": "1000"})), Ok(gigabit));
    assert_eq!(rate(json!({"choice": "bps", "bps": "1000000000"})), Ok(gigabit));
    assert_eq!(rate(json!({"choice": "bps"})), Ok(gigabit));
    assert_eq!(rate(json!({"choice": "percentage", "percentage": 12.5})), Ok(Rate::Percent(12.5)));
    for bad in [
        json!({"choice": "pps", "pps": 0}),
        json!({"pps": "1000000001"}),
        json!({"choice": "gbps", "gbps": 4_294_967_295u32}),
        json!({"choice": "bps", "bps": "18446744073709551615"}),
        json!({"percentage": 0}),
        json!({"percentage": 100.1}),
    ] {
        assert!(rate(bad.clone()).is_err(), "{bad}");
    }
}

#[test]
fn metrics_decide_on_the_signature() {
    let flow = |metrics: Value, integrity: bool| {
        let mut config = published();
        config["flows"][0]["metrics"] = metrics;
        config["options"]["port_options"]["data_integrity"] = json!(integrity);
        known(&config).map(|plan| (spec(&plan.flows[0]).signature, plan.flows[0].metrics))
    };
    let latency = json!({"enable": true, "latency": {"enable": true, "mode": "cut_through"}});
    let (signature, _) = flow(latency, true).unwrap();
    assert_eq!(signature, Some(SignatureSpec::Full { stamped: true, integrity: true }));
    let off = json!({"enable": false, "latency": {"enable": true}, "timestamps": true});
    assert_eq!(flow(off, true).unwrap().0, None);
    let ratio = |ratio: Value| flow(json!({"enable": true, "rx_tx_ratio": ratio}), false);
    assert_eq!(ratio(json!({"value": 0.5})).unwrap().1.rx_tx_ratio, 0.5);
    assert_eq!(ratio(json!({"choice": "rx_count", "rx_count": {}})).unwrap().1.rx_tx_ratio, 1.0);
    assert!(ratio(json!({"value": 0})).is_err());
    let mut config = published();
    config["flows"][0]["tx_rx"]["port"]["rx_names"] = json!(["q", "p", "q"]);
    config["flows"][0]["metrics"]["rx_tx_ratio"] = json!({"choice": "rx_count"});
    let plan = known(&config).unwrap();
    assert_eq!((&plan.flows[0].rx[..], plan.flows[0].metrics.rx_tx_ratio), (&[0, 1][..], 2.0));
}

/// The mark of a flow of these headers and this size.
fn mark(headers: &str, size: Value, latency: bool, integrity: bool) -> Result<Mark, String> {
    let packet: Vec<Value> = headers.split('/').map(|header| json!({ header: {} })).collect();
    let config = json!({
        "ports": [{"name": "p", "location": "lo"}],
        "flows": [{"name": "f", "tx_rx": {"port": {"tx_name": "p"}}, "packet": packet, "size": size,
            "metrics": {"enable": true, "loss": true, "timestamps": true, "latency": {"enable": latency}}}],
        "options": {"port_options": {"data_integrity": integrity}},
    });
    match validate(&config, &LIMITS) {
        Ok((plan, _)) => Ok(plan.flows[0].mark()),
        Err(error) => Err(error.errors.join("; ")),
    }
}

#[test]
fn the_smallest_frame_decides_on_the_mark() {
    let fixed = |size: usize| json!({"choice": "fixed", "fixed": size});
    for (headers, size, wanted) in [
        ("ethernet/ipv4/udp", 64, Mark::Full),
        ("ethernet/vlan/ipv4/udp", 67, Mark::Short),
        ("ethernet/vlan/ipv4/udp", 68, Mark::Full),
        ("ethernet/vlan/ipv4/udp", 64, Mark::Short),
        ("ethernet/vlan/vlan/ipv4/udp", 64, Mark::Short),
        ("ethernet/ipv4/tcp", 64, Mark::Fields),
        ("ethernet/ipv4/tcp", 65, Mark::Fields),
        ("ethernet/ipv4/tcp", 66, Mark::Short),
        ("ethernet/ipv4/tcp", 75, Mark::Short),
        ("ethernet/ipv4/tcp", 76, Mark::Full),
        ("ethernet/vlan/ipv4/tcp", 64, Mark::Fields),
        ("ethernet/ipv6", 64, Mark::Fields),
        ("ethernet/ipv6/udp", 66, Mark::Fields),
        ("ethernet/ipv6/udp", 74, Mark::Short),
        ("ethernet/ipv6/udp", 84, Mark::Full),
    ] {
        assert_eq!(mark(headers, fixed(size), false, false), Ok(wanted), "{headers} {size}");
        let full = mark(headers, fixed(size), true, false);
        match wanted {
            Mark::Full => assert_eq!(full, Ok(Mark::Full)),
            _ => assert!(full.unwrap_err().contains("18-byte mark that latency needs: ")),
        }
    }
    let mix = |name: &str| json!({"choice": "weight_pairs", "weight_pairs": {"choice": "predefined", "predefined": name}});
    assert_eq!(mark("ethernet/ipv6", mix("ipv6_imix"), false, false), Ok(Mark::Fields));
    assert_eq!(mark("ethernet/vlan/ipv4/udp", mix("imix"), false, false), Ok(Mark::Short));
    let range = json!({"choice": "increment", "increment": {"start": 74, "end": 1518, "step": 1}});
    assert_eq!(mark("ethernet/ipv6/udp", range, false, false), Ok(Mark::Short));
    for (headers, latency, wanted) in [
        ("ethernet/ipv6/udp", false, "headers (62 bytes): 66 bytes or more"),
        (
            "ethernet/ipv4/tcp",
            true,
            "headers (54 bytes) and the 18-byte mark that latency needs: choose 76 bytes or more, or switch latency off",
        ),
    ] {
        let error = mark(headers, fixed(64), latency, false).unwrap_err();
        assert!(error.starts_with("flows[0].size: ") && error.ends_with(wanted), "{error}");
    }
    let error = mark("ethernet/ipv4/udp", fixed(64), false, true).unwrap_err();
    assert!(error.ends_with("and the 22-byte mark that data_integrity needs: choose 68 bytes or more, or switch it off"), "{error}");
    let error = mark("ethernet/ipv4/udp", fixed(64), true, true).unwrap_err();
    assert!(
        error.ends_with(
            "that latency and data_integrity need: choose 68 bytes or more, or switch both off"
        ),
        "{error}"
    );
}

#[test]
fn modes_of_latency_are_warned_of_once() {
    let mut config = published();
    let flow = config["flows"][0].clone();
    let latency = |name: &str, enable: bool, mode: &str| {
        let mut flow = flow.clone();
        flow["name"] = json!(name);
        flow["metrics"] = json!({"enable": enable, "latency": {"enable": true, "mode": mode}});
        flow
    };
    let warnings = |config: &Value| validate(config, &LIMITS).unwrap().1;
    assert_eq!(warnings(&config), [""; 0]);
    config["flows"] = json!([latency("a", true, "cut_through"), latency("b", true, "cut_through")]);
    let one = warnings(&config);
    assert_eq!(one.len(), 1);
    assert!(one[0].starts_with("flows: metrics.latency.mode cut_through: whatever the mode"));
    config["flows"] =
        json!([latency("a", true, "store_forward"), latency("b", true, "cut_through")]);
    assert!(warnings(&config)[0].contains("store_forward and cut_through"));
    config["flows"] = json!([latency("a", false, "cut_through")]);
    assert_eq!(warnings(&config), [""; 0]);
}

#[test]
fn a_size_that_is_not_given_is_the_smallest_with_a_warning() {
    let size = |packet: Value, metrics: bool, integrity: bool| {
        let config = json!({
            "ports": [{"name": "p", "location": "lo"}],
            "flows": [{"name": "f", "tx_rx": {"port": {"tx_name": "p"}}, "packet": packet, "metrics": {"enable": metrics}}],
            "options": {"port_options": {"data_integrity": integrity}},
        });
        let (plan, warnings) = validate(&config, &LIMITS).unwrap();
        (spec(&plan.flows[0]).sizes.clone(), warnings)
    };
    let udp = |ip: &str| json!([{"ethernet": {}}, {ip: {}}, {"udp": {}}]);
    assert_eq!(size(udp("ipv4"), true, false), (Sizes::Fixed(64), vec![]));
    let warned = |(sizes, warnings): (Sizes, Vec<String>), bytes: usize, rest: &str| {
        assert_eq!(sizes, Sizes::Fixed(bytes));
        let wanted = format!(
            "flows[0].size: not given: frames have {bytes} bytes, the smallest size with room for the headers{rest}"
        );
        assert_eq!(warnings, [wanted]);
    };
    warned(size(udp("ipv6"), false, false), 66, "");
    warned(size(udp("ipv6"), true, false), 84, " and the 18-byte mark of flows with metrics");
    warned(size(udp("ipv4"), true, true), 68, " and the 22-byte mark of flows with metrics");
    // Rates in bits are of frames of that size: 84 bytes and 20 on layer 1.
    let mut config = published();
    config["flows"][0]["packet"] = udp("ipv6");
    config["flows"][0]["size"] = Value::Null;
    config["flows"][0]["rate"] = json!({"bps": "832000"});
    let plan = known(&config).unwrap();
    assert_eq!(plan.flows[0].source.mean_with_fcs(), 84.0);
    config["flows"][0]["packet"] = json!([{"custom": {"bytes": "00".repeat(1510)}}]);
    let error = known(&config).unwrap_err().errors;
    assert!(error[0].starts_with("flows[0].size: frames of 1532 bytes are longer"), "{error:?}");
}

#[test]
fn warnings_of_many_flows_are_counted() {
    let flow = |number: usize| json!({"name": number.to_string(), "tx_rx": {"port": {"tx_name": "p"}}, "packet": [{"ipv6": {}}], "metrics": {"enable": true}});
    let flows: Vec<Value> = (0..60).map(flow).collect();
    let config = json!({"ports": [{"name": "p", "location": "lo"}], "flows": flows});
    // An IPv6 header alone leaves room for a mark in 64 bytes; with an Ethernet header it does not.
    let plain = validate(&config, &LIMITS).unwrap().1;
    assert_eq!(plain, [""; 0]);
    let text = config.to_string().replace(r#"{"ipv6":{}}"#, r#"{"ethernet":{}},{"ipv6":{}}"#);
    let config: Value = serde_json::from_str(&text).unwrap();
    let warnings = validate(&config, &LIMITS).unwrap().1;
    assert_eq!((warnings.len(), warnings[50].as_str()), (51, "and 10 more warnings"));
}

#[test]
fn links_captures_and_options_are_taken_over() {
    let mut config = published();
    config["layer1"] = json!([{"name": "l", "port_names": ["q"], "speed": "speed_10_gbps", "promiscuous": false, "mtu": 1500}]);
    config["captures"] =
        json!([{"name": "c", "port_names": ["p", "q"], "overwrite": true, "format": "pcapng"}]);
    config["options"]["flow_options"] = json!({"packet_loss_duration": true});
    let plan = known(&config).unwrap();
    let links = plan.ports.iter().map(|port| (port.speed_mbps, port.promiscuous));
    assert_eq!(links.collect::<Vec<_>>(), [(None, true), (Some(10_000), false)]);
    assert_eq!(plan.captures[0].ports, ["p", "q"]);
    assert!(plan.captures[0].fcs);
    let bare = Limits { capture_fcs: false, ..LIMITS };
    assert!(!validate(&config, &bare).unwrap().0.captures[0].fcs);
    assert!(plan.loss_duration);
}

#[test]
fn any_stack_with_any_payload_is_sent() {
    let mut config = published();
    config["flows"][0]["packet"] = json!([
        {"choice": "ethernet"}, {"choice": "vlan"}, {"choice": "mpls"}, {"choice": "ipv6"}, {"choice": "tcp"},
    ]);
    config["flows"][0]["size"] =
        json!({"choice": "weight_pairs", "weight_pairs": {"custom": [{"size": 256, "weight": 1}]}});
    config["flows"][0]["payload"] =
        json!({"choice": "fixed", "fixed": {"pattern": "dead BEEF", "repeat": false}});
    let plan = known(&config).unwrap();
    let spec = spec(&plan.flows[0]);
    assert_eq!(spec.headers_len(), 14 + 4 + 4 + 40 + 20);
    let wanted = Payload::Fixed { pattern: vec![0xde, 0xad, 0xbe, 0xef], repeat: false };
    assert_eq!(spec.payload, wanted);
    for (word, wanted) in [
        ("increment_byte", Payload::IncrementByte),
        ("decrement_byte", Payload::DecrementByte),
        ("increment_word", Payload::IncrementWord),
        ("decrement_word", Payload::DecrementWord),
    ] {
        config["flows"][0]["payload"] = json!({"choice": word});
        let plan = known(&config).unwrap();
        assert_eq!(super::tests::spec(&plan.flows[0]).payload, wanted);
    }
}

#[test]
fn virtual_devices_are_allowed_by_name() {
    let bad = json!({"ports": [{"name": "p", "location": "vdev:net_pcap0,tx_pcap=/tmp/f"}]});
    let errors = known(&bad).unwrap_err().errors;
    assert!(errors[0].starts_with("ports[0].location: device \"net_pcap0\""), "{errors:?}");
    assert!(errors[0].contains("generator --allow-any-vdev"), "{errors:?}");
    let any = Policy { vdevs: Vdevs::Any, ..Policy::COMMAND_LINE };
    assert!(validate(&bad, &Limits { locations: any, ..LIMITS }).is_ok());
}
