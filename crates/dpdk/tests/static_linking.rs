// SPDX-License-Identifier: BSD-3-Clause
//! With the feature `static`, a program contains every driver, and needs no shared library of DPDK.
#![allow(clippy::unwrap_used, clippy::expect_used)] // A test may.

#[path = "support/built.rs"]
mod built;

use std::collections::BTreeSet;
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Devices that need no hardware. Those that need root, or a kernel with TUN, fail the same way in
/// both programs.
const DEVICES: [&str; 7] = [
    "net_null0",
    "net_ring0",
    "net_memif0",
    "net_tap0",
    "net_af_packet0,iface=lo",
    "net_pcap0,iface=lo",
    "net_virtio_user0,path=/dev/null",
];

#[test]
fn a_static_program_has_the_drivers_of_a_dynamic_one() {
    let dynamic = example(&[]);
    assert!(libraries(&dynamic).contains("librte_"), "linked statically without being asked to");
    let attached = devices(&dynamic);
    for name in ["net_null", "net_ring", "net_memif"] {
        assert!(attached.contains(&format!("{name}0: driver {name}\n")), "{attached}");
    }

    let program = example(&["--features", "linerate-dpdk/static"]);
    let libraries = libraries(&program);
    assert!(!libraries.contains("librte_"), "{libraries}");
    assert!(!libraries.contains("not found"), "{libraries}");
    assert_eq!(devices(&program), attached);
    let (wanted, found) = (constructors(&archives()), constructors(&[program]));
    let missing: Vec<_> = wanted.difference(&found).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// Builds the example and copies it, because the next build replaces it.
fn example(features: &[&str]) -> PathBuf {
    let directory = built::examples(&[&["--example", "devices"], features].concat());
    let copy = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("devices-{}", features.len()));
    std::fs::copy(directory.join("devices"), &copy).unwrap();
    copy
}

/// The result for each device.
fn devices(program: &Path) -> String {
    let cpu = host::allowed_cpus()[0];
    let output = Command::new(program)
        .args(["--no-pci", "--no-huge", "--no-shconf", "--no-telemetry", "-m", "64"])
        .args(["--lcores".into(), format!("0@{cpu}"), "--file-prefix".into()])
        .arg(format!("linerate-static-{}", std::process::id()))
        .arg("--")
        .args(DEVICES)
        .output()
        .unwrap();
    // The exit status is 1 if a driver refuses its device.
    let ended = matches!(output.status.code(), Some(0 | 1));
    assert!(ended, "{}", String::from_utf8_lossy(&output.stderr));
    let told = String::from_utf8(output.stdout).unwrap();
    // Drivers and EAL also write to standard output.
    told.lines().filter(|line| line.starts_with("net_")).map(|line| format!("{line}\n")).collect()
}

fn libraries(program: &Path) -> String {
    answer(Command::new("ldd").arg(program))
}

fn archives() -> Vec<PathBuf> {
    let tool = env::var("PKG_CONFIG").unwrap_or_else(|_| "pkg-config".into());
    let directory = answer(Command::new(tool).args(["--variable=libdir", "libdpdk"]));
    let files = Path::new(directory.trim()).read_dir().unwrap().map(|entry| entry.unwrap().path());
    let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
    files.filter(|path| name(path).starts_with("librte_") && name(path).ends_with(".a")).collect()
}

/// The functions by which drivers, buses, mempool backends and graph nodes register themselves.
fn constructors(files: &[PathBuf]) -> BTreeSet<String> {
    let told = answer(Command::new("nm").arg("--defined-only").args(files));
    // Some are visible to other files, but not outside the program.
    let name = |line: &str| {
        let mut words = line.split_whitespace().rev();
        let (name, kind) = (words.next()?, words.next()?);
        kind.eq_ignore_ascii_case("t").then(|| name.to_owned())
    };
    let names = told.lines().filter_map(name);
    let kinds = ["initfn_", "mp_hdlr_init_", "rte_node_register_"];
    let found: BTreeSet<String> =
        names.filter(|name| kinds.iter().any(|kind| name.contains(kind))).collect();
    for kind in kinds {
        assert!(found.iter().any(|name| name.contains(kind)), "{kind}: {found:?}");
    }
    found
}

fn answer(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}
