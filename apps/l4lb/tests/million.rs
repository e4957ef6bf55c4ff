// SPDX-License-Identifier: BSD-3-Clause
//! The same of a million frames, with 250 configurations.
#![allow(clippy::unwrap_used)] // A test may.

mod support;

mod second_tier {
    #[test]
    fn a_million_frames_are_those_of_c() {
        super::support::compare(1_000_000, 42);
    }
}
