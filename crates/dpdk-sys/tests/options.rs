// SPDX-License-Identifier: BSD-3-Clause
//! Headers with an option that the native fast path cannot honour stop the build, with a message that
//! names the option.
#![allow(clippy::unwrap_used, clippy::expect_used)] // A test may.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// Checks, counters and traces inside the inline functions.
const REFUSED: [(&str, &str); 11] = [
    ("RTE_ETHDEV_DEBUG_RX", "RTE_ETHDEV_DEBUG_RX"),
    ("RTE_ETHDEV_DEBUG_TX", "RTE_ETHDEV_DEBUG_TX"),
    ("RTE_LIBRTE_ETHDEV_DEBUG", "RTE_ETHDEV_DEBUG_TX"), // the old name of both
    ("RTE_LIBRTE_MBUF_DEBUG", "RTE_LIBRTE_MBUF_DEBUG"),
    ("RTE_MBUF_HISTORY_DEBUG", "RTE_MBUF_HISTORY_DEBUG"),
    ("RTE_LIBRTE_MEMPOOL_DEBUG", "RTE_LIBRTE_MEMPOOL_DEBUG"),
    ("RTE_LIBRTE_MEMPOOL_STATS", "RTE_LIBRTE_MEMPOOL_STATS"),
    ("RTE_LIBRTE_LPM_DEBUG", "RTE_LIBRTE_LPM_DEBUG"),
    ("RTE_LIBRTE_RCU_DEBUG", "RTE_LIBRTE_RCU_DEBUG"),
    ("RTE_ENABLE_ASSERT", "RTE_ENABLE_ASSERT"),
    ("RTE_ENABLE_TRACE_FP", "RTE_ENABLE_TRACE_FP"),
];
/// What the native functions rely on, and DPDK's default configuration has.
const NEEDED: [&str; 2] = ["RTE_ETHDEV_RXTX_CALLBACKS", "RTE_MBUF_REFCNT_ATOMIC"];

#[test]
fn a_build_against_headers_with_such_an_option_stops() {
    // Without such an option it builds: this test has been linked.
    for (option, named) in REFUSED {
        let refused = build(option, &format!("#define {option} 1"));
        expect_refusal(&refused, &format!("error \"this DPDK has {named}, which "));
    }
    for option in NEEDED {
        let refused = build(option, &format!("#undef {option}"));
        expect_refusal(&refused, &format!("error \"this DPDK lacks {option} (a default), "));
    }
}

fn expect_refusal(output: &Output, message: &str) {
    let told = told(output);
    assert!(!output.status.success(), "{message}: not refused");
    assert!(told.contains(message), "{message} is not in:\n{told}");
    assert!(told.contains("linerate-dpdk-sys: "), "{told}: does not say who speaks");
}

/// Runs this crate's build script against a DPDK that was configured with `configuration` as well: its
/// pkg-config module leads to an `rte_config.h` that ends so.
fn build(name: &str, configuration: &str) -> Output {
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR")).join("options").join(name);
    fs::create_dir_all(&scratch).unwrap();
    let header = format!("#include_next <rte_config.h>\n{configuration}\n");
    fs::write(scratch.join("rte_config.h"), header).unwrap();
    let original = pkg_config(&["--variable=pcfiledir", "libdpdk"]);
    let module = fs::read_to_string(Path::new(&original).join("libdpdk.pc")).unwrap();
    assert!(module.contains("\nCflags: "), "{module}");
    let include = format!("\nCflags: -I{} ", scratch.display());
    fs::write(scratch.join("libdpdk.pc"), module.replace("\nCflags: ", &include)).unwrap();
    Command::new(env!("LINERATE_BUILD_SCRIPT"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("OUT_DIR", &scratch)
        .env("PKG_CONFIG_PATH", &scratch)
        .envs([("TARGET", host()), ("HOST", host())])
        .envs([("OPT_LEVEL", "0"), ("DEBUG", "false"), ("PROFILE", "debug")])
        .output()
        .unwrap()
}

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&[output.stdout.as_slice(), &output.stderr].concat()).into_owned()
}

fn pkg_config(arguments: &[&str]) -> String {
    let tool = std::env::var("PKG_CONFIG").unwrap_or_else(|_| "pkg-config".into());
    let output = Command::new(tool).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", told(&output));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// The compiler's own name for this machine, as cargo gives it to build scripts.
fn host() -> String {
    let rustc = Path::new(env!("CARGO")).with_file_name("rustc");
    let rustc = if rustc.exists() { rustc } else { "rustc".into() };
    let output = Command::new(rustc).arg("-vV").output().unwrap();
    let told = told(&output);
    told.lines().find_map(|line| line.strip_prefix("host: ")).unwrap().to_owned()
}
