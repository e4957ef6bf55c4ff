// SPDX-License-Identifier: BSD-3-Clause
// expect: E0382
//! A list that is built and still takes rules.

use dpdk::acl::{Acl, BuildError, Configuring, Rule};

pub fn both(mut acl: Acl<'_, Configuring, 5>, rule: &Rule<5>) -> Result<(), BuildError> {
    #[cfg(not(fault))]
    let _ = acl.add(rule);
    let built = acl.build()?;
    #[cfg(fault)]
    let _ = acl.add(rule);
    drop(built);
    Ok(())
}
