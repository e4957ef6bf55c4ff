// SPDX-License-Identifier: BSD-3-Clause
//! Compares access control lists with a slow, simple matcher, and tests refusals.
//!
//! One test, because DPDK starts once in a process.
#![allow(clippy::unwrap_used, clippy::expect_used)] // A test may.

mod bounds;
mod bursts;
mod lists;
mod oracle;
mod ports;
#[path = "../support/mod.rs"]
mod support;

#[test]
fn lists_say_what_a_plain_matcher_says() {
    let eal = support::eal(&["net_ring0"]);
    lists::lifecycle(&eal);
    lists::refusals(&eal);
    lists::replaced_while_packets_are_looked_up(&eal);
    bounds::nothing_is_read_behind_a_packet(&eal);
    bursts::short_packets_match_nothing(&eal);
    ports::found_wherever_they_are(&eal);
    oracle::agree(&eal);
}
