// SPDX-License-Identifier: BSD-3-Clause
// expect: E0308
//! A rule with as many fields as IPv6 has, in a list for IPv4.

use dpdk::acl::{Acl, Configuring, Rule, RuleError};

#[cfg(not(fault))]
type Added = Rule<5>;
#[cfg(fault)]
type Added = Rule<11>;

pub fn add(acl: &mut Acl<'_, Configuring, 5>, rule: &Added) -> Result<(), RuleError> {
    acl.add(rule)
}
