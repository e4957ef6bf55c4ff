// SPDX-License-Identifier: BSD-3-Clause
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::*;
use crate::location::Policy;
use crate::otg::config;

const LIMITS: config::Limits =
    config::Limits { locations: Policy::COMMAND_LINE, max_frame: 1518, capture_fcs: true };

/// A capture file of frames of these lengths.
fn capture(path: &Path, lens: &[usize]) {
    let words =
        |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>();
    let mut bytes = words(&[0xa1b2_c3d4, 0x0004_0002, 0, 0, 65_535, 1]);
    for len in lens {
        bytes.extend(words(&[0, 0, *len as u32, *len as u32]));
        bytes.extend(vec![7; *len]);
    }
    fs::write(path, bytes).unwrap();
}

fn option(flow: &str, path: &Path) -> ReplayOption {
    ReplayOption { flow: flow.to_owned(), path: path.to_owned() }
}

fn plan(metrics: bool) -> Plan {
    let flow = |name: &str| -> Value {
        json!({
            "name": name,
            "tx_rx": { "choice": "port", "port": { "tx_name": "p0", "rx_names": ["p0"] } },
            "rate": { "choice": "pps", "pps": 500 },
            "metrics": { "enable": metrics },
        })
    };
    let config = json!({
        "ports": [{ "name": "p0", "location": "null" }],
        "flows": [flow("f0"), flow("f1")],
    });
    config::validate(&config, &LIMITS).unwrap().0
}

#[test]
fn a_flow_sends_the_frames_of_its_file_at_the_rate_of_the_configuration() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("a.pcap");
    capture(&file, &[60, 1514]);
    let replays = Replays::open(&[option("f1", &file)], 1518).unwrap();
    // They were read.
    fs::remove_file(&file).unwrap();
    let mut found = plan(false);
    assert_eq!(replays.put_into(&mut found).unwrap(), Vec::<String>::new());
    assert!(matches!(found.flows[0].source, Source::Frames(_)));
    let Source::Replay(frames, _) = &found.flows[1].source else { panic!("not replayed") };
    assert_eq!((frames.len(), frames.longest()), (2, 1514));
    assert_eq!(found.flows[1].rate, plan(false).flows[1].rate);
}

#[test]
fn flows_that_nobody_knows_again_are_refused_and_names_without_a_flow_are_told() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("a.pcap");
    capture(&file, &[60]);
    let replays = Replays::open(&[option("f1", &file), option("web", &file)], 1518).unwrap();
    let error = replays.put_into(&mut plan(true)).unwrap_err();
    assert_eq!(error.errors.len(), 1, "{error}");
    assert!(error.errors[0].starts_with("flows[1].metrics.enable: "), "{error}");
    let warnings = replays.put_into(&mut plan(false)).unwrap();
    assert_eq!(warnings, ["flows: none is named \"web\", for which --replay has frames"]);
    assert!(replays.put_into(&mut Plan::default()).unwrap().is_empty());
}

#[test]
fn files_that_cannot_be_sent_are_named_with_their_flow() {
    let directory = tempfile::tempdir().unwrap();
    let (long, none) = (directory.path().join("long.pcap"), directory.path().join("none.pcap"));
    capture(&long, &[1515]);
    let error = |options: &[ReplayOption]| Replays::open(options, 1518).unwrap_err().to_string();
    let said = error(&[option("f0", &long)]);
    assert!(
        said.starts_with("--replay f0=") && said.contains("1519 bytes are longer than 1518"),
        "{said}"
    );
    let said = error(&[option("f0", &none)]);
    assert!(
        said.starts_with("--replay f0: ") && said.contains("none.pcap: No such file"),
        "{said}"
    );
    capture(&long, &[60]);
    assert_eq!(error(&[option("f0", &long), option("f0", &long)]), "--replay f0: given twice");
}

#[test]
fn options_are_a_flow_and_a_file() {
    let given: ReplayOption = "f0=/a=b.pcap".parse().unwrap();
    assert_eq!((given.flow.as_str(), given.path.as_path()), ("f0", Path::new("/a=b.pcap")));
    for bad in ["f0", "f0=", "=a.pcap", ""] {
        assert!(bad.parse::<ReplayOption>().is_err(), "{bad:?}");
    }
}
