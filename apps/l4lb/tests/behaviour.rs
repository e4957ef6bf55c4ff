// SPDX-License-Identifier: BSD-3-Clause
//! What README.md promises beside the packets: full tables, connections that are forgotten, captures, telemetry, configurations with
//! an error, the end. One test, because DPDK starts once in a process.
#![allow(clippy::unwrap_used)] // A test may.

mod support;

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketType, connect, recv, send, socket,
};
use support::{Balancer, PATIENCE, eal, last_frame, pool, ports, prefix, start};

/// Asks a running program by DPDK's telemetry.
fn ask(number: usize, command: &str) -> serde_json::Value {
    let path = host::runtime_directory().join(prefix(number)).join("dpdk_telemetry.v2");
    let client = socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
    connect(&client, &SocketAddrUnix::new(&path).unwrap()).unwrap();
    let mut answer = vec![0; 1 << 16];
    recv(&client, &mut answer[..], RecvFlags::empty()).unwrap(); // who it is
    send(&client, command.as_bytes(), SendFlags::empty()).unwrap();
    let (len, _) = recv(&client, &mut answer[..], RecvFlags::empty()).unwrap();
    serde_json::from_slice(&answer[..len]).unwrap()
}

/// Waits until `done`; doing it again and again may be part of it.
fn until(what: &str, mut done: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !done() {
        assert!(Instant::now() < end, "not within {PATIENCE:?}: {what}");
        std::thread::yield_now();
    }
}

/// The enhanced packet blocks of a pcapng file, up to a block that is not whole yet: whether each was received or sent, and its length.
fn packets(file: &Path) -> Vec<(u32, usize)> {
    let bytes = fs::read(file).unwrap_or_default();
    let word = |at: usize| {
        bytes.get(at..at + 4).map(|bytes| u32::from_le_bytes(bytes.try_into().unwrap()))
    };
    let (mut at, mut found) = (0, Vec::new());
    while let (Some(kind), Some(len)) = (word(at), word(at + 4)) {
        let len = len as usize;
        if len == 0 || at + len > bytes.len() {
            break;
        }
        if kind == 6 {
            let captured = word(at + 20).unwrap() as usize;
            let mut option = at + 28 + captured.next_multiple_of(4);
            while let Some(head) = word(option) {
                let (code, size) = (head & 0xffff, (head >> 16) as usize);
                if code == 2 {
                    // epb_flags: 1 is inbound, 2 outbound.
                    found.push((word(option + 4).unwrap() & 3, captured));
                }
                if code == 0 {
                    break;
                }
                option += 4 + size.next_multiple_of(4);
            }
        }
        at += len;
    }
    found
}

#[test]
fn promises_are_kept() {
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("l4lb.conf");
    let example = include_str!("../l4lb.conf").replace("idle 60", "idle 1");
    fs::write(&config, &example).unwrap();
    let ours = PathBuf::from(env!("CARGO_BIN_EXE_l4lb"));
    let ways: [(&'static str, &[&str]); 2] = [
        ("the loop", &["--connections", "1"]),
        ("the graph", &["--connections", "1", "--graph", "fused"]),
    ];
    let started: Vec<_> = ways
        .iter()
        .enumerate()
        .map(|(number, (name, more))| {
            (*name, start(&ours, name, number, &[], more, directory.path()))
        })
        .collect();
    let eal = eal(directory.path(), ways.len());
    let pool = pool(&eal);
    let mut ports = ports(&eal, &pool, ways.len());
    for (number, ((name, program), port)) in started.into_iter().zip(&mut ports).enumerate() {
        fs::write(&config, &example).unwrap();
        let mut balancer = Balancer::new(name, program, port);
        // Four flows, and room for one: all pass.
        let frames: Vec<_> = (1..=4).map(last_frame).collect();
        assert_eq!(balancer.pass(&pool, &frames, 4).len(), 4, "{name}");
        let counter = |entry: &str| {
            let all = ask(number, "/l4lb/counters");
            all["/l4lb/counters"][entry].as_u64().unwrap()
        };
        assert_eq!((counter("received"), counter("table_full")), (4, 3), "{name}");
        let vip = &ask(number, "/l4lb/vip,web")["/l4lb/vip"];
        assert_eq!(
            (&vip["packets"], &vip["bytes"], &vip["new"]),
            (&4.into(), &240.into(), &1.into())
        );
        assert!(ask(number, "/l4lb/vip,nobody")["/l4lb/vip"].is_null());

        // The connection is forgotten a second after its packet, and the next one has room.
        until("a connection is forgotten", || counter("connections_forgotten") == 1);
        balancer.pass(&pool, &frames[..1], 1);
        assert_eq!(counter("table_full"), 3);

        // A capture has packets as they came and as they leave.
        let file = directory.path().join(format!("{number}.pcapng"));
        let command = format!("/l4lb/capture,{}", file.display());
        assert_eq!(ask(number, &command)["/l4lb/capture"], "queued");
        until("packets are captured", || {
            balancer.pass(&pool, &frames[..1], 1);
            packets(&file).len() >= 4
        });
        assert_eq!(ask(number, "/l4lb/capture,")["/l4lb/capture"], "queued");
        let all = packets(&file);
        assert!(all.contains(&(1, 60)) && all.contains(&(2, 80 - 6)), "{name}: {all:?}");
        let error = |words: &str| {
            let text = fs::read_to_string(directory.path().join(format!("{number}.err")));
            text.unwrap().contains(words)
        };
        ask(number, &format!("/l4lb/capture,{}", directory.path().display()));
        until("a directory is refused", || error("not a regular file"));

        // A configuration with an error changes nothing.
        fs::write(&config, "vip web tcp here 80 ipip\n").unwrap();
        assert_eq!(ask(number, "/l4lb/reload")["/l4lb/reload"], "queued");
        until("the error is told", || error("l4lb.conf:1: here is not an address"));
        assert_eq!(balancer.pass(&pool, &frames, 4).len(), 4, "{name}");

        // The end tells the counters.
        let id = balancer.program.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        let mut text = String::new();
        balancer.program.output.read_to_string(&mut text).unwrap();
        assert!(balancer.program.child.wait().unwrap().success(), "{name}");
        assert!(text.contains("other 0\n") && text.contains("unsent 0\n"), "{name}: {text}");
    }
}
