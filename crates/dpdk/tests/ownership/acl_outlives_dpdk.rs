// SPDX-License-Identifier: BSD-3-Clause
// expect: E0505
//! A list after DPDK, which owns its memory, has ended.

use dpdk::Eal;
use dpdk::acl::{Acl, AclConfig, IPV4_5TUPLE};

pub fn keep(eal: Eal) {
    let acl = Acl::<_, 5>::new(&eal, &IPV4_5TUPLE, &AclConfig::named("filter"));
    #[cfg(not(fault))]
    drop(acl);
    drop(eal);
    #[cfg(fault)]
    drop(acl);
}
