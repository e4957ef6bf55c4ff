// SPDX-License-Identifier: BSD-3-Clause
// expect: E0599
//! A rule added to a list that lookups read.

use dpdk::acl::{Acl, Built, Rule, RuleError};

pub fn add(acl: Acl<'_, Built, 5>, rule: &Rule<5>) -> Result<(), RuleError> {
    #[cfg(not(fault))]
    let mut acl = acl.reconfigure();
    #[cfg(fault)]
    let mut acl = acl;
    acl.add(rule)
}
