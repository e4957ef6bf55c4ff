// SPDX-License-Identifier: BSD-3-Clause
//! Reports why a test cannot run here.

use std::fmt::Display;
use std::io::{self, Write as _};

/// Bypasses libtest, which hides the output of passing tests, so that `scripts/run-tests` can count
/// it.
#[allow(clippy::explicit_write)] // What `eprintln!` writes is captured.
pub fn skip(reason: impl Display) {
    writeln!(io::stderr(), "skipped: {reason}").unwrap();
}
