// SPDX-License-Identifier: BSD-3-Clause
//! DPDK starts once in a process. That is a fact about the process and not about any value in it, so no
//! type can know it: a second start is an error at run time, whoever asks and whenever.
#![allow(clippy::unwrap_used, clippy::expect_used)] // A test may.

mod support;

use dpdk::{Eal, EalError};

#[test]
fn a_second_eal_is_refused() {
    let refused = || matches!(Eal::init(["second"]), Err(EalError::AlreadyInitialised));
    let eal = support::eal(&[]);
    assert!(refused(), "beside the first");
    std::thread::scope(|threads| assert!(threads.spawn(refused).join().unwrap(), "elsewhere"));
    let main = eal.main_lcore();
    assert_eq!(dpdk::Lcore::current(), Some(main), "the first is as it was");
    drop(eal);
    assert!(refused(), "after the first");
}
