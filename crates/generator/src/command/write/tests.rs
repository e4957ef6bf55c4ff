// SPDX-License-Identifier: BSD-3-Clause
use std::path::Path;

use serde_json::json;

use super::*;
use crate::command::flow::FlowSpec;
use crate::command::job::{Defaults, Job, job};
use crate::command::port::PortSpec;
use crate::command::quantity::Span;
use crate::location::Policy;
use crate::otg::config;
use crate::replay::Frames;

fn planned(ports: &[&str], flows: &[&str], duration: Span) -> Job {
    let ports: Vec<PortSpec> = ports.iter().map(|port| port.parse().unwrap()).collect();
    let flows: Vec<FlowSpec> = flows.iter().map(|flow| flow.parse().unwrap()).collect();
    let defaults = Defaults { rate: None, duration: Some(duration), size: json!({ "fixed": 64 }) };
    let limits =
        config::Limits { locations: Policy::COMMAND_LINE, max_frame: 1518, capture_fcs: true };
    job(&ports, &flows, &[], 1 << 20, &defaults, &limits).unwrap()
}

fn spec(directory: &Path, port: &str) -> WriteSpec {
    WriteSpec { port: port.to_owned(), path: directory.join(format!("{port}.pcap")) }
}

fn read(spec: &WriteSpec) -> Frames {
    Frames::open(&spec.path, Limits::default()).unwrap()
}

#[test]
fn flows_are_merged_by_their_slots() {
    let directory = tempfile::tempdir().unwrap();
    let job = planned(
        &["a=ring:a", "b=ring:b"],
        &[
            "from=a,rate=3kpps,size=64,udp.dst_port=1000+3,latency=off",
            "from=a,rate=1kpps,size=128,latency=off",
            "from=b,rate=1kpps",
        ],
        Span::Nanoseconds(10_000_000),
    );
    let specs = [spec(directory.path(), "a"), spec(directory.path(), "b")];
    assert_eq!(write(&job.plan, &specs, None, None).unwrap(), [40, 10]);
    let frames = read(&specs[0]);
    assert_eq!(frames.len(), 40);
    let lens: Vec<usize> = (0..40).map(|i| frames.get(i).unwrap().len()).collect();
    assert_eq!(lens.iter().filter(|len| **len == 124).count(), 10);
    assert_eq!(frames.out_of_order(), 0);
    assert!(frames.span() < 10_000_000);
    let ports: Vec<&[u8]> = (0..40)
        .filter_map(|i| frames.get(i))
        .filter(|frame| frame.len() == 60)
        .take(4)
        .map(|frame| &frame[36..38])
        .collect();
    assert_eq!(ports, [[3, 232], [3, 233], [3, 234], [3, 232]]);
}

#[test]
fn a_file_comes_out_as_it_went_in() {
    let directory = tempfile::tempdir().unwrap();
    let (first, again) = (spec(directory.path(), "p0"), directory.path().join("again.pcap"));
    let made = planned(&["null"], &["size=imix,burst=4,gap=7us,bursts=5"], Span::Continuous);
    write(&made.plan, std::slice::from_ref(&first), None, None).unwrap();
    let flow = format!("pcap={},speed=own,loops=1", first.path.display());
    let replayed = planned(&["null"], &[&flow], Span::Continuous);
    let second = WriteSpec { port: "p0".to_owned(), path: again };
    assert_eq!(write(&replayed.plan, std::slice::from_ref(&second), None, None).unwrap(), [20]);
    assert_eq!(std::fs::read(&first.path).unwrap(), std::fs::read(&second.path).unwrap());
}

#[test]
fn what_cannot_be_written_is_told_and_leaves_no_file() {
    let directory = tempfile::tempdir().unwrap();
    let own = spec(directory.path(), "p0");
    let endless = planned(&["null"], &["name=web"], Span::Continuous);
    let error =
        write(&endless.plan, std::slice::from_ref(&own), None, None).unwrap_err().to_string();
    assert!(error.contains("\"web\" has no end"), "{error}");
    let cut = write(&endless.plan, std::slice::from_ref(&own), None, Some(7));
    assert_eq!(cut.unwrap(), [7]);
    std::fs::remove_file(&own.path).unwrap();
    let job = planned(&["ring:a", "ring:b"], &["from=p0"], Span::Frames(3));
    let error = write(&job.plan, &[own.clone(), spec(directory.path(), "p1")], None, None);
    assert!(error.unwrap_err().to_string().contains("--write p1: no flow"));
    let error = write(&job.plan, &[own.clone(), spec(directory.path(), "x")], None, None);
    assert!(error.unwrap_err().to_string().contains("the ports are p0, p1"));
    let twice = [own.clone(), WriteSpec { path: directory.path().join("b.pcap"), ..own.clone() }];
    let error = write(&job.plan, &twice, None, None).unwrap_err().to_string();
    assert!(error.contains("given twice"), "{error}");
    let many = planned(&["null"], &["name=x"], Span::Frames(5 << 20));
    let error = write(&many.plan, std::slice::from_ref(&own), None, None).unwrap_err().to_string();
    assert!(error.contains("more than"), "{error}");
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    for bad in ["p0", "p0=frames.pcapng", "p0=frames"] {
        assert!(bad.parse::<WriteSpec>().unwrap_err().to_string().contains("write"));
    }
}

#[test]
fn a_configuration_without_an_end_is_refused() {
    let limits =
        config::Limits { locations: Policy::COMMAND_LINE, max_frame: 1518, capture_fcs: true };
    let error = read_plan(Path::new("/dev/zero"), &limits).unwrap_err().to_string();
    assert_eq!(error, "/dev/zero: a device, not a regular file");
}
