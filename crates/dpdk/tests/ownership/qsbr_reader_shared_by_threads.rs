// SPDX-License-Identifier: BSD-3-Clause
// expect: E0277
//! One reader used by two threads: it is `Send` and not `Sync`.

use dpdk::qsbr::Reader;

pub fn look(mut reader: Reader<'_>) {
    std::thread::scope(|threads| {
        #[cfg(not(fault))]
        threads.spawn(move || drop(reader.online()));
        #[cfg(fault)]
        threads.spawn(|| std::ptr::from_ref(&reader).is_null());
    });
    #[cfg(fault)]
    drop(reader.online());
}
