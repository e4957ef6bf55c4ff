// SPDX-License-Identifier: BSD-3-Clause
//! The load balancer and its twin in C send the same frames for the same frames.
#![allow(clippy::unwrap_used)] // A test may.

mod support;

#[test]
fn frames_are_those_of_c() {
    support::compare::compare(40_000, 41);
}
