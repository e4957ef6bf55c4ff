// SPDX-License-Identifier: BSD-3-Clause
// expect: E0277
//! A list that still takes rules, in a table that several threads read.

use dpdk::acl::{Acl, Built, Configuring};
use dpdk::qsbr::Replaceable;

#[cfg(not(fault))]
type Table<'t> = Acl<'t, Built, 5>;
#[cfg(fault)]
type Table<'t> = Acl<'t, Configuring, 5>;

pub fn share<'t>(table: &Replaceable<'t, Table<'t>>, other: Table<'t>) {
    std::thread::scope(|threads| {
        threads.spawn(|| drop(table.replace(other)));
    });
}
