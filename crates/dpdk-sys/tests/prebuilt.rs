// SPDX-License-Identifier: BSD-3-Clause
//! What pages are made from where there is no DPDK (`prebuilt/`) declares what the headers of its release declare.
//!
//! `LINERATE_PREBUILD=1 scripts/cargo test -p linerate-dpdk-sys --test prebuilt` writes it anew, with DPDK 22.11.
#![allow(clippy::unwrap_used, clippy::expect_used)] // A test may.

#[path = "../../dpdk/tests/support/skip.rs"]
mod skip;

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use skip::skip;

/// Made for this build, from the installed headers.
const BINDINGS: &str = include_str!(concat!(env!("OUT_DIR"), "/bindings.rs"));
const LAYOUT: &str = include_str!(concat!(env!("OUT_DIR"), "/layout.rs"));

#[test]
fn prebuilt_declarations_are_those_of_their_release() {
    if cfg!(dpdk_23_11) || cfg!(not(target_arch = "x86_64")) {
        return skip("prebuilt declarations are of DPDK 22.11 on x86-64, and others are installed");
    }
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("prebuilt");
    let (bindings, layout) = (directory.join("bindings.rs"), directory.join("layout.rs"));
    if std::env::var_os("LINERATE_PREBUILD").is_some() {
        fs::create_dir_all(&directory).unwrap();
        fs::write(&bindings, without_layout_tests(BINDINGS)).unwrap();
        fs::write(&layout, LAYOUT).unwrap();
    }
    let stale = "prebuilt/ is stale: LINERATE_PREBUILD=1 scripts/cargo test -p linerate-dpdk-sys --test prebuilt";
    let kept = fs::read_to_string(bindings).unwrap();
    for kind in ["fn", "const", "struct", "static", "type"] {
        let (wanted, found) = (declared(BINDINGS, kind), declared(&kept, kind));
        let differ: Vec<_> = wanted.symmetric_difference(&found).collect();
        assert!(differ.is_empty(), "{stale}\n{differ:#?}");
        assert!(!wanted.is_empty() || kind == "static", "no {kind} at all");
    }
    assert_eq!(fs::read_to_string(layout).unwrap(), LAYOUT, "{stale}");
}

/// What is DPDK's or the shim's among the declarations of a kind: functions and constants as a whole, types by
/// name, for what they hold of the C library's differs between machines.
fn declared(rust: &str, kind: &str) -> BTreeSet<String> {
    // However it was laid out: with rustfmt, or without.
    let text: String = rust.split_whitespace().collect::<Vec<_>>().join(" ");
    let begin = format!("pub {kind} ");
    let of_dpdk = |text: &&str| {
        ["rte_", "RTE_", "lr_", "__rte_"].iter().any(|prefix| text.starts_with(prefix))
    };
    let end = match kind {
        "fn" | "const" => [';', ';'],
        _ => [':', ' '],
    };
    text.split(begin.as_str())
        .skip(1)
        .filter(of_dpdk)
        .filter_map(|text| text.split(end).next())
        .map(|text| text.replace([' ', '\n'], "").replace(",)", ")"))
        .collect()
}

/// bindgen's own checks, which are for the headers that it has read.
fn without_layout_tests(rust: &str) -> String {
    let begin = "#[allow(clippy::unnecessary_operation, clippy::identity_op)]\nconst _: () = {\n";
    let mut parts = rust.split(begin);
    let mut text = parts.next().unwrap().to_owned();
    for part in parts {
        text.push_str(part.split_once("\n};\n").expect("such a check ends").1);
    }
    assert!(
        text.len() < rust.len(),
        "bindgen has laid its output out in another way; is rustfmt there?"
    );
    text
}
