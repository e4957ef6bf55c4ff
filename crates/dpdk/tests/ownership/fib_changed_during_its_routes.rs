// SPDX-License-Identifier: BSD-3-Clause
// expect: E0502
//! A route removed while the routes are walked.

use dpdk::fib::Fib;

pub fn remove(fib: &mut Fib<'_>) {
    for (prefix, len, _) in fib.routes() {
        #[cfg(fault)]
        let _ = fib.remove(prefix, len);
        let _ = (prefix, len);
    }
}
