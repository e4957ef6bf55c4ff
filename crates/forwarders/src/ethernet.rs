// SPDX-License-Identifier: BSD-3-Clause
//! The twelve bytes that these forwarders write: destination and source MAC address.

use dpdk::{Mbuf, Mempool};

/// Destination and source address, as they stand at the start of a frame.
pub type Addresses = [u8; 12];

/// Destination and source address as an array.
#[must_use]
pub fn addresses(destination: [u8; 6], source: [u8; 6]) -> Addresses {
    let mut both = [0; 12];
    both[..6].copy_from_slice(&destination);
    both[6..].copy_from_slice(&source);
    both
}

/// Both addresses as two numbers: the first 8 bytes and the last 4.
#[inline(always)]
#[must_use]
pub fn halves(both: &Addresses) -> (u64, u32) {
    let [a, b, c, d, e, f, g, h, i, j, k, l] = *both;
    (u64::from_ne_bytes([a, b, c, d, e, f, g, h]), u32::from_ne_bytes([i, j, k, l]))
}

/// Writes what [`halves`] made of both addresses.
#[inline(always)]
pub fn write_halves(header: &mut Addresses, front: u64, back: u32) {
    header[..8].copy_from_slice(&front.to_ne_bytes());
    header[8..].copy_from_slice(&back.to_ne_bytes());
}

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

#[inline]
fn swap(header: &mut Addresses) {
    let old = *header;
    header[..6].copy_from_slice(&old[6..]);
    header[6..].copy_from_slice(&old[..6]);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_swap_and_swap_back() {
        let mut header = addresses([1, 2, 3, 4, 5, 6], [7, 8, 9, 10, 11, 12]);
        swap(&mut header);
        assert_eq!(header, [7, 8, 9, 10, 11, 12, 1, 2, 3, 4, 5, 6]);
        swap(&mut header);
        assert_eq!(header, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
    }
}
