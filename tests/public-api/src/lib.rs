// SPDX-License-Identifier: BSD-3-Clause
//! What the libraries of the workspace offer, one item a line, as `rustdoc` sees it.
//!
//! rustdoc's JSON is not stable: a compiler writes one version of it, and this crate reads one. With
//! another compiler there is no listing, and [`listing`] says so.
//! Derived and blanket implementations are not listed, nor are automatic traits but `Send` and `Sync`.
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};
use std::process::Command;

use public_api::{Builder, MINIMUM_NIGHTLY_RUST_VERSION};

/// The version of rustdoc's JSON that can be read.
pub const FORMAT: u64 = 57;

/// Why there is no listing.
#[derive(Debug, thiserror::Error)]
pub enum ListingError {
    /// rustdoc did not run, or refused the crate.
    #[error("cargo rustdoc of {package} failed:\n{told}")]
    Rustdoc {
        /// The package.
        package: String,
        /// What it said.
        told: String,
    },
    /// A file could not be read.
    #[error("{}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// Another compiler than the one that the listing is made with.
    #[error(
        "this rustc writes rustdoc JSON of format {found}, read is {FORMAT}, that of rustc 1.95 ({MINIMUM_NIGHTLY_RUST_VERSION} and later)"
    )]
    Format {
        /// Its format.
        found: u64,
    },
    /// The JSON could not be made sense of.
    #[error("{}: {told}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        told: String,
    },
}

/// The public items of a package of the workspace at `root`, sorted. Artifacts go where cargo puts those of the `checked` profile.
///
/// # Errors
/// See [`ListingError`].
pub fn listing(root: &Path, package: &str, features: &str) -> Result<String, ListingError> {
    let target = root.join("target");
    let done = Command::new(root.join("scripts/cargo"))
        .args(["rustdoc", "--locked", "--lib", "--profile", "checked", "--package", package])
        .args(["--features", features, "--", "-Z", "unstable-options", "--output-format", "json"])
        .args(["--cap-lints", "allow"])
        .current_dir(root)
        .env("RUSTDOC", root.join("tests/public-api/rustdoc-json"))
        .env_remove("RUSTDOCFLAGS")
        .output()
        .map_err(|error| ListingError::File { path: root.join("scripts/cargo"), error })?;
    if !done.status.success() {
        let told = String::from_utf8_lossy(&done.stderr).into_owned();
        return Err(ListingError::Rustdoc { package: package.to_owned(), told });
    }
    let library = package.trim_start_matches("linerate-").replace('-', "_");
    let path = target.join("doc").join(format!("{library}.json"));
    let json = std::fs::read_to_string(&path)
        .map_err(|error| ListingError::File { path: path.clone(), error })?;
    let unreadable = |told: String| ListingError::Unreadable { path: path.clone(), told };
    let value: serde_json::Value =
        serde_json::from_str(&json).map_err(|error| unreadable(error.to_string()))?;
    let found = value["format_version"].as_u64().unwrap_or(0);
    if found != FORMAT {
        return Err(ListingError::Format { found });
    }
    let api = Builder::from_rustdoc_json(&path)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(false)
        .omit_auto_derived_impls(true)
        .sorted(true)
        .build()
        .map_err(|error| unreadable(error.to_string()))?;
    Ok(api.items().map(|item| format!("{item}\n")).filter(|line| !is_noise(line)).collect())
}

/// Whether it is an automatic trait that nobody chooses a type for. `Send` and `Sync` stay: they say what
/// threads may do.
fn is_noise(line: &str) -> bool {
    [
        "core::marker::Freeze",
        "core::marker::Unpin",
        "core::marker::UnsafeUnpin",
        "core::panic::unwind_safe::",
    ]
    .iter()
    .any(|name| {
        let Some(at) = line.find(name) else { return false };
        line.starts_with("impl") && !line[..at].contains(" for ")
    })
}
