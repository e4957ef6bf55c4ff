// SPDX-License-Identifier: BSD-3-Clause
//! Routes against a plain list of prefixes, what is refused, and a table that is changed while it is read.
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
