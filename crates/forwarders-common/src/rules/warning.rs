// SPDX-License-Identifier: BSD-3-Clause
//! What DPDK's l3fwd reads without a word, and the user should know.

use std::fmt;
use std::path::PathBuf;

/// Whether what l3fwd reads in silence is read with a warning, or is a mistake.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub enum Strictness {
    /// It is read, with a [`Warning`].
    #[default]
    AsL3fwd,
    /// It is a [`Mistake`](super::Mistake).
    Strict,
}

/// What a file holds, and what is odd about it.
#[derive(Debug, PartialEq, Eq)]
pub struct Contents<T> {
    /// In the order of their lines.
    pub entries: Vec<T>,
    /// In the order of their lines.
    pub warnings: Vec<Warning>,
}

/// A line that was read, and may mean something else than it seems to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The file.
    pub file: PathBuf,
    /// The line, counted from 1; `None` where it is about the whole file.
    pub line: Option<usize>,
    /// What is to be known about it.
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

/// What is to be known about a line. Only shown, hence with the words of an error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Remark {
    /// Words that nobody reads.
    #[error("{0:?} after the last field is ignored")]
    Ignored(String),
    /// A column that l3fwd ignores.
    #[error("TCP flags are checked; l3fwd ignores this column, and so does --acl-as-c")]
    Flags,
    /// Flags that no packet of the rule has.
    #[error("TCP flags are ignored: the rule is about protocol {0}, not TCP")]
    FlagsWithoutTcp(u8),
    /// An equal rule is before it.
    #[error("matches the same packets as line {0}, which comes first: this rule never counts")]
    Hidden(usize),
    /// A route to the same network is before it.
    #[error("the same network as in line {0}: this route replaces that one")]
    Replaces(usize),
    /// A route to a port that is not among the program's.
    #[error("port {0} is not enabled (-p): this route is left out")]
    NotEnabled(u16),
    /// Every route of the file is left out.
    #[error("no route leads to an enabled port (-p): every packet of this family is dropped")]
    NoRoutes,
}
