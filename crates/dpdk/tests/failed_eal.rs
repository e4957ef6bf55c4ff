// SPDX-License-Identifier: BSD-3-Clause
//! A start of DPDK that fails says why, and is the process's only one: DPDK leaves half of itself
//! behind.
#![allow(clippy::unwrap_used, clippy::expect_used)] // A test may.

use dpdk::{Eal, EalError};

#[test]
fn a_failed_start_is_an_error_and_the_last() {
    let nul = Eal::init(["test", "--no-huge\0"]).err().unwrap();
    assert!(matches!(nul, EalError::Nul(_)), "{nul}: refused before DPDK saw it");
    // Every release refuses this by an answer; an option that is unknown ends the process from 25.11 on.
    let arguments = ["test", "--no-huge", "--no-pci", "--lcores", "0", "--main-lcore", "1"];
    let error = Eal::init(arguments).err().unwrap();
    assert!(matches!(error, EalError::Init(..)), "{error}");
    assert!(error.to_string().contains("--main-lcore 1"), "{error}");
    let again = Eal::init(["test", "--no-huge", "--no-pci", "-m", "64"]);
    assert!(matches!(again, Err(EalError::AlreadyInitialised)));
}
