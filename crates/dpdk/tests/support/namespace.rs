// SPDX-License-Identifier: BSD-3-Clause
//! A network namespace of a test's own, which takes root.

use std::process::{Command, Stdio};

use super::skip::skip;

/// Set for the process that is in the namespace.
const INSIDE: &str = "LINERATE_TEST_IN_NAMESPACE";

/// Runs `inside` in the process of this program that runs nothing but the test of that name, in a namespace that goes with
/// it. Where `probe`, a command, fails in such a namespace, the test is skipped.
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
    // Its output, so that its sum is not counted besides that of this process.
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
