// SPDX-License-Identifier: BSD-3-Clause
//! Linking with DPDK's archives instead of its shared libraries.
//!
//! Drivers, mempool backends and graph nodes register themselves by constructors that nobody calls: each archive is
//! taken whole. What drivers use of the system (libpcap, libibverbs, ...) stays shared. `pkg-config --static`
//! would also name what those would need if they were archives, down to libsystemd: libraries that need not be installed.
//! So DPDK's own words are taken, and of each module that it requires the shared library.

use std::collections::BTreeSet;
use std::env;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What pkg-config answers, in words.
pub fn pkg_config(arguments: &[&str]) -> Result<Vec<String>, Box<dyn Error>> {
    let tool = env::var("PKG_CONFIG").unwrap_or_else(|_| "pkg-config".into());
    let output = Command::new(tool).args(arguments).output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    Ok(String::from_utf8(output.stdout)?.split_whitespace().map(str::to_owned).collect())
}

/// Tells cargo DPDK's archives, and the libraries of the system that these use.
pub fn statically() -> Result<(), Box<dyn Error>> {
    let directory = directory("libdir")?;
    let mut private = words(&directory_of_modules()?.join("libdpdk.pc"), "Libs.private:")?;
    let archives: Vec<String> = private
        .iter()
        .filter_map(|word| word.strip_prefix("-l:lib")?.strip_suffix(".a").map(str::to_owned))
        .collect();
    if archives.is_empty() {
        return Err("the feature `static` needs DPDK's archives, and libdpdk.pc names none: build DPDK with \
            meson's -Ddefault_library=both or static"
            .into());
    }
    println!("cargo::rustc-link-search=native={}", directory.display());
    for archive in &archives {
        let file = directory.join(format!("lib{archive}.a"));
        if !file.exists() {
            return Err(format!(
                "the feature `static` needs {}, which is not installed: Debian's libdpdk-dev has it; a DPDK of your \
                own is built with meson's -Ddefault_library=both or static",
                file.display()
            )
            .into());
        }
        println!("cargo::rerun-if-changed={}", file.display());
        println!("cargo::rustc-link-lib=static:+whole-archive,-bundle={archive}");
    }
    private.extend(words(&directory_of_modules()?.join("libdpdk-libs.pc"), "Libs.private:")?);
    for module in required()? {
        private.extend(pkg_config(&["--libs", &module])?);
    }
    if has_library("atomic")? {
        // For atomic 16 bytes. Late releases do not name it, for gcc then links it unasked; for rustc it does not.
        private.push("-latomic".into());
    }
    let mut told = BTreeSet::new();
    for word in private {
        if let Some(place) = word.strip_prefix("-L") {
            if !place.contains("${") {
                println!("cargo::rustc-link-search=native={place}");
            }
        } else if let Some(name) = word.strip_prefix("-l").filter(|name| !name.starts_with(':')) {
            // rustc links what is not used with --as-needed.
            if told.insert(name.to_owned()) {
                println!("cargo::rustc-link-lib=dylib={name}");
            }
        }
    }
    println!("cargo::metadata=static=1");
    Ok(())
}

/// Whether the C compiler brings a library of this name along.
fn has_library(name: &str) -> Result<bool, Box<dyn Error>> {
    let mut compiler = cc::Build::new().get_compiler().to_command();
    let output = compiler.arg(format!("-print-file-name=lib{name}.so")).output()?;
    // Where it has none, the answer is the question.
    Ok(Path::new(String::from_utf8(output.stdout)?.trim()).is_absolute())
}

/// The modules that DPDK's own requires for its archives; `libxdp >= 1.2.2` is one.
fn required() -> Result<Vec<String>, Box<dyn Error>> {
    let mut modules = Vec::new();
    for question in ["--print-requires", "--print-requires-private"] {
        let mut words = pkg_config(&[question, "libdpdk"])?.into_iter();
        while let Some(word) = words.next() {
            if word.starts_with(['<', '>', '=', '!']) {
                words.next(); // the version that is compared with
            } else if word != "libdpdk-libs" {
                modules.push(word);
            }
        }
    }
    Ok(modules)
}

/// The words of a line in a module's file, which pkg-config does not tell apart from those of what it requires.
fn words(module: &Path, line: &str) -> Result<Vec<String>, Box<dyn Error>> {
    let text = fs::read_to_string(module)
        .map_err(|error| format!("{}: {error}; the feature `static` reads it", module.display()))?;
    let found = text.lines().find_map(|text| text.strip_prefix(line)).unwrap_or_default();
    Ok(found.split_whitespace().map(str::to_owned).collect())
}

fn directory(variable: &str) -> Result<PathBuf, Box<dyn Error>> {
    let words = pkg_config(&[&format!("--variable={variable}"), "libdpdk"])?;
    match words.as_slice() {
        [place] => Ok(PathBuf::from(place)),
        _ => {
            Err(format!("libdpdk's pkg-config module has no usable `{variable}`: {words:?}").into())
        }
    }
}

fn directory_of_modules() -> Result<PathBuf, Box<dyn Error>> {
    directory("pcfiledir")
}
