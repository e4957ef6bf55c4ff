// SPDX-License-Identifier: BSD-3-Clause
//! Runs the examples on frames with known results. A net_pcap port reads frames from a file and
//! writes sent frames to another; a net_ring port returns the frames that it is sent.
#![allow(clippy::unwrap_used, clippy::expect_used)] // A test may.

#[path = "support/built.rs"]
mod built;
#[path = "examples/files.rs"]
mod files;
#[path = "examples/program.rs"]
mod program;

use files::{Frame, read, read_pcapng};
use program::Program;
use serde_json::json;

/// Ten frames from 192.0.2.1, ports 1000 to 1009, to 198.51.100.1, port 53.
fn ten() -> Vec<Frame> {
    (1000..1010).map(|port| Frame::udp([192, 0, 2, 1], port, [198, 51, 100, 1], 53)).collect()
}

#[test]
fn skeleton_forwards_through_a_ring_and_back() {
    let run = Program::new("skeleton", &ten()).vdev("net_ring0").run(&["--packets", "20"]);
    assert_eq!(run.lines, ["port 0: 10 received, 10 sent", "port 1: 10 received, 10 sent"]);
    assert_eq!(read(&run.written), ten());
}

#[test]
fn skeleton_ends_on_a_signal() {
    let mut running = Program::new("skeleton", &ten()).start(&[]);
    running.await_telemetry();
    assert_eq!(running.end(), ["port 0: 10 received, 10 sent"]);
}

#[test]
fn rxtx_callbacks_sees_every_packet() {
    let run = Program::new("rxtx_callbacks", &ten()).run(&["--packets", "10"]);
    assert_eq!(run.lines[0], "10 packets offered to drivers");
    let figures = run.lines[1].strip_prefix("latency: ").unwrap();
    let numbers: Vec<u64> = figures.split(' ').filter_map(|word| word.parse().ok()).collect();
    assert!(numbers[0] > 0 && numbers[1] >= numbers[0], "{figures}");
    assert_eq!(read(&run.written), ten());
}

#[test]
fn flow_table_counts_by_flow() {
    let mut frames = ten();
    frames.extend_from_within(3..5);
    frames.extend_from_within(3..4);
    frames.push(Frame::arp());
    let run = Program::new("flow_table", &frames).run(&["--packets", "14", "--show", "2"]);
    let expected = [
        "10 flows, 1 packets of no flow, 0 for which the table was full",
        "192.0.2.1:1003 > 198.51.100.1:53 protocol 17: 3 packets, 180 bytes",
        "192.0.2.1:1004 > 198.51.100.1:53 protocol 17: 2 packets, 120 bytes",
    ];
    assert_eq!(run.lines, expected);
    assert_eq!(read(&run.written), frames);
}

#[test]
fn firewall_denies_what_its_rules_deny() {
    let dns = ten().remove(0);
    let other_network = Frame::udp([203, 0, 113, 1], 1000, [198, 51, 100, 1], 53);
    let web = Frame::udp([192, 0, 2, 1], 1000, [198, 51, 100, 1], 443);
    let mut fragment = dns.clone();
    fragment.0[21] = 1;
    let mut options = dns.clone();
    options.0[14] = 0x46;
    let frames =
        [dns.clone(), other_network, web.clone(), Frame::arp(), fragment, options, dns.clone()];
    let rules = [
        "--rule",
        "deny,203.0.113.0/24,0.0.0.0/0,any,any",
        "--rule",
        "allow,0.0.0.0/0,198.51.100.0/24,17,50-60",
    ];
    let run = Program::new("firewall", &frames).run(&[&["--packets", "7"], &rules[..]].concat());
    let expected = [
        "deny,203.0.113.0/24,0.0.0.0/0,any,any: 1 packets",
        "allow,0.0.0.0/0,198.51.100.0/24,17,50-60: 2 packets",
        "no rule: 4 packets",
        "2 sent",
    ];
    assert_eq!(run.lines, expected);
    assert_eq!(read(&run.written), [dns.clone(), dns]);
}

#[test]
fn router_takes_the_longest_prefix() {
    let expired = Frame::udp([192, 0, 2, 1], 1, [198, 51, 100, 9], 2).with_ttl(1);
    let mut broken = Frame::udp([192, 0, 2, 1], 1, [198, 51, 100, 9], 2);
    broken.0[24] ^= 1;
    let lost = Frame::udp([192, 0, 2, 1], 1, [203, 0, 113, 1], 2);
    let near = Frame::udp([192, 0, 2, 1], 1, [198, 51, 100, 9], 2);
    let far = Frame::udp([192, 0, 2, 1], 1, [198, 51, 7, 7], 2);
    let frames = [expired, broken, lost, Frame::arp(), near, far];
    let routes = [
        "--route",
        "198.51.0.0/16,0,02:00:00:00:00:16",
        "--route",
        "198.51.100.0/24,0,02:00:00:00:00:24",
    ];
    let run = Program::new("router", &frames).run(&[&["--packets", "6"], &routes[..]].concat());
    let expected = [
        "port 0: 2 sent",
        "not IPv4: 1 dropped",
        "malformed: 1 dropped",
        "without a route: 1 dropped",
        "out of time: 1 dropped",
    ];
    assert_eq!(run.lines, expected);
    let sent = read(&run.written);
    let neighbours: Vec<u8> = sent.iter().map(|frame| frame.0[5]).collect();
    assert_eq!(neighbours, [0x24, 0x16]);
    for frame in &sent {
        assert_eq!((frame.0[22], frame.header_sum()), (63, 0xffff));
    }
}

#[test]
fn capture_writes_all_it_received() {
    let program = Program::new("capture", &ten()).lcores(2);
    let file = program.path("capture.pcapng");
    let run = program.run(&["--packets", "10", "--snap", "42", "--write", file.to_str().unwrap()]);
    assert_eq!(run.lines[0], "10 received");
    assert!(run.lines[1].ends_with(": 10 packets, 0 lost"), "{:?}", run.lines);
    let cut: Vec<_> = ten().into_iter().map(|frame| (60, frame.0[..42].to_vec())).collect();
    assert_eq!(read_pcapng(&file), cut);
}

#[test]
fn rss_polls_a_queue_on_each_lcore() {
    let run =
        Program::without_frames("rss").lcores(2).vdev("net_null0").run(&["--packets", "4000"]);
    assert_eq!(run.lines.len(), 2, "{:?}", run.lines);
    let mut all = 0;
    for (index, line) in run.lines.iter().enumerate() {
        let counts = line.strip_prefix(&format!("lcore {index}: port 0 queue {index}: ")).unwrap();
        let numbers: Vec<u64> = counts.split(' ').filter_map(|word| word.parse().ok()).collect();
        assert_eq!(numbers[0], numbers[1], "{line}");
        all += numbers[0];
    }
    assert!((4000..4000 + 2 * 32).contains(&all), "{:?}", run.lines);
}

#[test]
fn telemetry_answers_while_packets_flow() {
    let mut running = Program::new("telemetry", &ten()).start(&[]);
    let ten = json!({"received": 10, "sent": 10});
    running.await_answer("/example/packets", &json!([ten.clone()]));
    running.await_answer("/example/packets,0", &ten);
    running.await_answer("/example/packets,7", &json!(null));
    assert_eq!(running.end(), ["port 0: 10 received, 10 sent"]);
}

#[test]
fn frames_are_those_that_heads_of_examples_speak_of() {
    let mut frames = ten();
    frames.extend_from_within(3..5);
    frames.extend_from_within(3..4);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("dns.pcap");
    let said = Program::tool("frames").arg(&file).output().unwrap();
    assert!(said.status.success(), "{said:?}");
    let file_says = format!("{}: 13 frames of UDP", file.display());
    assert!(String::from_utf8_lossy(&said.stdout).starts_with(&file_says), "{said:?}");
    // All but the checksum and the payload, which the writer chooses.
    let headers = |frames: &[Frame]| -> Vec<Vec<u8>> {
        frames.iter().map(|frame| [&frame.0[..18], &frame.0[26..40]].concat()).collect()
    };
    let written = read(&file);
    assert_eq!(headers(&written), headers(&frames));
    assert!(written.iter().all(|frame| frame.0.len() == 60 && frame.header_sum() == 0xffff));
}

#[test]
fn devices_ends_well_when_all_came() {
    let run = Program::without_frames("devices").run(&["net_null7", "net_ring7"]);
    assert_eq!(run.lines, ["net_null7: driver net_null", "net_ring7: driver net_ring"]);
    let error = Program::without_frames("devices").fail(&["net_null7", "net_nosuch0"]);
    assert!(error.contains("error: 1 of 2 devices refused"), "{error}");
}

#[test]
fn mistakes_are_named() {
    let wrong = |example: &str, options: &[&str]| Program::new(example, &ten()).fail(options);
    assert!(wrong("skeleton", &["--speed", "9"]).contains("error: there is no option --speed"));
    assert!(wrong("skeleton", &["--packets"]).contains("--packets wants a value"));
    let error = wrong("firewall", &["--rule", "deny,1.2.3.4,0.0.0.0/0,any,any"]);
    assert!(error.contains("--rule deny,1.2.3.4,0.0.0.0/0,any,any: a network is"), "{error}");
    let error = wrong("router", &["--route", "10.0.0.0/8,3,02:00:00:00:00:01"]);
    assert!(error.contains("there is no port 3"), "{error}");
    // Written for people, not in `Debug` format.
    let capture = ["--write", "/nowhere/out.pcapng"];
    assert!(wrong("capture", &capture).contains("error: no lcore beside the main one"));
    let error = Program::new("capture", &ten()).lcores(2).fail(&capture);
    let words = "error: capture file /nowhere/out.pcapng: No such file";
    assert!(error.lines().any(|line| line.starts_with(words)), "{error}");
}
