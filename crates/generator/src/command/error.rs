// SPDX-License-Identifier: BSD-3-Clause
//! What can be wrong with a command line's own little languages.

use std::path::PathBuf;

use crate::replay::ReplayError;

/// Why a flow, a capture, a rate or another value cannot be. Each names its key.
#[derive(Debug, thiserror::Error)]
pub enum SpecError {
    /// A key that there is not.
    #[error("{key:?} is no key; the keys are {known}")]
    UnknownKey {
        /// The key.
        key: String,
        /// All that there are.
        known: String,
    },
    /// A header that there is not.
    #[error("{key}: there is no header {header:?}; the headers are {known}")]
    UnknownHeader {
        /// The key.
        key: String,
        /// The header.
        header: String,
        /// All that there are.
        known: String,
    },
    /// A field that the header does not have.
    #[error("{key}: {header} has no field of this name; its fields are {known}")]
    UnknownField {
        /// The key.
        key: String,
        /// The header.
        header: &'static str,
        /// All that there are.
        known: String,
    },
    /// A value that does not read as what it should be.
    #[error("{key}: {text:?} is not {wanted}")]
    Value {
        /// The key.
        key: String,
        /// What was given.
        text: String,
        /// What it should be.
        wanted: String,
    },
    /// A key that was given twice.
    #[error("{key}: given twice")]
    Twice {
        /// The key.
        key: String,
    },
    /// A key without its value.
    #[error("{key}: has no value; write {key}=VALUE")]
    NoValue {
        /// The key.
        key: String,
    },
    /// Keys that exclude each other.
    #[error("{key}: does not go with {other}; {advice}")]
    Conflict {
        /// The key.
        key: String,
        /// The other one.
        other: String,
        /// What to do.
        advice: &'static str,
    },
    /// A key that needs another.
    #[error("{key}: needs {other} beside it")]
    Needs {
        /// The key.
        key: String,
        /// What is missing.
        other: &'static str,
    },
    /// Nothing where something should be.
    #[error("there is an empty part between the commas; remove it")]
    Empty,
    /// A capture file that cannot be replayed.
    #[error("pcap: {0}")]
    Replay(#[from] ReplayError),
    /// A capture file of a kind that is not written.
    #[error("{path}: give the file a name that ends in .pcapng or .pcap")]
    Ending {
        /// The file.
        path: PathBuf,
    },
}

impl SpecError {
    /// A value that is not what it should be.
    pub fn value(key: &str, text: &str, wanted: impl Into<String>) -> Self {
        SpecError::Value {
            key: key.to_owned(),
            text: text.chars().take(80).collect(),
            wanted: wanted.into(),
        }
    }
}
