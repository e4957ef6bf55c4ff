// SPDX-License-Identifier: BSD-3-Clause
//! Why the program did not start or did not end well.

use forwarders_common::l2fwd::PlanError;

/// Why forwarding did not start or did not end well.
pub type RunError = crate::error::RunError<PlanError>;
