// SPDX-License-Identifier: BSD-3-Clause
//! Programs that break an ownership rule do not compile, and fail only because of it.
#![allow(clippy::unwrap_used, clippy::expect_used)] // A test may.

use std::path::Path;

#[path = "support/faults.rs"]
mod faults;

#[test]
fn faults_do_not_compile_and_their_twins_do() {
    faults::check("dpdk", &Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ownership"), 20);
}
