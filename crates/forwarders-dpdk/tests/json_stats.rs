// SPDX-License-Identifier: BSD-3-Clause
//! `--json-stats`: complete and consistent documents while l2fwd runs and at its end; a path that
//! cannot be written is refused at the start.
#![allow(clippy::unwrap_used, clippy::expect_used)] // A test may.

mod support;

use std::fs;
use std::path::Path;

use serde_json::Value;
use support::{Forwarder, runtime_dir, wait_until};

#[test]
fn statistics_are_written_whole_and_agree() {
    let _cleanup = support::Cleanup;
    for burst in [None, Some("--burst-forwarding")] {
        figures_agree("TERM", burst);
        figures_agree("INT", burst);
    }
    refused();
    a_directory_that_goes_away();
}

fn start(file: &Path, options: &[&str]) -> Forwarder {
    let vdevs = ["net_null0", "net_null1", "net_ring0"].map(String::from);
    let file = file.to_str().unwrap();
    Forwarder::start(
        Path::new(env!("CARGO_BIN_EXE_l2fwd")),
        &vdevs,
        &[&["-p", "7", "-q", "3", "--json-stats", file], options].concat(),
    )
}

/// The document, once there is one. It can be parsed at any time.
fn read(file: &Path) -> Option<Value> {
    let text = fs::read_to_string(file).ok()?;
    Some(serde_json::from_str(&text).expect("half a document"))
}

fn figures_agree(signal: &str, burst: Option<&str>) {
    let dir = runtime_dir().join("stats");
    fs::create_dir(&dir).unwrap();
    let file = dir.join("l2fwd.json");
    fs::write(&file, "{\"schema\": \"of an earlier run\"}").unwrap();
    let mut forwarder = start(&file, &["-T", "1"].into_iter().chain(burst).collect::<Vec<_>>());
    wait_until("second document with packets", || {
        assert!(forwarder.ended().is_none(), "{}", forwarder.err());
        let document = read(&file).unwrap();
        document["state"] == "forwarding" && number(&document["total"]["received"]) > 0
    });
    let status = if signal == "INT" { forwarder.interrupt() } else { forwarder.stop() };
    assert!(status.success(), "{}", forwarder.err());

    let document = read(&file).unwrap();
    assert_eq!(document["schema"], "linerate/l2fwd-stats-1");
    assert_eq!(document["state"], "ended");
    assert!(number(&document["unix_time_ns"]) > 0);
    assert!(number(&document["clock"]["tsc_hz"]) > 0);
    let ports = document["ports"].as_array().unwrap();
    let polling = document["polling"].as_array().unwrap();
    assert_eq!((ports.len(), polling.len()), (3, 3));
    // The null ports forward to each other; the ring port forwards to itself and has received
    // nothing.
    let paths = ports.iter().map(|port| (port["name"].as_str().unwrap(), number(&port["tx_port"])));
    assert!(paths.eq([("net_null0", 1), ("net_null1", 0), ("net_ring0", 2)]));
    for (port, polled) in ports.iter().zip(polling) {
        let ethdev = &port["ethdev"];
        assert_eq!(port["port"], polled["port"]);
        assert_eq!(port["received"], polled["packets"]);
        assert_eq!(port["received"], ethdev["ipackets"]);
        assert_eq!(port["sent"], ethdev["opackets"]);
        let histogram = polled["burst_histogram"].as_array().unwrap();
        assert_eq!(number(&polled["polls"]), histogram.iter().map(number).sum::<u64>());
    }
    for count in ["sent", "received", "dropped"] {
        let sum = ports.iter().map(|port| number(&port[count])).sum::<u64>();
        assert_eq!(number(&document["total"][count]), sum);
    }
    // No frame is on its way at the end.
    let total = &document["total"];
    assert_eq!(number(&total["received"]), number(&total["sent"]) + number(&total["dropped"]));
    // net_null's ports return all mbufs.
    assert_eq!(document["pool"]["name"], "mbuf_pool");
    assert!(number(&document["pool"]["size"]) >= 8192);
    assert_eq!(document["pool"]["in_use"], 0);
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 1, "something beside the file");
    fs::remove_dir_all(dir).unwrap();
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no number"))
}

fn refused() {
    for file in ["/nonexistent/s.json", "/dev/null", "/", ""] {
        let mut forwarder = start(Path::new(file), &["-T", "0"]);
        wait_until("end", || forwarder.ended().is_some());
        assert_eq!(forwarder.ended().unwrap().code(), Some(1));
        let error = forwarder.err();
        assert!(error.contains(&format!("l2fwd: --json-stats {file}: ")), "{error}");
        assert!(!forwarder.out().contains("Port 0"), "it began all the same");
    }
}

/// The final statistics cannot be written: this is reported as a failure, but everything else ends
/// as usual.
fn a_directory_that_goes_away() {
    let dir = runtime_dir().join("gone");
    fs::create_dir(&dir).unwrap();
    let mut forwarder = start(&dir.join("s.json"), &["-T", "0"]);
    wait_until("first document", || dir.join("s.json").exists());
    fs::remove_dir_all(&dir).unwrap();
    assert_eq!(forwarder.stop().code(), Some(1));
    assert!(forwarder.err().contains("l2fwd: --json-stats"), "{}", forwarder.err());
    assert!(forwarder.out().contains("Closing port 2... Done"), "{}", forwarder.out());
}
