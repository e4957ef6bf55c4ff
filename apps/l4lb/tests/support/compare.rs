// SPDX-License-Identifier: BSD-3-Clause
//! Compares the frames that the load balancer, as a loop and as graphs, and its twin in C (`bench/l4lb`) send for the same frames,
//! while the configuration is read again and again.

use std::path::{Path, PathBuf};
use std::process::Command;

use packet::random::Random;

use super::{Balancer, eal, last_frame, pool, ports, start};

/// Frames between two comparisons: they fit into a ring of memif, so that none is lost there.
const GROUP: usize = 1000;
/// Groups between two configurations.
const RELOAD: usize = 4;

/// Random choices.
struct Choices(Random);

impl Choices {
    fn bits(&mut self) -> u64 {
        self.0.bits()
    }

    fn below(&mut self, limit: usize) -> usize {
        self.0.below(limit as u64) as usize
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

/// Configurations that follow each other: backends come, go and change their way; rules change.
fn configurations() -> Vec<String> {
    let example = include_str!("../../l4lb.conf");
    let without = |words: &[&str]| -> String {
        let keep = |line: &&str| !words.iter().any(|word| line.contains(word));
        example.lines().filter(keep).map(|line| format!("{line}\n")).collect()
    };
    vec![
        example.to_owned(),
        without(&["to 10.0.0.2", "to 10.0.0.8", "deny 203"]),
        without(&["to 10.0.0.4", "to 10.0.0.6", "to 10.0.0.7"]).replace("mtu 1500", "mtu 600"),
        without(&["deny"]).replace("80 ipip", "80 gre").replace("443 gre", "443 vxlan 9"),
        without(&["to 2001:db8:2::1"]).replace("53 nat", "5353 nat"),
        // Tunnels over IPv6 of each kind.
        example.replace("443 ipip", "443 gre"),
        example.replace("443 ipip", "443 vxlan 5"),
        // A VIP of this name that is another: its connections begin anew.
        example
            .replace("web tcp 198.51.100.10", "web tcp 198.51.100.13")
            .replace("vx udp 198.51.100.12 9000", "vx tcp 198.51.100.10 80"),
    ]
}

/// A frame for one of the VIPs, or for nobody; some are broken.
fn frame(random: &mut Choices) -> Vec<u8> {
    let v6 = random.one_in(3);
    // A VIP of the configuration, or something else.
    let [vip, to_port, protocol_number] = match (v6, random.one_in(5)) {
        (false, false) => random.of(&[[10, 80, 6], [11, 53, 17], [12, 9000, 17]]),
        (true, false) => random.of(&[[0x10, 443, 6], [0x11, 53, 17], [0x12, 443, 6]]),
        (_, true) => {
            [random.of(&[10, 13, 0x10]), random.of(&[80, 53, 22, 5353]), random.of(&[6, 17])]
        }
    };
    let tcp = protocol_number == 6;
    let mut frame = vec![2, 0, 0, 0, 0, 0xaa, 2, 0, 0, 0, 0, 1];
    let transport_len = if tcp { 20 } else { 8 } + random.of(&[0, 1, 6, 40, 200, 500, 1420]);
    let flow = random.below(300) as u16;
    let mut ports = [1024 + flow, to_port];
    if v6 {
        frame.extend([0x86, 0xdd]);
        frame.extend([0x60 | random.one_in(50) as u8, 0, 0, 0]);
        let len = transport_len as u16 + if random.one_in(50) { 2 } else { 0 };
        frame.extend(len.to_be_bytes());
        frame.extend([protocol(random, tcp), random.of(&[64, 64, 64, 2, 1, 0])]);
        let host = |net: [u8; 6], last: u16| {
            let mut address = [0; 16];
            address[..6].copy_from_slice(&net);
            address[14..].copy_from_slice(&last.to_be_bytes());
            address
        };
        let client = random.of(&[
            [0x20, 1, 0xd, 0xb8, 0xb, 0xad],
            [0x20, 1, 0xd, 0xb8, 0, 7],
            [0x20, 1, 0xd, 0xb8, 0, 7],
        ]);
        let (mut from, mut to) = (host(client, flow % 7), host([0x20, 1, 0xd, 0xb8, 0, 1], vip));
        if !tcp && random.one_in(5) {
            // An answer of a backend of NAT.
            (from, to) = (host([0x20, 1, 0xd, 0xb8, 0, 2], random.of(&[1, 2, 3])), from);
            ports = [random.of(&[5353, 53]), 1024 + flow];
        }
        frame.extend(from);
        frame.extend(to);
    } else {
        frame.extend([8, 0]);
        let len = 20 + transport_len as u16 + if random.one_in(50) { 2 } else { 0 };
        frame.extend([if random.one_in(50) { 0x46 } else { 0x45 }, 0]);
        frame.extend(len.to_be_bytes());
        frame.extend([
            0,
            flow as u8,
            if random.one_in(50) { 0x20 } else { 0x40 },
            random.one_in(50) as u8,
        ]);
        frame.extend([random.of(&[64, 64, 64, 2, 1, 0]), protocol(random, tcp)]);
        frame.extend((random.bits() as u16).to_be_bytes());
        let (mut from, mut to) = (
            random.of(&[[192, 0, 2, 66], [203, 0, 113, flow as u8], [10, 1, 0, flow as u8]]),
            [198, 51, 100, vip as u8],
        );
        if !tcp && random.one_in(5) {
            (from, to) = ([10, 0, 0, random.of(&[4, 5, 6])], from);
            ports = [random.of(&[5353, 53]), 1024 + flow];
        }
        frame.extend(from);
        frame.extend(to);
    }
    let transport = frame.len();
    frame.extend(ports.map(u16::to_be_bytes).concat());
    while frame.len() < transport + transport_len {
        frame.push(random.bits() as u8);
    }
    if tcp && !random.one_in(50) {
        frame[transport + 12] = random.of(&[0x50, 0x50, 0x60]);
    }
    if !tcp && random.one_in(4) {
        frame[transport + 6..transport + 8].fill(0);
    }
    if random.one_in(50) {
        frame.truncate(random.below(frame.len()).max(14));
    }
    // Ethernet's padding, and sometimes more.
    let padding = if random.one_in(4) { random.below(20) } else { 0 };
    frame.resize((frame.len() + padding).max(60), 0);
    frame
}

fn protocol(random: &mut Choices, tcp: bool) -> u8 {
    match random.below(50) {
        0 => 1,
        1 => 44,
        _ if tcp => 6,
        _ => 17,
    }
}

/// Builds the twin, with the C compiler and the headers that the crate dpdk was built with.
fn c_twin() -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/l4lb");
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("l4lb-c");
    let made = Command::new("make")
        .args(["-s", "-C"])
        .arg(&source)
        .arg(format!("OUT={}", out.display()))
        .status();
    assert!(made.unwrap().success());
    out.join("l4lb-c")
}

/// Compares what becomes of so many frames. `seed`: of the frames.
pub fn compare(total: usize, seed: u64) {
    let directory = tempfile::tempdir().unwrap();
    let configurations = configurations();
    std::fs::write(directory.path().join("l4lb.conf"), &configurations[0]).unwrap();
    let (ours, twin) = (PathBuf::from(env!("CARGO_BIN_EXE_l4lb")), c_twin());
    let programs: [(&'static str, &Path, &[&str]); 4] = [
        ("in C", &twin, &[]),
        ("the loop", &ours, &[]),
        ("the fused graph", &ours, &["--graph", "fused"]),
        ("the graph of librte_graph", &ours, &["--graph", "librte"]),
    ];
    let started: Vec<_> = programs
        .iter()
        .enumerate()
        .map(|(number, (name, program, more))| {
            (*name, start(program, name, number, &["--no-telemetry"], more, directory.path()))
        })
        .collect();

    let eal = eal(directory.path(), programs.len());
    let pool = pool(&eal);
    let mut ports = ports(&eal, &pool, programs.len());
    let mut balancers: Vec<_> = started
        .into_iter()
        .zip(&mut ports)
        .map(|((name, program), port)| Balancer::new(name, program, port))
        .collect();

    let mut random = Choices(Random::new(seed));
    let mut passed = 0;
    for group in 0..total / GROUP {
        if group > 0 && group % RELOAD == 0 {
            let next = &configurations[group / RELOAD % configurations.len()];
            std::fs::write(directory.path().join("l4lb.conf"), next).unwrap();
            balancers.iter_mut().for_each(Balancer::reload);
        }
        let mut frames: Vec<_> = (1..GROUP).map(|_| frame(&mut random)).collect();
        frames.push(last_frame(group));
        let wanted = balancers[0].pass(&pool, &frames, group);
        passed += wanted.len();
        for balancer in &mut balancers[1..] {
            let found = balancer.pass(&pool, &frames, group);
            for (number, (found, wanted)) in found.iter().zip(&wanted).enumerate() {
                assert_eq!(
                    found, wanted,
                    "{}, group {group}, frame {number} of those sent",
                    balancer.name
                );
            }
            assert_eq!(found.len(), wanted.len(), "{}, group {group}", balancer.name);
        }
    }
    // Most frames are neither broken nor for nobody.
    assert!(passed > total / 4 && passed < total, "{passed} of {total} passed");
}
