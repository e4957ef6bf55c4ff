// SPDX-License-Identifier: BSD-3-Clause
//! `dpdk-dumpcap` captures what a running forwarder receives and sends; it is started and stopped
//! meanwhile.
//!
//! Needs root, and 128 MiB of free huge pages. Without them, the test reports that and is skipped.
//!
//! Frames are sent a few at a time: dumpcap of 22.11 frees its capture ring and pool without
//! waiting for a poll that is using them.
#![allow(clippy::unwrap_used, clippy::expect_used)] // A test may.

#[path = "../../dpdk/tests/support/pcapng.rs"]
mod reader;
#[path = "../../dpdk/tests/support/skip.rs"]
mod skip;
mod support;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use dpdk::{Burst, Mempool, PoolConfig, Port, Started};
use reader::{Block, Packet};
use skip::skip;
use support::{Cleanup, Forwarder, memif, runtime_dir, serve, wait_until};

const DUMPCAP: &str = "/usr/bin/dpdk-dumpcap";
const PREFIX: &str = "dumpcap";
/// Pages of 2 MiB: for the pools of both programs, pdump's counters, and the heaps.
const PAGES: u64 = 64;

#[test]
fn dumpcap_sees_what_a_forwarder_receives_and_sends() {
    let _cleanup = Cleanup;
    if let Some(reason) = obstacle() {
        return skip(reason);
    }
    let eal = support::eal(&[]);
    let pool = Mempool::packet_pool(&eal, &PoolConfig::named("packets")).unwrap();
    let mut server = serve(&eal, &pool, 0);
    let mut forwarder = start();
    let control = server.control();
    wait_until("link or end", || forwarder.ended().is_some() || control.link().unwrap().up);
    assert!(forwarder.ended().is_none(), "{}", forwarder.err());
    let mut number = 0;
    for round in 0..3 {
        let file = runtime_dir().join(format!("{round}.pcapng"));
        let log = runtime_dir().join("dumpcap.log");
        let mut dumpcap = dumpcap(&forwarder, &file)
            .args(["-c", "400"])
            .stderr(fs::File::create(&log).unwrap())
            .spawn()
            .unwrap();
        let mut status = None;
        send_until(&mut server, &pool, &mut number, |_| {
            status = dumpcap.try_wait().unwrap();
            status.is_some()
        });
        let log = fs::read_to_string(log).unwrap();
        assert!(status.unwrap().success(), "{log}");
        check(&packets(&file));
    }
    // A killed one leaves its callbacks; the forwarder goes on.
    let file = runtime_dir().join("killed.pcapng");
    let mut killed = dumpcap(&forwarder, &file).stderr(Stdio::null()).spawn().unwrap();
    let written = || fs::metadata(&file).map_or(0, |file| file.len());
    send_until(&mut server, &pool, &mut number, |_| written() > 20_000);
    killed.kill().unwrap();
    killed.wait().unwrap();
    refuses_to_be_secondary(&forwarder);
    send_until(&mut server, &pool, &mut number, |back| back >= 1000);
    assert!(forwarder.stop().success(), "{}", forwarder.err());
    eal.detach(server.stop().unwrap().unconfigure()).unwrap();
    assert!(pool.is_full());
}

/// Why this machine cannot run it.
fn obstacle() -> Option<String> {
    let free = "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages";
    let pages: u64 = fs::read_to_string(free).ok().and_then(|n| n.trim().parse().ok()).unwrap_or(0);
    if !Path::new(DUMPCAP).exists() {
        let reason = format!("{DUMPCAP} is missing (package dpdk)");
        assert!(std::env::var_os("LINERATE_CI").is_none(), "{reason}: CI has to run this test");
        return Some(reason);
    }
    if !rustix::process::geteuid().is_root() {
        return Some("only root may mount hugetlbfs".into());
    }
    (pages < PAGES).then(|| {
        format!(
            "{pages} free huge pages of 2 MiB, {PAGES} are needed: sysctl vm.nr_hugepages={PAGES}"
        )
    })
}

/// Starts l2fwd, which sends packets back, with its packet memory in its own file system, which is
/// removed with it.
fn start() -> Forwarder {
    let huge = runtime_dir().join("huge");
    fs::create_dir(&huge).unwrap();
    let huge = huge.to_str().unwrap();
    let script = "mount -t hugetlbfs -o pagesize=2M nodev \"$0\" && exec \"$@\"";
    let (lcores, vdev) = (support::lcores(1), format!("--vdev={}", memif(0, "client")));
    let words = [
        &["--mount", "--propagation", "private", "sh", "-c", script, huge][..],
        &[env!("CARGO_BIN_EXE_l2fwd"), &lcores, "--no-pci", "--file-prefix", PREFIX],
        &["--huge-dir", huge, &vdev, "--", "-p", "1"],
    ];
    let words: Vec<String> = words.concat().into_iter().map(String::from).collect();
    Forwarder::spawn_bare(Path::new("/usr/bin/unshare"), &words)
}

/// A program of ours would close the forwarder's ports when it ends. So it refuses to start.
fn refuses_to_be_secondary(forwarder: &Forwarder) {
    let mut second = Command::new("/usr/bin/nsenter");
    second
        .arg(format!("--mount=/proc/{}/ns/mnt", forwarder.id()))
        .args([env!("CARGO_BIN_EXE_l2fwd"), "--proc-type=secondary", "--file-prefix", PREFIX])
        .args([&support::lcores(1), "--no-pci", "--", "-p", "1"]);
    support::in_runtime_dir(&mut second);
    second.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut second = second.spawn().unwrap();
    let own = second.id().to_string();
    wait_until("its end", || second.try_wait().unwrap().is_some());
    let output = second.wait_with_output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && told.contains("only primary ones"), "{told}");
    let files = fs::read_dir(runtime_dir().join("dpdk").join(PREFIX)).unwrap();
    let left = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let of_it = |name: &String| name.split('_').any(|word| word == own);
    assert_eq!(left.filter(of_it).collect::<Vec<_>>(), [""; 0]);
}

/// Captures on another CPU than the forwarder's, with access to the forwarder's memory.
fn dumpcap(forwarder: &Forwarder, file: &Path) -> Command {
    let cpu = host::allowed_cpus().first().unwrap().to_string();
    let mut command = Command::new("/usr/bin/nsenter");
    command
        .arg(format!("--mount=/proc/{}/ns/mnt", forwarder.id()))
        .args(["taskset", "-c", &cpu, DUMPCAP, "--file-prefix", PREFIX, "-q"])
        .args(["-i", "net_memif0", "-w"])
        .arg(file)
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    support::in_runtime_dir(&mut command);
    command
}

/// Sends numbered frames, a few at a time, until `done` returns true for the number of frames that
/// have come back.
fn send_until(
    server: &mut Port<'_, Started>,
    pool: &Mempool<'_>,
    number: &mut u32,
    mut done: impl FnMut(usize) -> bool,
) {
    let deadline = Instant::now() + Duration::from_secs(20);
    let mut queues = server.queues();
    let (mut burst, mut back) = (Burst::<8>::new(), 0);
    while !done(back) {
        assert!(Instant::now() < deadline, "nothing for 20 s");
        while !burst.is_full() {
            let mut packet = pool.alloc().unwrap();
            packet.resize(60).unwrap().copy_from_slice(&frame(*number));
            burst.push(packet).ok().unwrap();
            *number += 1;
        }
        queues.tx[0].send(&mut burst);
        sleep(Duration::from_millis(2));
        let mut received = Burst::<32>::new();
        back += queues.rx[0].receive(&mut received);
    }
}

fn frame(number: u32) -> [u8; 60] {
    let mut frame = [0x5a; 60];
    frame[12..14].copy_from_slice(&[0x88, 0xb5]); // for local experiments
    frame[14..18].copy_from_slice(&number.to_be_bytes());
    frame
}

fn packets(file: &Path) -> Vec<Packet> {
    let packet = |block| match block {
        Block::Packet(packet) => Some(packet),
        _ => None,
    };
    reader::blocks(&fs::read(file).unwrap()).into_iter().filter_map(packet).collect()
}

/// Received frames are those that were sent, and sent ones have l2fwd's addresses; both are in
/// order and complete.
fn check(packets: &[Packet]) {
    assert!(packets.len() >= 400, "{}", packets.len());
    for way in [1, 2] {
        let those: Vec<&Packet> = packets.iter().filter(|packet| packet.way == way).collect();
        assert!(those.len() > 100, "{} of {}", those.len(), packets.len());
        let number = |packet: &Packet| u32::from_be_bytes(packet.bytes[14..18].try_into().unwrap());
        for (packet, expected) in those.iter().zip(number(those[0])..) {
            assert_eq!((packet.interface, packet.queue, packet.len), (0, 0, 60));
            let frame = frame(expected);
            assert_eq!(packet.bytes[12..], frame[12..]);
            match way {
                1 => assert_eq!(packet.bytes[..12], frame[..12]),
                _ => assert_eq!(packet.bytes[..6], [2, 0, 0, 0, 0, 0]),
            }
        }
    }
}
