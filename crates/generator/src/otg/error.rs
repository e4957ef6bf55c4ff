// SPDX-License-Identifier: BSD-3-Clause
//! Errors as the OTG API reports them: `{code, kind, errors}`.

use serde_json::{Value, json};

/// An answer that is an error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", errors.join("; "))]
pub struct ApiError {
    /// HTTP status.
    pub status: u16,
    /// What is wrong and what to do, each beginning with the field's path where there is one.
    pub errors: Vec<String>,
}

impl ApiError {
    /// The request is at fault (400).
    pub fn invalid(errors: Vec<String>) -> Self {
        ApiError { status: 400, errors }
    }

    /// The request is at fault, with this status and for this one reason.
    pub fn request(status: u16, error: impl Into<String>) -> Self {
        ApiError { status, errors: vec![error.into()] }
    }

    /// The generator is at fault (500).
    pub fn internal(error: impl Into<String>) -> Self {
        ApiError { status: 500, errors: vec![error.into()] }
    }

    /// The body of the answer.
    pub fn to_json(&self) -> Value {
        let kind = if self.status < 500 { "validation" } else { "internal" };
        json!({ "code": self.status, "kind": kind, "errors": self.errors })
    }
}
