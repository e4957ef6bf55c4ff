// SPDX-License-Identifier: BSD-3-Clause
//! The load balancer and its twin in C send the same frames for a million frames.
#![allow(clippy::unwrap_used)] // A test may.

mod support;

mod second_tier {
    #[test]
    fn a_million_frames_are_those_of_c() {
        super::support::compare::compare(1_000_000, 42);
    }
}
