// SPDX-License-Identifier: BSD-3-Clause
//! Compares forwarding tables with a plain list of prefixes and with LPM, and tests refusals.
//!
//! One test, because DPDK starts once in a process.
#![allow(clippy::unwrap_used, clippy::expect_used)] // A test may.

mod lpm;
mod oracle;
mod refusals;
#[path = "../support/mod.rs"]
mod support;

#[test]
fn routes_lead_where_a_plain_list_says() {
    // Two tables with entries of 8 bytes at a time: 2^24 of them, and the groups.
    let eal = support::large_eal(320);
    oracle::ipv4(&eal);
    oracle::ipv6(&eal);
    oracle::groups_are_not_lost(&eal);
    oracle::the_last_of_all_addresses(&eal);
    lpm::same_next_hops(&eal);
    refusals::ipv4(&eal);
    refusals::ipv6(&eal);
    refusals::no_memory(&eal);
}
