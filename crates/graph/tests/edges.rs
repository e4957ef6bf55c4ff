// SPDX-License-Identifier: BSD-3-Clause
//! Topologies whose edges are wrong do not compile, for that reason only, and the compiler names what is wrong.
#![allow(clippy::unwrap_used, clippy::expect_used)] // A test may.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;

#[path = "../../dpdk/tests/support/faults.rs"]
mod faults;

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/edges")
}

#[test]
fn faults_do_not_compile_and_their_twins_do() {
    faults::check("graph", &directory(), 13);
}

/// One error has all the words of a program's `says:` line: those of the node and of the edge.
#[test]
fn the_compiler_names_what_is_wrong() {
    let compiler = faults::Compiler::new("graph");
    let mut wrong = Vec::new();
    for entry in directory().read_dir().unwrap() {
        let program = entry.unwrap().path();
        let text = std::fs::read_to_string(&program).unwrap();
        let says = text.lines().find_map(|line| line.strip_prefix("// says: "));
        let says = says.unwrap_or_else(|| panic!("{} says not what is said", program.display()));
        let words: BTreeSet<&str> = says.split(", ").collect();
        // Without the lines of source that are shown beside them: those have the names of all nodes.
        let diagnostics = compiler.diagnostics(&program, &["--cfg", "fault"]);
        let errors: Vec<String> = diagnostics.iter().map(said).collect();
        if !errors.iter().any(|error| words.is_subset(&words_of(error))) {
            wrong.push(format!("{}: expected {words:?} in one of {errors:?}", program.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn words_of(text: &str) -> BTreeSet<&str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').collect()
}

/// A diagnostic's message and the labels of its places, and those of its notes.
fn said(diagnostic: &Value) -> String {
    let list = |key: &str| diagnostic[key].as_array().into_iter().flatten();
    let message = diagnostic["message"].as_str().unwrap_or_default().to_owned();
    let labels = list("spans").filter_map(|span| span["label"].as_str()).map(str::to_owned);
    let notes = list("children").map(said);
    std::iter::once(message).chain(labels).chain(notes).collect::<Vec<_>>().join("\n")
}
