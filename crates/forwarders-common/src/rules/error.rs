// SPDX-License-Identifier: BSD-3-Clause
//! Errors in files of rules.

use std::io;
use std::path::PathBuf;

use super::MAX_RULES;

/// Why a file was not read.
#[derive(Debug, thiserror::Error)]
pub enum RuleFileError {
    /// It cannot be read.
    #[error("{}: {reason}", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// What the system says, or what it is instead of a file.
        reason: io::Error,
    },
    /// No line lets packets pass.
    #[error("{}: no line begins with R: every packet would be dropped", .0.display())]
    NothingPasses(PathBuf),
    /// A line is invalid.
    #[error("{}: line {line}: {mistake}", file.display())]
    Line {
        /// The file.
        file: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// The error in it.
        mistake: Mistake,
    },
}

/// An error in a line.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Mistake {
    /// It begins with an invalid character.
    #[error("begins with {found:?}, not with {expected}")]
    Lead {
        /// Its first character.
        found: char,
        /// The valid characters.
        expected: &'static str,
    },
    /// It ends too early.
    #[error("no {0}")]
    Missing(&'static str),
    /// It has text after its last field.
    #[error("{0:?} behind the last field")]
    Extra(String),
    /// A field is invalid.
    #[error("{field}: {given:?} is not {takes}")]
    Field {
        /// Its name.
        field: &'static str,
        /// What is valid there.
        takes: &'static str,
        /// What is there.
        given: String,
    },
    /// The range of ports is empty.
    #[error("{field}: the range ends at {high}, before it begins at {low}")]
    Range {
        /// Which ports.
        field: &'static str,
        /// Where it begins.
        low: u16,
        /// Where it ends.
        high: u16,
    },
    /// The colon of a range is not a word of its own.
    #[error("{field}: {given:?} has no blanks around its colon: write {range}")]
    Colon {
        /// Which ports.
        field: &'static str,
        /// What is there.
        given: String,
        /// How to write it.
        range: String,
    },
    /// A route in a file of rules.
    #[error(
        "this is a route (R, a network and a port): put it into a file of routes (--routes_ipv4, --routes_ipv6)"
    )]
    Route,
    /// A route to all addresses.
    #[error("destination: DPDK's tables have no default route (a length of 0): give {0}")]
    DefaultRoute(&'static str),
    /// The port is not one of the program's.
    #[error("port {0} is not enabled: see -p")]
    PortNotEnabled(u16),
    /// An equal rule comes before it.
    #[error("matches the same packets as line {0}, which hides it")]
    Duplicate(usize),
    /// A route to the same network comes before it.
    #[error("the same network as in line {0}")]
    SameNetwork(usize),
    /// There are already as many as allowed.
    #[error("more than {MAX_RULES} {0}")]
    TooMany(&'static str),
    /// It has more bytes than any rule needs.
    #[error("longer than {0} bytes")]
    TooLong(usize),
    /// It is not text.
    #[error("not UTF-8")]
    NotText,
    /// An editor put three bytes before the text.
    #[error("begins with a UTF-8 byte order mark: save the file without it")]
    ByteOrderMark,
}
