// SPDX-License-Identifier: BSD-3-Clause
//! Why the program did not start or failed at its end.

use forwarders_common::l2fwd::PlanError;

/// Why forwarding did not start or failed at its end.
pub type RunError = crate::error::RunError<PlanError>;
