// SPDX-License-Identifier: BSD-3-Clause
//! The GRE header (RFC 2784, RFC 2890; `rte_gre_hdr`): 4 bytes, and 4 more for each of checksum, key and sequence
//! number that its flags announce.

use zerocopy::network_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::checksum;
use crate::view::{Layer, Malformed, with_options, with_options_mut};

/// Length of a header without optional fields, in bytes.
pub const LEN: usize = 4;

const CHECKSUM: u16 = 0x8000;
/// Those of bits 1 to 5 that only RFC 1701 knows: routing, strict source route, and the first bit of the recursion control, whose
/// other two RFC 2784 ignores.
const OLD: u16 = 0x4c00;
const KEY: u16 = 0x2000;
const SEQUENCE: u16 = 0x1000;
const VERSION: u16 = 0x0007;

/// A view of a GRE header with its optional fields.
#[derive(Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Gre {
    flags: U16,
    protocol: U16,
    fields: [[u8; 4]],
}

/// How many optional fields the header at the start of a packet has.
#[inline(always)]
fn count(packet: &[u8]) -> Result<usize, Malformed> {
    let flags = *packet.first_chunk().ok_or(Malformed::Short(Layer::Gre))?;
    let flags = u16::from_be_bytes(flags);
    // Version 1 is PPTP's; RFC 1701 is out of use, its routing is of a length that only its entries tell, and RFC 2784 has
    // packets with these flags discarded.
    if flags & (VERSION | OLD) != 0 {
        return Err(Malformed::Kind(Layer::Gre));
    }
    Ok((flags & (CHECKSUM | KEY | SEQUENCE)).count_ones() as usize)
}

impl Gre {
    /// Splits a packet into its header, read-only, and all that follows its optional fields.
    ///
    /// # Errors
    /// [`Malformed::Short`]; [`Malformed::Kind`] when the version is not 0, or a flag is set that only RFC 1701 knows.
    #[inline]
    pub fn split(packet: &[u8]) -> Result<(&Self, &[u8]), Malformed> {
        with_options(packet, count(packet)?, Layer::Gre)
    }

    /// Splits a packet into its header, to be written, and all that follows its optional fields.
    ///
    /// # Errors
    /// As [`Gre::split`].
    #[inline]
    pub fn split_mut(packet: &mut [u8]) -> Result<(&mut Self, &mut [u8]), Malformed> {
        let fields = count(packet)?;
        with_options_mut(packet, fields, Layer::Gre)
    }

    /// Length of the header with optional fields, in bytes.
    #[inline]
    pub fn header_len(&self) -> usize {
        LEN + 4 * self.fields.len()
    }

    /// EtherType of what follows; [`ETHERTYPE_BRIDGING`](crate::ethernet::ETHERTYPE_BRIDGING) for a whole frame.
    #[inline]
    pub fn protocol(&self) -> u16 {
        self.protocol.get()
    }

    /// The place of the field of a flag; those of higher flags come first.
    #[inline]
    fn place(&self, flag: u16) -> Option<usize> {
        let flags = self.flags.get() & (CHECKSUM | KEY | SEQUENCE);
        let before = flags & !(flag | (flag - 1));
        (flags & flag != 0).then_some(before.count_ones() as usize)
    }

    #[inline]
    fn field(&self, flag: u16) -> Option<[u8; 4]> {
        self.fields.get(self.place(flag)?).copied()
    }

    #[inline]
    fn field_mut(&mut self, flag: u16) -> Option<&mut [u8; 4]> {
        let place = self.place(flag)?;
        self.fields.get_mut(place)
    }

    /// The checksum as it stands in the header, if there is one.
    #[inline]
    pub fn checksum(&self) -> Option<u16> {
        self.field(CHECKSUM).map(|[a, b, _, _]| u16::from_be_bytes([a, b]))
    }

    /// The key, if there is one.
    #[inline]
    pub fn key(&self) -> Option<u32> {
        self.field(KEY).map(u32::from_be_bytes)
    }

    /// The sequence number, if there is one.
    #[inline]
    pub fn sequence(&self) -> Option<u32> {
        self.field(SEQUENCE).map(u32::from_be_bytes)
    }

    /// Whether the checksum over header and payload is right, or there is none.
    #[inline]
    pub fn checksum_is_right(&self, payload: &[u8]) -> bool {
        self.checksum().is_none()
            || checksum::fold(checksum::sum(self.as_bytes()) + checksum::sum(payload)) == 0xffff
    }

    /// Makes the checksum over header and payload anew, if there is one.
    #[inline]
    pub fn fill_checksum(&mut self, payload: &[u8]) {
        if let Some(field) = self.field_mut(CHECKSUM) {
            field[..2].fill(0);
            let sum = checksum::sum(self.as_bytes()) + checksum::sum(payload);
            if let Some([a, b, _, _]) = self.field_mut(CHECKSUM) {
                [*a, *b] = (!checksum::fold(sum)).to_be_bytes();
            }
        }
    }

    /// Sets the EtherType of what follows.
    #[inline]
    pub fn set_protocol(&mut self, protocol: u16) {
        self.protocol.set(protocol);
    }

    /// Sets the key; false when the header has no room for one.
    #[inline]
    #[must_use = "nothing is done where it returns false"]
    pub fn set_key(&mut self, key: u32) -> bool {
        self.field_mut(KEY).map(|field| *field = key.to_be_bytes()).is_some()
    }

    /// Sets the sequence number; false when the header has no room for one.
    #[inline]
    #[must_use = "nothing is done where it returns false"]
    pub fn set_sequence(&mut self, number: u32) -> bool {
        self.field_mut(SEQUENCE).map(|field| *field = number.to_be_bytes()).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_is_where_its_flags_put_it() {
        for flags in 0..8u16 {
            let mut bytes = [0u8; 20];
            bytes[..2].copy_from_slice(&(flags >> 2 << 15 | (flags & 3) << 12).to_be_bytes());
            let (gre, rest) = Gre::split_mut(&mut bytes).unwrap();
            let (sum, key, sequence) = (flags & 4 != 0, flags & 2 != 0, flags & 1 != 0);
            gre.set_protocol(0x0800);
            assert_eq!((gre.set_key(0x0102_0304), gre.set_sequence(0x0506_0708)), (key, sequence));
            rest.fill(1);
            gre.fill_checksum(rest);
            assert!(gre.checksum_is_right(rest));
            assert_eq!(gre.header_len(), 4 + 4 * flags.count_ones() as usize);
            assert_eq!((gre.key(), gre.checksum().is_some()), (key.then_some(0x0102_0304), sum));
            assert_eq!((gre.sequence(), gre.protocol()), (sequence.then_some(0x0506_0708), 0x0800));
            rest[0] ^= 1;
            assert_eq!(gre.checksum_is_right(rest), !sum);
            let [key_at, sequence_at] =
                [4 + 4 * usize::from(sum), 4 + 4 * usize::from(sum) + 4 * usize::from(key)];
            assert!(!key || bytes[key_at..][..4] == [1, 2, 3, 4]);
            assert!(!sequence || bytes[sequence_at..][..4] == [5, 6, 7, 8]);
        }
    }

    #[test]
    fn the_writers_checksum() {
        // 8000+86dd+6000+0012+3b40 = a230 with the carry, complement 5dcf.
        let mut bytes = [0u8; 26];
        bytes[..4].copy_from_slice(&[0x80, 0, 0x86, 0xdd]);
        let (gre, payload) = Gre::split_mut(&mut bytes).unwrap();
        payload[..7].copy_from_slice(&[0x60, 0, 0, 0, 0, 0x12, 0x3b]);
        payload[7] = 0x40;
        gre.fill_checksum(payload);
        assert_eq!(gre.checksum(), Some(0x5dcf));
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        assert_eq!(Gre::split(&[0]).unwrap_err(), Malformed::Short(Layer::Gre));
        assert_eq!(Gre::split(&[0, 0, 8]).unwrap_err(), Malformed::Short(Layer::Gre));
        assert_eq!(
            Gre::split(&[0xb0, 0, 8, 0, 0, 0, 0]).unwrap_err(),
            Malformed::Short(Layer::Gre)
        );
        for flags in [[0x40, 0], [8, 0], [4, 0], [0, 1], [0, 7]] {
            let mut bytes = [flags[0], flags[1], 8, 0, 0, 0, 0, 0];
            assert_eq!(Gre::split(&bytes).unwrap_err(), Malformed::Kind(Layer::Gre));
            assert_eq!(Gre::split_mut(&mut bytes).unwrap_err(), Malformed::Kind(Layer::Gre));
        }
    }
}
