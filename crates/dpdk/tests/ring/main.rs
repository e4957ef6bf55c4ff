// SPDX-License-Identifier: BSD-3-Clause
//! Rings: ownership of items, refusals, and several threads that use one.
//!
//! One test, because DPDK starts once in a process.
#![allow(clippy::unwrap_used, clippy::expect_used)] // A test may.

mod oracle;
mod owners;
mod packets;
mod refusals;
#[path = "../support/mod.rs"]
mod support;
mod threads;

#[test]
fn rings_own_what_is_inside_and_lose_nothing() {
    let eal = support::eal(&["net_ring0"]);
    oracle::agree(&eal);
    owners::items_are_dropped_once(&eal);
    owners::a_panic_leaves_nothing_behind(&eal);
    owners::what_finds_no_room_stays(&eal);
    packets::go_through_rings(&eal);
    refusals::bad_configurations(&eal);
    threads::nothing_is_lost_doubled_or_overtaken(&eal);
    threads::lcores_hand_packets_over(&eal);
}
