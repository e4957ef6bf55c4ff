// SPDX-License-Identifier: BSD-3-Clause
//! The first twelve bytes of a frame, which layer 2 forwarders write: destination and source MAC
//! address.

/// Destination and source MAC address, as at the start of a frame.
pub type Addresses = [u8; 12];

/// Destination and source address as an array.
#[must_use]
pub fn addresses(destination: [u8; 6], source: [u8; 6]) -> Addresses {
    let mut both = [0; 12];
    both[..6].copy_from_slice(&destination);
    both[6..].copy_from_slice(&source);
    both
}

/// The addresses that l2fwd writes into packets that leave by a port: destination
/// `02:00:00:00:00:PORT`, source the port's own address.
#[must_use]
pub fn addresses_of_l2fwd(tx_port: u16, mac: [u8; 6]) -> Addresses {
    addresses([2, 0, 0, 0, 0, tx_port as u8], mac)
}

/// Both addresses as two numbers: the first 8 bytes and the last 4.
#[inline(always)]
#[must_use]
pub fn halves(both: &Addresses) -> (u64, u32) {
    let [a, b, c, d, e, f, g, h, i, j, k, l] = *both;
    (u64::from_ne_bytes([a, b, c, d, e, f, g, h]), u32::from_ne_bytes([i, j, k, l]))
}

/// Writes both addresses, given as [`halves`] returns them.
#[inline(always)]
pub fn write_halves(header: &mut Addresses, front: u64, back: u32) {
    header[..8].copy_from_slice(&front.to_ne_bytes());
    header[8..].copy_from_slice(&back.to_ne_bytes());
}

/// Swaps the two addresses.
#[inline]
pub fn swap(header: &mut Addresses) {
    let old = *header;
    header[..6].copy_from_slice(&old[6..]);
    header[6..].copy_from_slice(&old[..6]);
}

/// Formats an address as `02:00:00:00:00:01`.
#[must_use]
pub fn mac_text(mac: [u8; 6]) -> String {
    mac.map(|byte| format!("{byte:02X}")).join(":")
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

    #[test]
    fn halves_are_the_whole() {
        let both = addresses_of_l2fwd(3, [7, 8, 9, 10, 11, 12]);
        assert_eq!(both, [2, 0, 0, 0, 0, 3, 7, 8, 9, 10, 11, 12]);
        let (front, back) = halves(&both);
        let mut written = [0; 12];
        write_halves(&mut written, front, back);
        assert_eq!(written, both);
    }

    #[test]
    fn mac_addresses_are_shown_as_c_shows_them() {
        assert_eq!(mac_text([2, 0, 0xab, 0, 0, 0xff]), "02:00:AB:00:00:FF");
    }
}
