// SPDX-License-Identifier: BSD-3-Clause
//! What users can name does not change unnoticed: a change shows in `api/` beside the code that made it.
//!
//! `UPDATE_API=1 scripts/check-api` writes the files anew.
#![allow(clippy::unwrap_used, clippy::expect_used)] // A test may.

use std::path::Path;

use public_api_check::listing;

const LIBRARIES: [(&str, &str); 7] = [
    ("linerate-capture-file", ""),
    ("linerate-dpdk", "packet"),
    ("linerate-flow", ""),
    ("linerate-graph", ""),
    ("linerate-measure", ""),
    ("linerate-packet", ""),
    ("linerate-telemetry", ""),
];

/// Lines of one text that the other has not.
fn only_in<'a>(text: &'a str, other: &str) -> Vec<&'a str> {
    let known: std::collections::BTreeSet<_> = other.lines().collect();
    text.lines().filter(|line| !known.contains(line)).collect()
}

#[test]
fn the_public_api_is_written_down() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = here.ancestors().nth(2).unwrap();
    let mut changed = Vec::new();
    for (package, features) in LIBRARIES {
        let found = listing(root, package, features).unwrap();
        let path = here.join("api").join(format!("{package}.txt"));
        if std::env::var_os("UPDATE_API").is_some() {
            std::fs::write(&path, &found).unwrap();
        }
        let written = std::fs::read_to_string(&path).unwrap_or_default();
        changed.extend(only_in(&found, &written).iter().map(|line| format!("{package}: + {line}")));
        changed.extend(only_in(&written, &found).iter().map(|line| format!("{package}: - {line}")));
    }
    assert!(
        changed.is_empty(),
        "the public API is not what tests/public-api/api has; if that is meant, run UPDATE_API=1 \
         scripts/check-api and say it in CHANGELOG.md:\n{}",
        changed.join("\n")
    );
}
