// SPDX-License-Identifier: BSD-3-Clause
//! Why the program did not start.

use std::path::{Path, PathBuf};

use dpdk::acl::{AclError, BuildError, RuleError};
use dpdk::lpm::{LpmError, RouteError};
use dpdk::qsbr::TooManyReaders;
use forwarders_common::rules::RuleFileError;
use graph::GraphError;

use super::plan::PlanError;

/// Why routing did not start or failed at its end.
pub type RunError = crate::error::RunError<SetupError>;

impl<E: Into<SetupError>> From<E> for RunError {
    fn from(error: E) -> Self {
        Self::Plan(error.into())
    }
}

/// Why the options cannot be carried out.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// They do not fit the ports and lcores.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A file is invalid.
    #[error(transparent)]
    File(#[from] RuleFileError),
    /// DPDK cannot make a list of that many rules.
    #[error("{}: {reason}", file.display())]
    Acl {
        /// The file of rules.
        file: PathBuf,
        /// DPDK's error.
        reason: AclError,
    },
    /// DPDK refuses a rule.
    #[error("{}: line {line}: {reason}", file.display())]
    Rule {
        /// The file.
        file: PathBuf,
        /// The rule's line.
        line: usize,
        /// DPDK's error.
        reason: RuleError,
    },
    /// The rules together are too much for DPDK.
    #[error("{}: {reason}", file.display())]
    Build {
        /// The file.
        file: PathBuf,
        /// DPDK's error.
        reason: BuildError,
    },
    /// A table for routes could not be made.
    #[error(transparent)]
    Routes(#[from] LpmError),
    /// A route could not be added.
    #[error("{}the route {prefix}: {reason}", place(file.as_deref(), *line))]
    Route {
        /// The file; `None` for the built-in routes.
        file: Option<PathBuf>,
        /// Its line there.
        line: usize,
        /// Its prefix.
        prefix: String,
        /// DPDK's error.
        reason: RouteError,
    },
    /// A graph could not be made.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// More lcores than can read the rules.
    #[error(transparent)]
    Readers(#[from] TooManyReaders),
}

fn place(file: Option<&Path>, line: usize) -> String {
    file.map(|file| format!("{}: line {line}: ", file.display())).unwrap_or_default()
}
