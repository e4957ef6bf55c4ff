// SPDX-License-Identifier: BSD-3-Clause
// expect: E0597
//! Work on an lcore that borrows a value which is dropped before the work ends.

use dpdk::Eal;

pub fn launch(eal: &Eal) {
    #[cfg(not(fault))]
    let number = 7;
    eal.scope(|scope| {
        #[cfg(fault)]
        let number = 7;
        let number = &number;
        for lcore in eal.workers() {
            let _ = scope.launch(lcore, move || assert_eq!(*number, 7));
        }
    });
}
