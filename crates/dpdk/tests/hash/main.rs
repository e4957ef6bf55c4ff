// SPDX-License-Identifier: BSD-3-Clause
//! Compares hash tables with `std::collections::HashMap`, and tests refusals and a table that
//! changes while it is read.
//!
//! One test, because DPDK starts once in a process.
#![allow(clippy::unwrap_used, clippy::expect_used)] // A test may.

mod full;
mod oracle;
mod refusals;
mod shared;
#[path = "../support/mod.rs"]
mod support;

#[test]
fn tables_are_those_of_the_standard_library() {
    let eal = support::eal(&[]);
    oracle::random_changes(&eal);
    full::tables_take_what_they_have_room_for(&eal);
    full::many_keys_with_one_hash(&eal);
    full::a_key_of_zeros(&eal);
    full::keys_come_with_their_hashes(&eal);
    full::keys_of_every_length(&eal);
    refusals::bad_configurations(&eal);
    refusals::lookups_without_places(&eal);
    shared::readers_see_each_key_as_it_was_written(&eal);
    shared::places_wait_for_readers(&eal);
    shared::the_writer_walks_and_sorts_out(&eal);
    shared::names_are_free_when_a_table_is_gone(&eal);
}
