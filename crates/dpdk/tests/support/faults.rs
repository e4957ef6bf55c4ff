// SPDX-License-Identifier: BSD-3-Clause
//! Programs with one fault that must not compile, and must fail only because of it.
//!
//! Each file is compiled twice: as it is, which must succeed, and with `--cfg fault`, which must
//! fail with the error on its `expect:` line. Only the error's code is compared, because wordings
//! differ between compilers. (Doctests cannot do this: stable rustdoc accepts any error in place of
//! the one that `compile_fail` names.)

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Compiles the programs in a directory of a crate's tests; there must be at least `at_least`.
pub fn check(library: &'static str, directory: &Path, at_least: usize) {
    let compiler = Compiler::new(library);
    let programs = programs(directory);
    assert!(programs.len() >= at_least, "{programs:?}");
    let mut wrong = Vec::new();
    for program in &programs {
        let name = program.file_stem().unwrap().to_string_lossy();
        let twin = compiler.errors(program, &[]);
        if !twin.is_empty() {
            wrong.push(format!("{name} without its fault: {twin:?}"));
        }
        let fault = compiler.errors(program, &["--cfg", "fault"]);
        if fault != BTreeSet::from([expected(program)]) {
            wrong.push(format!("{name}: expected {}, got {fault:?}", expected(program)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn programs(directory: &Path) -> Vec<PathBuf> {
    let mut programs: Vec<PathBuf> =
        std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    programs.sort();
    programs
}

/// The code on a program's `expect:` line.
fn expected(program: &Path) -> String {
    let text = std::fs::read_to_string(program).unwrap();
    let code = text.lines().find_map(|line| line.strip_prefix("// expect: "));
    code.unwrap_or_else(|| panic!("{} has no expect: line", program.display())).to_owned()
}

/// The compiler, and the library that programs are compiled against.
pub struct Compiler {
    rustc: PathBuf,
    /// The library under test: its name and its path.
    name: &'static str,
    library: PathBuf,
    /// The directory of its dependencies, which is that of this test.
    dependencies: PathBuf,
}

impl Compiler {
    /// A compiler for programs that use the library of that name, as this test does.
    pub fn new(name: &'static str) -> Self {
        let cargo = PathBuf::from(env!("CARGO"));
        let rustc = cargo.with_file_name("rustc");
        let rustc = if rustc.exists() { rustc } else { "rustc".into() };
        let test = std::env::current_exe().unwrap();
        Self {
            rustc,
            name,
            library: library(name, &test),
            dependencies: test.parent().unwrap().to_owned(),
        }
    }

    /// The compiler's errors in a program; empty if it compiles.
    pub fn diagnostics(&self, program: &Path, flags: &[&str]) -> Vec<Value> {
        let output = Command::new(&self.rustc)
            .args(["--edition=2024", "--crate-type=lib", "--emit=metadata", "--error-format=json"])
            .args(["--check-cfg", "cfg(fault)", "-A", "warnings"])
            .args(flags)
            .args([OsStr::new("--extern"), &joined(&format!("{}=", self.name), &self.library)])
            .args([OsStr::new("-L"), &joined("dependency=", &self.dependencies)])
            .arg("-o")
            .arg(Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{}.rmeta", self.name)))
            .arg(program)
            .output()
            .unwrap();
        let errors: Vec<Value> = messages(&output.stderr)
            .filter(|message| message["level"] == "error")
            .filter(|message| !text(&message["message"]).starts_with("aborting due to"))
            .collect();
        assert_eq!(errors.is_empty(), output.status.success(), "{output:?}");
        errors
    }

    /// The codes of a program's errors; empty if it compiles.
    fn errors(&self, program: &Path, flags: &[&str]) -> BTreeSet<String> {
        let code = |message: Value| match &message["code"]["code"] {
            Value::String(code) => code.clone(),
            _ => text(&message["message"]),
        };
        self.diagnostics(program, flags).into_iter().map(code).collect()
    }
}

/// The library with which this test was linked: of those in its directory (there may be one per set
/// of features), the newest one that is not newer than the test.
fn library(name: &str, test: &Path) -> PathBuf {
    let begins = format!("lib{name}-");
    let made = |path: &Path| path.metadata().unwrap().modified().unwrap();
    let beside = test.parent().unwrap().read_dir().unwrap().map(|entry| entry.unwrap().path());
    beside
        .filter(|path| path.extension() == Some(OsStr::new("rlib")))
        .filter(|path| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&begins))
        })
        .filter(|path| made(path) <= made(test))
        .max_by_key(|path| made(path))
        .expect("cargo has built the library")
}

fn messages(output: &[u8]) -> impl Iterator<Item = Value> {
    output.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok())
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn joined(prefix: &str, path: &Path) -> std::ffi::OsString {
    let mut joined = std::ffi::OsString::from(prefix);
    joined.push(path);
    joined
}
