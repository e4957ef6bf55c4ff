// SPDX-License-Identifier: BSD-3-Clause
//! DPDK starts once per process. That is a property of the process and not of any value in it, so
//! the type system cannot express it: a second start is an error at run time, at any time and from
//! any place.
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
