// SPDX-License-Identifier: BSD-3-Clause
use serde_json::{Value, json};

use super::*;
use crate::location::Policy;
use crate::otg::config::{self, Limits};

const LIMITS: Limits =
    Limits { locations: Policy::COMMAND_LINE, max_frame: 1518, capture_fcs: true };

/// A flow of 64 bytes of TCP, with these fields of its headers and these receiving ports.
fn tcp(name: &str, fields: [Value; 3], rx: &[&str]) -> Value {
    let [ethernet, ipv4, tcp] = fields;
    json!({"name": name, "tx_rx": {"port": {"tx_name": "p", "rx_names": rx}},
        "packet": [{"ethernet": ethernet}, {"ipv4": ipv4}, {"tcp": tcp}],
        "size": {"fixed": 64}, "metrics": {"enable": true, "loss": true}})
}

fn plain(name: &str) -> Value {
    tcp(name, [json!({}), json!({}), json!({})], &[])
}

fn plan(flows: &[Value]) -> Plan {
    let config = json!({"ports": [{"name": "p", "location": "lo"}, {"name": "q", "location": "null"}], "flows": flows});
    config::validate(&config, &LIMITS).unwrap().0
}

fn told(flows: &[Value]) -> Result<Vec<String>, String> {
    marks(&plan(flows)).map(|marks| marks.warnings).map_err(|error| error.errors.join("\n"))
}

fn value(value: impl Into<Value>) -> Value {
    json!({"choice": "value", "value": value.into()})
}

#[test]
fn flows_without_a_full_mark_are_told() {
    assert_eq!(
        told(&[plain("f")]),
        Ok(vec![
            "flow \"f\": 64 bytes have no room for the 18-byte mark; header fields tell loss, but no order, duplicates or latency"
                .to_owned()
        ])
    );
    let mut short = plain("s");
    short["size"]["fixed"] = json!(66);
    assert_eq!(
        told(&[short]),
        Ok(vec![
            "flow \"s\": 66 bytes have no room for the 18-byte mark; the 8-byte mark tells loss, order and duplicates, but no latency"
                .to_owned()
        ])
    );
    let mut full = plain("f");
    full["size"]["fixed"] = json!(76);
    assert_eq!(told(&[full]), Ok(vec![]));
    let many: Vec<Value> = (0..60)
        .map(|i| tcp(&i.to_string(), [json!({}), json!({}), json!({"dst_port": value(i)})], &[]))
        .collect();
    let warnings = told(&many).unwrap();
    assert_eq!(
        (warnings.len(), warnings[50].as_str()),
        (51, "and 10 more flows without the full mark")
    );
}

#[test]
fn flows_that_are_alike_are_refused_by_name() {
    let error = told(&[plain("a"), plain("b")]).unwrap_err();
    assert_eq!(
        error,
        "flows[1].packet: frames of flow \"b\" cannot be told from those of flow \"a\": frames of 64 bytes have no room for a mark, \
         and every header field can have the same value in both. Give a field (an address, a port number, a VLAN ID) \
         different values or ranges in the two flows, or give them different rx_names, or \"b\" frames of 66 bytes or more"
    );
    // A mark in one of them is enough.
    let mut marked = plain("b");
    marked["size"]["fixed"] = json!(66);
    assert_eq!(told(&[plain("a"), marked]).map(|warnings| warnings.len()), Ok(2));
    // Frames of a flow without metrics have none.
    let mut bare = plain("b");
    bare["metrics"]["enable"] = json!(false);
    bare["size"]["fixed"] = json!(600);
    let error = told(&[bare.clone(), plain("a")]).unwrap_err();
    assert!(error.contains("(flow \"b\" has no metrics, and so no mark)"), "{error}");
    let mut other = bare.clone();
    other["name"] = json!("c");
    // Flows that nobody counts need not be told apart.
    assert_eq!(told(&[bare, other]), Ok(vec![]));
    // Many are told of at once, and not all.
    let alike: Vec<Value> = (0..40).map(|i| plain(&i.to_string())).collect();
    assert_eq!(told(&alike).unwrap_err().lines().count(), 50);
}

#[test]
fn a_field_or_a_port_tells_flows_apart() {
    let with = |fields| tcp("b", fields, &[]);
    for fields in [
        [json!({}), json!({"src": value("1.2.3.4")}), json!({})],
        [json!({}), json!({"identification": value(7)}), json!({})],
        [json!({}), json!({}), json!({"seq_num": value(7)})],
        [
            json!({}),
            json!({}),
            json!({"dst_port": {"choice": "increment", "increment": {"start": 256, "step": 1, "count": 256}}}),
        ],
    ] {
        let warnings = told(&[plain("a"), with(fields)]).unwrap();
        assert!(!warnings[0].contains("MAC"), "{warnings:?}");
    }
    // Of those that some devices rewrite only if there is no other.
    for fields in [
        [json!({"dst": value("02:00:00:00:00:01")}), json!({}), json!({})],
        [json!({}), json!({"priority": {"choice": "raw", "raw": value(64)}}), json!({})],
    ] {
        let warnings = told(&[plain("a"), with(fields)]).unwrap();
        assert!(warnings.iter().all(|warning| {
            warning.contains("header fields, MAC addresses, priorities, MPLS labels and destinations before segments among them")
        }));
    }
    for fields in [
        [json!({}), json!({"time_to_live": value(7)}), json!({})],
        [json!({}), json!({}), json!({"checksum": {"choice": "custom", "custom": 7}})],
        [
            json!({}),
            json!({}),
            json!({"dst_port": {"choice": "increment", "increment": {"start": 0, "step": 1, "count": 256}}}),
        ],
    ] {
        assert!(told(&[plain("a"), with(fields)]).is_err());
    }
    let at = |name: &str, rx: &[&str]| tcp(name, [json!({}), json!({}), json!({})], rx);
    assert!(told(&[at("a", &["p"]), at("b", &["q"])]).is_ok());
    assert!(told(&[at("a", &["p"]), at("b", &["p", "q"])]).is_err());
    assert!(told(&[at("a", &["p"]), at("b", &[])]).is_err());
}

/// Destination ports from `start` on, `count` of them.
fn ports(name: &str, start: u32, count: u32) -> Value {
    let ports =
        json!({"choice": "increment", "increment": {"start": start, "step": 1, "count": count}});
    tcp(name, [json!({}), json!({}), json!({"dst_port": ports})], &[])
}

#[test]
fn ranges_tell_flows_apart() {
    assert!(told(&[ports("a", 1000, 1000), ports("b", 2000, 1000)]).is_ok());
    let error = told(&[ports("a", 1000, 1000), ports("b", 1999, 1000)]).unwrap_err();
    assert!(error.starts_with("flows[1].packet: frames of flow \"b\" cannot"), "{error}");
    let port = |number| tcp("b", [json!({}), json!({}), json!({"dst_port": value(number)})], &[]);
    assert!(told(&[ports("a", 1000, 1000), port(2000)]).is_ok());
    assert!(told(&[ports("a", 1000, 1000), port(1500)]).is_err());
    let many: Vec<Value> = (0..1024).map(|i| ports(&i.to_string(), 60 * i, 60)).collect();
    assert!(told(&many).is_ok());
}

#[test]
fn fields_come_first_where_no_frame_with_a_short_mark_has_them() {
    let sized = |mut flow: Value, size: u32| {
        flow["size"]["fixed"] = json!(size);
        flow
    };
    let mut bare = ports("bare", 3000, 10);
    bare["metrics"]["enable"] = json!(false);
    let flows =
        [sized(ports("short", 1000, 10), 66), ports("a", 2000, 10), bare, ports("b", 1005, 10)];
    let plan = plan(&flows);
    let found = marks(&plan).unwrap();
    for (index, flow) in plan.flows.iter().enumerate() {
        let Source::Frames(spec) = &flow.source else { panic!() };
        let mut frames = vec![Vec::new(); 10];
        packet::writer::FrameWriter::new(spec, 0).unwrap().write(&mut frames, 0, false);
        for frame in frames {
            let number = Some(index as u16);
            let distinct = if [1, 2].contains(&index) { number } else { None };
            assert_eq!(found.distinct.find(&frame, |_| true), distinct);
            let counted = [1, 3].contains(&index);
            // Ports 1005 to 1009 are of both, and the mark comes first there.
            if index > 0 {
                let number = if counted { number } else { None };
                assert_eq!(found.classifier.find(&frame, |_| true), number);
            }
        }
    }
}

#[test]
fn frames_of_a_file_must_not_fit() {
    use crate::plan::Rate;
    use crate::replay::{Frames, Limits, Timing};
    use packet::writer::FrameWriter;

    let flow = plan(&[plain("a")]).flows.remove(0);
    let Source::Frames(spec) = &flow.source else { panic!() };
    let mut frames = vec![Vec::new(); 2];
    FrameWriter::new(spec, 0).unwrap().write(&mut frames, 0, false);
    let file = |frames: &[Vec<u8>]| {
        let path = std::env::temp_dir().join(format!("marks-{}.pcap", std::process::id()));
        let mut bytes: Vec<u8> = [0xa1b2_c3d4u32, 0x0002_0004, 0, 0, 65535, 1]
            .iter()
            .flat_map(|word| word.to_ne_bytes())
            .collect();
        if cfg!(target_endian = "little") {
            bytes[4..8].copy_from_slice(&[2, 0, 4, 0]);
        }
        for frame in frames {
            for word in [1, 0, frame.len() as u32, frame.len() as u32] {
                bytes.extend(word.to_ne_bytes());
            }
            bytes.extend(frame);
        }
        std::fs::write(&path, bytes).unwrap();
        let read = Frames::open(&path, Limits::default());
        std::fs::remove_file(&path).unwrap();
        Source::Replay(read.unwrap(), Timing::Own)
    };
    let told = |frames: &[Vec<u8>], rx: Vec<usize>| {
        let replay = FlowPlan {
            name: "r".to_owned(),
            rx,
            source: file(frames),
            rate: Rate::Own,
            metrics: Default::default(),
            ..flow.clone()
        };
        let plan = Plan { flows: vec![flow.clone(), replay], ..Plan::default() };
        marks(&plan).map(drop).map_err(|error| error.errors.join("\n"))
    };
    assert_eq!(told(&[vec![0; 60], vec![1; 60]], vec![]), Ok(()));
    let error = told(&[vec![0; 60], frames[0].clone()], vec![]).unwrap_err();
    let wanted = "flows[1]: frame 2 of the file of flow \"r\" cannot be told from the frames of flow \"a\", which are known by their header fields";
    assert!(error.starts_with(wanted), "{error}");
}
