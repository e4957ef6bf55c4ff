// SPDX-License-Identifier: BSD-3-Clause
//! Warnings about what DPDK's l3fwd silently accepts.

use std::fmt;
use std::path::PathBuf;

/// Whether what l3fwd silently accepts is read with a warning, or is an error.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub enum Strictness {
    /// It is read, with a [`Warning`].
    #[default]
    AsL3fwd,
    /// It is an error ([`Mistake`](super::Mistake)).
    Strict,
}

/// The content of a file, and warnings about it.
#[derive(Debug, PartialEq, Eq)]
pub struct Contents<T> {
    /// In the order of their lines.
    pub entries: Vec<T>,
    /// In the order of their lines.
    pub warnings: Vec<Warning>,
}

/// A line that was read, but may not mean what it seems to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The file.
    pub file: PathBuf,
    /// The line, counted from 1; `None` for the whole file.
    pub line: Option<usize>,
    /// The remark about it.
    pub remark: Remark,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.file.display())?;
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        write!(f, "{}", self.remark)
    }
}

/// A remark about a line. It derives `Error` only for its messages.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Remark {
    /// Words that are ignored.
    #[error("{0:?} after the last field is ignored")]
    Ignored(String),
    /// A column that l3fwd ignores.
    #[error("TCP flags are checked; l3fwd ignores this column, and so does --acl-as-c")]
    Flags,
    /// Flags in a rule whose packets have none.
    #[error("TCP flags are ignored: the rule is about protocol {0}, not TCP")]
    FlagsWithoutTcp(u8),
    /// An equal rule comes before it.
    #[error("matches the same packets as line {0}, which comes first: this rule never counts")]
    Hidden(usize),
    /// A route to the same network comes before it.
    #[error("the same network as in line {0}: this route replaces that one")]
    Replaces(usize),
    /// A route to a port that is not enabled.
    #[error("port {0} is not enabled (-p): this route is left out")]
    NotEnabled(u16),
    /// Every route of the file is left out.
    #[error("no route leads to an enabled port (-p): every packet of this family is dropped")]
    NoRoutes,
}
