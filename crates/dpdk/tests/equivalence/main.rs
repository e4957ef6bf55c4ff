// SPDX-License-Identifier: BSD-3-Clause
//! Compares the native functions with C's inline functions on the same random requests, with pools
//! and ports of the same shape: one set used through Rust, one through the C shim. After each step
//! both sides must be in the same state.
//!
//! One binary and one test, because both sides must be linked to the same DPDK and DPDK starts once
//! in a process.
#![allow(clippy::unwrap_used, clippy::expect_used)] // A test may.

mod bursts;
mod callbacks;
mod external;
mod headers;
mod packets;
mod pools;
mod quiescence;
mod raw;
mod rings;
mod routes;
#[path = "../support/mod.rs"]
mod support;
mod tx_buffers;

#[test]
fn native_functions_do_what_c_does() {
    let eal = support::eal(&["net_ring0", "net_ring1"]);
    pools::same_mbufs(&eal);
    pools::agree(&eal);
    packets::agree(&eal);
    headers::agree(&eal);
    bursts::agree(&eal);
    tx_buffers::agree(&eal);
    routes::agree(&eal);
    quiescence::agree();
    rings::agree(&eal);
}
