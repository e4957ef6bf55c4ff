// SPDX-License-Identifier: BSD-3-Clause
//! Whatever the bytes, nothing here may panic, take long, or contradict itself.
//!
//! Each target is a function that takes bytes. `fuzz/libfuzzer` feeds it with what libFuzzer finds (`make fuzz`), the
//! test of this crate with the files of `fuzz/corpus` and with changed copies of them.
#![forbid(unsafe_code)]

mod frame;
mod headers;
mod options;
mod otg;
mod rules;
mod translation;

pub use frame::frame;
pub use headers::headers;
pub use options::options;
pub use otg::otg;
pub use rules::{routes, rules};
pub use translation::translation;

/// A function to be fed, by name.
pub struct Target {
    /// Its name, that of its corpus and of its program.
    pub name: &'static str,
    /// What takes the bytes; it panics on a finding.
    pub feed: fn(&[u8]),
}

/// All of them.
pub const TARGETS: &[Target] = &[
    Target { name: "frame", feed: frame },
    Target { name: "headers", feed: headers },
    Target { name: "options", feed: options },
    Target { name: "otg", feed: otg },
    Target { name: "routes", feed: routes },
    Target { name: "rules", feed: rules },
    Target { name: "translation", feed: translation },
];
