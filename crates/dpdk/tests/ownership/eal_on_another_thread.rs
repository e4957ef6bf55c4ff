// SPDX-License-Identifier: BSD-3-Clause
// expect: E0277
//! An `Eal` that ends on another thread than the main lcore's.

use dpdk::Eal;

pub fn elsewhere(eal: Eal) {
    std::thread::scope(|threads| {
        #[cfg(not(fault))]
        threads.spawn(|| eal.ports());
        #[cfg(fault)]
        threads.spawn(move || eal.ports());
    });
}
