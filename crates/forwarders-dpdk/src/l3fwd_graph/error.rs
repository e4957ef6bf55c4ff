// SPDX-License-Identifier: BSD-3-Clause
//! Why the program did not start.

use std::path::{Path, PathBuf};

use dpdk::acl::{AclError, BuildError, RuleError};
use dpdk::lpm::{LpmError, RouteError};
use dpdk::qsbr::TooManyReaders;
use forwarders_common::rules::RuleFileError;
use graph::GraphError;

use super::plan::PlanError;

/// Why routing did not start or did not end well.
pub type RunError = crate::error::RunError<SetupError>;

impl<E: Into<SetupError>> From<E> for RunError {
    fn from(error: E) -> Self {
        Self::Plan(error.into())
    }
}

/// Why the options cannot be done.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// They do not fit the ports and lcores.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A file is not as it should be.
    #[error(transparent)]
    File(#[from] RuleFileError),
    /// DPDK takes no list of so many rules.
    #[error("{}: {reason}", file.display())]
    Acl {
        /// The file of rules.
        file: PathBuf,
        /// What DPDK says.
        reason: AclError,
    },
    /// DPDK does not take a rule.
    #[error("{}: line {line}: {reason}", file.display())]
    Rule {
        /// The file.
        file: PathBuf,
        /// The rule's line.
        line: usize,
        /// What DPDK says.
        reason: RuleError,
    },
    /// The rules together are too much.
    #[error("{}: {reason}", file.display())]
    Build {
        /// The file.
        file: PathBuf,
        /// What DPDK says.
        reason: BuildError,
    },
    /// There is no table for routes.
    #[error(transparent)]
    Routes(#[from] LpmError),
    /// A route did not get in.
    #[error("{}the route {prefix}: {reason}", place(file.as_deref(), *line))]
    Route {
        /// The file; `None` for the routes that are built in.
        file: Option<PathBuf>,
        /// Its line there.
        line: usize,
        /// Its prefix.
        prefix: String,
        /// What DPDK says.
        reason: RouteError,
    },
    /// A graph was not made.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// Too many lcores read the rules.
    #[error(transparent)]
    Readers(#[from] TooManyReaders),
}

fn place(file: Option<&Path>, line: usize) -> String {
    file.map(|file| format!("{}: line {line}: ", file.display())).unwrap_or_default()
}
