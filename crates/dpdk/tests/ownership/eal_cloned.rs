// SPDX-License-Identifier: BSD-3-Clause
// expect: E0599
//! A second handle on DPDK. (A second `Eal::init` is an error at run time: see second_eal.rs.)

use dpdk::Eal;

pub fn two(eal: Eal) {
    #[cfg(fault)]
    drop(eal.clone());
    drop(eal);
}
