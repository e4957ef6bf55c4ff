// SPDX-License-Identifier: BSD-3-Clause
//! Examples of this crate, built by cargo in the same target directory as the tests, so that
//! nothing is built twice.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::Command;

/// Runs cargo with `arguments` in the tests' profile. Returns the directory of the examples.
pub fn examples(arguments: &[&str]) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let profile = test.parent().unwrap().parent().unwrap();
    let name = profile.file_name().unwrap();
    let mut target = profile.parent().unwrap();
    // The target for which scripts/run-sanitizers builds; its directory is inside cargo's.
    let triple = std::env::var_os("LINERATE_TARGET");
    if triple.is_some() {
        target = target.parent().unwrap();
    }
    // The features of other crates matter too: with these, cargo reuses what it built for the tests
    // of the workspace.
    let alike = triple.is_none();
    let output = Command::new(env!("CARGO"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(["build", "--quiet", "--locked", "--offline", "--profile"])
        .arg(if name == "debug" { OsStr::new("dev") } else { name })
        .args(triple.iter().flat_map(|triple| [OsStr::new("--target"), triple]))
        .arg("--target-dir")
        .arg(target)
        .args(alike.then_some("--workspace"))
        .args(arguments)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    profile.join("examples")
}
