// SPDX-License-Identifier: BSD-3-Clause
// expect: E0599
//! Packets looked up in a list that still takes rules.

use dpdk::acl::{Acl, BuildError, Configuring};

pub fn classify(acl: Acl<'_, Configuring, 5>, packet: &[u8]) -> Result<(), BuildError> {
    #[cfg(not(fault))]
    let acl = acl.build()?;
    let _ = acl.classify_slices(&[packet], &mut [[None]]);
    Ok(())
}
