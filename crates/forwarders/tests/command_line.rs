// SPDX-License-Identifier: BSD-3-Clause
//! The same command lines as the C l2fwd: the same ones are accepted, the same ports are used, and
//! SIGTERM ends both with the same exit code.
#![allow(clippy::unwrap_used, clippy::expect_used)] // A test may.

mod support;

use std::path::Path;
use std::process::ExitStatus;

use support::{Forwarder, c_l2fwd, wait_until};

/// How a command line ended: its exit code and the lines that say which lcore does what.
#[derive(PartialEq, Eq, Debug)]
struct Outcome {
    code: Option<i32>,
    lcores: Vec<String>,
}

fn run(program: &Path, options: &[&str]) -> (Outcome, String) {
    let vdevs: Vec<String> = (0..3).map(|port| format!("net_null{port}")).collect();
    let mut forwarder = Forwarder::start(program, &vdevs, options);
    // Both print this, unbuffered, when every port is started.
    wait_until("start or end", || {
        forwarder.ended().is_some() || forwarder.text().contains("Checking link status")
    });
    let text = |forwarder: &Forwarder| forwarder.text();
    let (status, printed): (ExitStatus, String) = match forwarder.ended() {
        Some(status) => (status, text(&forwarder)),
        None => {
            let printed = text(&forwarder);
            (forwarder.stop(), printed)
        }
    };
    // A plan that fails is not compared: C prints what it has of it before it gives up.
    let lcores = printed
        .lines()
        .filter(|line| status.success() && line.starts_with("Lcore "))
        .map(String::from)
        .collect();
    (Outcome { code: status.code(), lcores }, printed)
}

#[test]
fn command_lines_mean_what_they_mean_in_c() {
    let _cleanup = support::Cleanup;
    let c = c_l2fwd();
    let ours = Path::new(env!("CARGO_BIN_EXE_l2fwd"));
    let table: &[&[&str]] = &[
        &["-p", "7", "-q", "3", "-T", "0"],
        &["-p3", "-q2", "-T0"],
        &["-p", "0x5", "-q", "2", "-T", "0", "--no-mac-updating"],
        &["-p", "1", "-T", "0", "-P"],
        &["-p", "7", "-q", "3", "-T", "0", "--portmap=(0,2)"],
        &["-p", "7", "-q", "3", "-T", "0", "--portmap", "(2,1)"],
        &["-p", "7", "-q", "3", "-T", "0", "--portm=(0,1)(2,2)"],
        &["-p", "1", "-T", "0", "stray"],
        // Wrong ones.
        &[],
        &["-p", "0"],
        &["-p", "xyz"],
        &["-p"],
        &["-p", "8", "-T", "0"],
        &["-p", "7", "-T", "0"],
        &["-p", "1", "-q", "0"],
        &["-p", "1", "-q", "16"],
        &["-p", "1", "-q", "two"],
        &["-p", "1", "-T", "-1"],
        &["-p", "1", "-T", "86400"],
        &["-p", "7", "-q", "3", "--portmap=(0,1"],
        &["-p", "7", "-q", "3", "--portmap=(0)"],
        &["-p", "7", "-q", "3", "--portmap=(0,99)"],
        &["-p", "1", "-q", "3", "--portmap=(0,1)"],
        &["-p", "7", "-q", "3", "--portmap=(0,1)(1,2)"],
        &["-p", "1", "--no-such-option"],
        &["-z"],
    ];
    for options in table {
        let (expected, c_text) = run(&c, options);
        let (outcome, text) = run(ours, options);
        assert_eq!(outcome, expected, "{options:?}\n--- C:\n{c_text}\n--- ours:\n{text}");
        if outcome.code != Some(0) {
            let message = text.lines().find(|line| line.starts_with("l2fwd: "));
            assert!(message.is_some(), "{options:?}: no message in\n{text}");
        }
    }
}
