// SPDX-License-Identifier: BSD-3-Clause
//! Topologies whose edges are wrong do not compile, and for that reason only.
#![allow(clippy::unwrap_used, clippy::expect_used)] // A test may.

use std::path::Path;

#[path = "../../dpdk/tests/support/faults.rs"]
mod faults;

#[test]
fn faults_do_not_compile_and_their_twins_do() {
    faults::check("graph", &Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/edges"), 8);
}
