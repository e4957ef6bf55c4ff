// SPDX-License-Identifier: BSD-3-Clause
//! The twelve bytes that these forwarders write, in mbufs: destination and source MAC address.

use dpdk::{Mbuf, Mempool};

use forwarders_common::ethernet::swap;
pub use forwarders_common::ethernet::{
    Addresses, addresses, addresses_of_l2fwd, halves, write_halves,
};

/// Writes both addresses. Gives the packet back changed; `None` when its bytes were shared with
/// somebody and `spare` had no mbuf to copy it into.
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
        // A runt is overwritten as far as it goes.
        let len = data.len().min(both.len());
        data[..len].copy_from_slice(&both[..len]);
    })
}

/// Swaps the two addresses. As [`write_addresses`] otherwise; a runt stays as it is.
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

/// A packet that is a runt or not ours alone: a shared one is copied first, so that nobody else sees
/// the change.
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
