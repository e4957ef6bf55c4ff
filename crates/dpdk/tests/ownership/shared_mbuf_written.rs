// SPDX-License-Identifier: BSD-3-Clause
// expect: E0596
//! A mutable view of a packet that was shared.

use dpdk::{Mbuf, SharedMbuf};

pub fn write(packet: Mbuf<'_>) -> Result<(), SharedMbuf<'_>> {
    #[cfg(not(fault))]
    let mut packet = packet.share().unshare()?;
    #[cfg(fault)]
    let mut packet = packet.share();
    if let Some(bytes) = packet.data_mut() {
        bytes.fill(0);
    }
    Ok(())
}
