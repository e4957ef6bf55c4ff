// SPDX-License-Identifier: BSD-3-Clause
//! Topologies whose edges are wrong do not compile, for that reason only, and the compiler names what is wrong.
#![allow(clippy::unwrap_used, clippy::expect_used)] // A test may.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

#[path = "../../dpdk/tests/support/faults.rs"]
mod faults;

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/edges")
}

#[test]
fn faults_do_not_compile_and_their_twins_do() {
    faults::check("graph", &directory(), 12);
}

/// One error has all the words of a program's `says:` line: those of the node and of the edge.
#[test]
fn the_compiler_names_what_is_wrong() {
    let mut wrong = Vec::new();
    for entry in directory().read_dir().unwrap() {
        let program = entry.unwrap().path();
        let text = std::fs::read_to_string(&program).unwrap();
        let says = text.lines().find_map(|line| line.strip_prefix("// says: "));
        let says = says.unwrap_or_else(|| panic!("{} says not what is said", program.display()));
        let words: BTreeSet<&str> = says.split(", ").collect();
        let errors = errors(&program);
        if !errors.iter().any(|error| words.is_subset(&words_of(error))) {
            wrong.push(format!("{}: expected {words:?} in one of {errors:?}", program.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn words_of(text: &str) -> BTreeSet<&str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').collect()
}

/// What the compiler says of each error in a program, without the lines of source that it shows with it: those
/// have the names of all nodes.
fn errors(program: &Path) -> Vec<String> {
    let beside = std::env::current_exe().unwrap().parent().unwrap().to_owned();
    let output = Command::new(Path::new(env!("CARGO")).with_file_name("rustc"))
        .args(["--edition=2024", "--crate-type=lib", "--emit=metadata", "--error-format=json"])
        .args(["--check-cfg", "cfg(fault)", "--cfg", "fault", "-A", "warnings"])
        .arg("--extern")
        .arg(format!("graph={}", library(&beside).display()))
        .arg("-L")
        .arg(format!("dependency={}", beside.display()))
        .arg("-o")
        .arg(Path::new(env!("CARGO_TARGET_TMPDIR")).join("said.rmeta"))
        .arg(program)
        .output()
        .unwrap();
    let lines = output.stderr.split(|byte| *byte == b'\n');
    lines
        .filter_map(|line| serde_json::from_slice::<Value>(line).ok())
        .filter(|diagnostic| diagnostic["level"] == "error")
        .map(|diagnostic| said(&diagnostic))
        .collect()
}

/// A diagnostic's message and the labels of its places, and those of its notes.
fn said(diagnostic: &Value) -> String {
    let list = |key: &str| diagnostic[key].as_array().into_iter().flatten();
    let message = diagnostic["message"].as_str().unwrap_or_default().to_owned();
    let labels = list("spans").filter_map(|span| span["label"].as_str()).map(str::to_owned);
    let notes = list("children").map(said);
    std::iter::once(message).chain(labels).chain(notes).collect::<Vec<_>>().join("\n")
}

/// The library that this test was linked with: the youngest that is no younger than the test.
fn library(beside: &Path) -> PathBuf {
    let made = |path: &Path| path.metadata().unwrap().modified().unwrap();
    let test = made(&std::env::current_exe().unwrap());
    let is_library = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.starts_with("libgraph-") && name.ends_with(".rlib")
    };
    let files = beside.read_dir().unwrap().map(|entry| entry.unwrap().path());
    files
        .filter(is_library)
        .filter(|path| made(path) <= test)
        .max_by_key(|path| made(path))
        .expect("cargo has built the library")
}
