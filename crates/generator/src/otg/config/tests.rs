// SPDX-License-Identifier: BSD-3-Clause
//! What snappi writes is understood; what is wrong is named.

use super::*;
use crate::pacing::FrameRate;
use crate::plan::{Duration, Rate};
use packet::field::Pattern;
use serde_json::{Value, json};

fn known(config: &Value) -> Result<Plan, ApiError> {
    validate(config, Vdevs::Known)
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

fn faults_with(path: &str, value: Value) -> Vec<String> {
    let mut config = published();
    match config.pointer_mut(path) {
        Some(place) => *place = value,
        None => {
            let (parent, key) = path.rsplit_once('/').unwrap();
            config
                .pointer_mut(parent)
                .unwrap()
                .as_object_mut()
                .unwrap()
                .insert(key.to_owned(), value);
        }
    }
    known(&config).err().map(|error| error.errors).unwrap_or_default()
}

#[test]
fn the_published_traffic_is_understood() {
    let plan = known(&published()).unwrap();
    let flow = &plan.flows[0];
    assert_eq!((flow.tx, flow.rx.as_slice(), flow.rx_mask()), (0, &[1][..], 2));
    assert_eq!(flow.rate, Rate::Frames(FrameRate::new(1_000_000, 1).unwrap()));
    assert_eq!(flow.duration, Duration::Nanoseconds(1_500_000_000));
    assert!(flow.metrics && flow.loss);
    assert_eq!((flow.frame.len_with_fcs, flow.frame.tos, flow.frame.ttl), (128, 184, 64));
    assert_eq!(flow.frame.mac_destination, Pattern::Value(0x0200_0000_0001));
    assert_eq!(
        flow.frame.ip_source,
        Pattern::Increment { start: 0xc612_0001, step: 1, count: 16126 }
    );
    assert_eq!(flow.frame.ip_destination, Pattern::Values(vec![0xc613_0001, 0xc613_0002]));
    assert_eq!(
        flow.frame.port_destination,
        Pattern::Decrement { start: 10000, step: 1, count: 1000 }
    );
}

#[test]
fn what_is_left_out_has_otg_s_defaults() {
    let plan = known(&json!({
        "ports": [{"name": "p", "location": "lo"}],
        "flows": [{"name": "f", "tx_rx": {"port": {"tx_name": "p"}}, "packet": [{"choice": "ethernet"}, {"ipv4": {}}, {"choice": "udp", "udp": {}}]}],
    }))
    .unwrap();
    let flow = &plan.flows[0];
    assert_eq!(flow.rate, Rate::Frames(FrameRate::new(1000, 1).unwrap()));
    assert_eq!(
        (flow.duration, flow.rx_mask(), flow.metrics),
        (Duration::Continuous, u64::MAX, false)
    );
    assert_eq!(flow.frame, packet::template::UdpFrame::default());
    assert_eq!(known(&json!({})).unwrap(), Plan::default());
}

#[test]
fn bits_count_on_layer_one() {
    let rate = |value: Value| {
        let mut config = published();
        config["flows"][0]["rate"] = value;
        known(&config).map(|plan| plan.flows[0].rate)
    };
    let gigabit = Rate::Frames(FrameRate::new(1_000_000_000, 148 * 8).unwrap());
    assert_eq!(rate(json!({"choice": "gbps", "gbps": 1})), Ok(gigabit));
    assert_eq!(rate(json!({"choice": "mbps", "mbps": "1000"})), Ok(gigabit));
    assert_eq!(rate(json!({"choice": "bps", "bps": "1000000000"})), Ok(gigabit));
    assert_eq!(rate(json!({"choice": "percentage", "percentage": 12.5})), Ok(Rate::Percent(12.5)));
    for bad in [
        json!({"choice": "pps", "pps": 0}),
        json!({"pps": "1000000001"}),
        json!({"choice": "gbps", "gbps": 4_294_967_295u32}),
        json!({"percentage": 0}),
    ] {
        assert!(rate(bad.clone()).is_err(), "{bad}");
    }
}

#[test]
fn every_fault_names_its_field() {
    for (path, value, wanted) in [
        ("/lags", json!([{"name": "l"}]), "lags: not supported"),
        ("/devices", json!([{}]), "devices: not supported"),
        ("/surprise", json!(1), "surprise: not supported"),
        ("/ports/1/name", json!("p"), "ports[1].name: \"p\" is the name at ports[0].name already"),
        ("/ports/1/name", json!("a,b"), "ports[1].name: must be"),
        (
            "/ports/1/location",
            json!("memif:/tmp/s"),
            "ports[1]: location: ports[0] is there already",
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
            "flows[0].tx_rx.device: not supported",
        ),
        (
            "/flows/0/size/fixed",
            json!(63),
            "flows[0].size.fixed: must be a whole number from 64 to 1518",
        ),
        (
            "/flows/0/size",
            json!({"choice": "random", "random": {}}),
            "flows[0].size.random: not supported",
        ),
        ("/flows/0/rate/pps", json!("fast"), "flows[0].rate.pps: must be a whole number"),
        ("/flows/0/rate/bps", json!("1000"), "flows[0].rate.bps: given, but the choice is pps"),
        (
            "/flows/0/duration",
            json!({"choice": "burst", "burst": {}}),
            "flows[0].duration.burst: not supported",
        ),
        (
            "/flows/0/duration/fixed_seconds/gap",
            json!(13),
            "flows[0].duration.fixed_seconds.gap: not supported",
        ),
        (
            "/flows/0/duration/fixed_seconds/delay/bytes",
            json!(1.0),
            "flows[0].duration.fixed_seconds.delay.bytes: not supported",
        ),
        (
            "/flows/0/duration/fixed_seconds/seconds",
            json!(-1),
            "flows[0].duration.fixed_seconds.seconds: must be",
        ),
        ("/flows/0/metrics/timestamps", json!(true), "flows[0].metrics.timestamps: not supported"),
        (
            "/flows/0/metrics/latency/enable",
            json!(true),
            "flows[0].metrics.latency.enable: not supported",
        ),
        (
            "/flows/0/payload/fixed/pattern",
            json!("ab"),
            "flows[0].payload.fixed.pattern: not supported",
        ),
        ("/flows/0/egress_packet", json!([{}]), "flows[0].egress_packet: not supported"),
        ("/flows/0/packet", json!([]), "flows[0].packet: the headers must be"),
        (
            "/flows/0/packet/2",
            json!({"choice": "tcp", "tcp": {}}),
            "flows[0].packet[2].tcp: not supported",
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
            "/flows/0/packet/1/ipv4/src",
            json!({"choice": "random", "random": {}}),
            "flows[0].packet[1].ipv4.src.random: not supported",
        ),
        (
            "/flows/0/packet/1/ipv4/dst/values",
            json!([]),
            "flows[0].packet[1].ipv4.dst.values: must have",
        ),
        (
            "/flows/0/packet/1/ipv4/options",
            json!([{"choice": "router_alert"}]),
            "flows[0].packet[1].ipv4.options: not supported",
        ),
        (
            "/flows/0/packet/1/ipv4/total_length",
            json!({"choice": "value", "value": 9}),
            "flows[0].packet[1].ipv4.total_length.value: 9 is not",
        ),
        (
            "/flows/0/packet/1/ipv4/time_to_live",
            json!({"choice": "value", "value": 256}),
            "flows[0].packet[1].ipv4.time_to_live: must be at most 255",
        ),
        (
            "/flows/0/packet/1/ipv4/header_checksum",
            json!({"choice": "custom", "custom": 1}),
            "flows[0].packet[1].ipv4.header_checksum.custom: not",
        ),
        (
            "/flows/0/packet/2/udp/checksum/generated",
            json!("bad"),
            "flows[0].packet[2].udp.checksum.generated: \"bad\" is not supported",
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
fn too_many_flows_and_extra_headers_are_refused() {
    let mut config = published();
    let flow = config["flows"][0].clone();
    config["flows"] = Value::Array(vec![flow; 10_000]);
    assert!(known(&config).unwrap_err().errors[0].starts_with("flows: 10000 flows; at most"));
    let mut config = published();
    config["flows"][0]["packet"]
        .as_array_mut()
        .unwrap()
        .push(json!({"choice": "vxlan", "vxlan": {}}));
    assert!(
        known(&config).unwrap_err().errors[0]
            .starts_with("flows[0].packet[3].vxlan: not supported")
    );
}

#[test]
fn virtual_devices_are_allowed_by_name() {
    let bad = json!({"ports": [{"name": "p", "location": "vdev:net_pcap0,tx_pcap=/tmp/f"}]});
    let errors = known(&bad).unwrap_err().errors;
    assert!(errors[0].starts_with("ports[0].location: device \"net_pcap0\""), "{errors:?}");
    assert!(errors[0].contains("generator --allow-any-vdev"), "{errors:?}");
    assert!(validate(&bad, Vdevs::Any).is_ok());
}
