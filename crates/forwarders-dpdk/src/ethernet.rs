// SPDX-License-Identifier: BSD-3-Clause
//! The MAC addresses that these forwarders write into mbufs: destination and source.

use dpdk::{Mbuf, Mempool};

use forwarders_common::ethernet::swap;
pub use forwarders_common::ethernet::{
    Addresses, addresses, addresses_of_l2fwd, halves, write_halves,
};

/// Writes both addresses. Returns the changed packet; `None` if its bytes were shared and `spare`
/// had no mbuf to copy it into.
#[inline]
#[must_use]
pub fn write_addresses<'m>(
    mut mbuf: Mbuf<'m>,
    both: &Addresses,
    spare: &Mempool<'m>,
) -> Option<Mbuf<'m>> {
    if let Some(header) = mbuf.data_mut().and_then(|data| data.first_chunk_mut()) {
        *header = *both;
        return Some(mbuf);
    }
    change_rare(mbuf, spare, |data| {
        // A runt is overwritten up to its end.
        let len = data.len().min(both.len());
        data[..len].copy_from_slice(&both[..len]);
    })
}

/// Swaps the two addresses. Otherwise as [`write_addresses`]; a runt is left unchanged.
#[inline]
#[must_use]
pub fn swap_addresses<'m>(mut mbuf: Mbuf<'m>, spare: &Mempool<'m>) -> Option<Mbuf<'m>> {
    if let Some(header) = mbuf.data_mut().and_then(|data| data.first_chunk_mut()) {
        swap(header);
        return Some(mbuf);
    }
    change_rare(mbuf, spare, |data| {
        if let Some(header) = data.first_chunk_mut() {
            swap(header);
        }
    })
}

/// Handles a packet that is a runt or shared: a shared one is copied first, so that no other owner
/// sees the change.
#[cold]
fn change_rare<'m>(
    mut mbuf: Mbuf<'m>,
    spare: &Mempool<'m>,
    change: impl FnOnce(&mut [u8]),
) -> Option<Mbuf<'m>> {
    if !mbuf.is_unshared() {
        mbuf = mbuf.copy_into(spare).ok()?;
    }
    change(mbuf.data_mut()?);
    Some(mbuf)
}
