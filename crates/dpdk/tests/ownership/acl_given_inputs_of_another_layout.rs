// SPDX-License-Identifier: BSD-3-Clause
// expect: E0308
//! Packets collected for IPv6, looked up in a list for IPv4.

use dpdk::acl::{Acl, Built, ClassifyError, Inputs};

#[cfg(not(fault))]
type Given<'p> = Inputs<'p, 5, 32>;
#[cfg(fault)]
type Given<'p> = Inputs<'p, 11, 32>;

pub fn classify(acl: &Acl<'_, Built, 5>, inputs: &Given<'_>) -> Result<(), ClassifyError> {
    acl.classify(inputs, &mut [[None]; 32])
}
