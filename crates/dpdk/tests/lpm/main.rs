// SPDX-License-Identifier: BSD-3-Clause
//! Compares routes with a plain list of prefixes, and tests refusals and a table that changes while
//! it is read.
//!
//! One test, because DPDK starts once in a process.
#![allow(clippy::unwrap_used, clippy::expect_used)] // A test may.

mod oracle;
mod refusals;
mod shared;
#[path = "../support/mod.rs"]
mod support;

#[test]
fn routes_lead_where_a_plain_list_says() {
    let eal = support::eal(&[]);
    oracle::ipv4(&eal);
    oracle::ipv6(&eal);
    refusals::ipv4(&eal);
    refusals::ipv6(&eal);
    shared::readers_see_the_route_before_or_after(&eal);
    shared::groups_wait_for_readers(&eal);
    shared::twenty_bytes_of_names_tell_tables_apart(&eal);
}
