// SPDX-License-Identifier: BSD-3-Clause
// expect: E0277
//! A list seen by two threads before it is built.

use dpdk::acl::{Acl, Built, Configuring};

#[cfg(not(fault))]
type Seen<'eal> = Acl<'eal, Built, 5>;
#[cfg(fault)]
type Seen<'eal> = Acl<'eal, Configuring, 5>;

pub fn look(acl: &Seen<'_>) {
    std::thread::scope(|threads| {
        threads.spawn(|| acl.rules());
    });
}

pub fn send(acl: Acl<'_, Configuring, 5>) {
    std::thread::scope(|threads| {
        threads.spawn(move || acl.rules());
    });
}
