// SPDX-License-Identifier: BSD-3-Clause
// expect: E0505
//! A packet that is freed after its collection and before the lookup.

use dpdk::Mbuf;
use dpdk::acl::{Acl, Built};

pub fn classify(acl: &Acl<'_, Built, 5>, packet: Mbuf<'_>) {
    let mut inputs = acl.inputs::<1>();
    let _ = inputs.push(packet.data());
    #[cfg(fault)]
    drop(packet);
    let _ = acl.classify(&inputs, &mut [[None]]);
}
