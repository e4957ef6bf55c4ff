// SPDX-License-Identifier: BSD-3-Clause
//! Runs a test in a network namespace of its own, which needs root.

use std::process::{Command, Stdio};

use super::skip::skip;

/// Set in the process that is in the namespace.
const INSIDE: &str = "LINERATE_TEST_IN_NAMESPACE";

/// Runs `inside` in a child process of this program that runs only the test of that name, in a
/// namespace that is removed afterwards. If the command `probe` fails in such a namespace, the test
/// is skipped.
pub fn in_network_namespace(test: &str, probe: &[&str], inside: impl FnOnce()) {
    if std::env::var_os(INSIDE).is_some() {
        return inside();
    }
    let unshared = || {
        let mut command = Command::new("unshare");
        command.args(["--net", "--"]);
        command
    };
    let probed = unshared().args(probe).output();
    if !probed.as_ref().is_ok_and(|output| output.status.success()) {
        let command = probe.join(" ");
        return skip(format_args!("unshare --net {command} (it takes root): {probed:?}"));
    }
    // Output is captured, so that the child's test result is not counted in addition to this
    // process's.
    let done = unshared()
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(INSIDE, "1")
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success() && told.contains("test result: ok. 1 passed"), "{told}");
}
