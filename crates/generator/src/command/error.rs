// SPDX-License-Identifier: BSD-3-Clause
//! Errors in the syntax of the command line's values.

use std::path::PathBuf;

use crate::replay::ReplayError;

/// Why a flow, a capture, a rate or another value is invalid. Each error names its key.
#[derive(Debug, thiserror::Error)]
pub enum SpecError {
    /// An unknown key.
    #[error("{key:?} is no key; the keys are {known}")]
    UnknownKey {
        /// The key.
        key: String,
        /// All keys.
        known: String,
    },
    /// An unknown header.
    #[error("{key}: there is no header {header:?}; the headers are {known}")]
    UnknownHeader {
        /// The key.
        key: String,
        /// The header.
        header: String,
        /// All headers.
        known: String,
    },
    /// An unknown field of a header.
    #[error("{key}: {header} has no field of this name; its fields are {known}")]
    UnknownField {
        /// The key.
        key: String,
        /// The header.
        header: &'static str,
        /// All its fields.
        known: String,
    },
    /// A value that cannot be parsed.
    #[error("{key}: {text:?} is not {wanted}")]
    Value {
        /// The key.
        key: String,
        /// The given value.
        text: String,
        /// What is valid.
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
    /// Keys that cannot be combined.
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
    /// An empty item.
    #[error("there is an empty part between the commas; remove it")]
    Empty,
    /// A capture file that cannot be replayed.
    #[error("pcap: {0}")]
    Replay(#[from] ReplayError),
    /// A capture file in a format that cannot be written.
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
